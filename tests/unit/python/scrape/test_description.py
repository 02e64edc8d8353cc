"""The scraping API's own OpenAPI document is the committed one, and names every route of the table."""

from __future__ import annotations

import json
import re
from pathlib import Path

from fairlead import _core
from fairlead.scrape.openapi import scraping_document, scraping_text
from fairlead.scrape.routers import SCRAPING_ROUTERS

COPY = Path(__file__).parents[4] / "docs" / "reference" / "scraping-openapi.json"


def test_the_committed_copy_is_fresh() -> None:
    """`python -m fairlead.scrape.routers` writes it."""
    assert COPY.read_text("utf-8") == scraping_text(SCRAPING_ROUTERS)


def test_it_names_every_route_of_the_table_and_no_other() -> None:
    def shape(path: str) -> str:
        return re.sub(r"\{[^}]*\}", "{}", path)

    table = {
        (route["method"], shape(route["path"]))
        for route in _core.routes()
        # The routes under /v2 are Firecrawl's, which describes them.
        if route["surface"] == "scraping" and not str(route["path"]).startswith("/v2/")
    }
    described = {
        (method.upper(), shape(path))
        for path, operations in scraping_document(SCRAPING_ROUTERS)["paths"].items()
        for method in operations
    }
    assert described == table


def test_it_is_openapi_3_0() -> None:
    document = scraping_document(SCRAPING_ROUTERS)
    assert (document["openapi"], document["info"]["version"]) == ("3.0.0", "1.0.0")
    text = json.dumps(document)
    assert '"type": "null"' not in text
    assert '"const"' not in text
    for name in re.findall(r"#/components/schemas/([A-Za-z0-9_]+)", text):
        assert name in document["components"]["schemas"]
    scrape = document["components"]["schemas"]["ScrapeOptions"]["properties"]
    assert scrape["cacheTtl"]["minimum"] == 0
    assert scrape["cacheTtl"]["exclusiveMinimum"] is True
    assert scrape["cacheTtl"]["nullable"] is True

"""The routers of scraping, and the route of the OpenAPI document that describes them.

`python -m fairlead.scrape.routers` writes the committed copy of that document.
"""

from __future__ import annotations

import asyncio
import sys
from functools import cache
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Response

from fairlead.scrape.agent.router import router as agents
from fairlead.scrape.browser.discover_router import router as api_discovery
from fairlead.scrape.browser.router import router as browser_sessions
from fairlead.scrape.css.router import router as records
from fairlead.scrape.document.router import router as documents
from fairlead.scrape.jobs.batch_router import router as batches
from fairlead.scrape.jobs.crawl_router import router as crawls
from fairlead.scrape.jobs.extract_router import router as extractions
from fairlead.scrape.jobs.llmstxt_router import router as llmstxt
from fairlead.scrape.jobs.pages_router import batch_pages, crawl_pages
from fairlead.scrape.limits.owner import OwnerDep
from fairlead.scrape.map.router import router as maps
from fairlead.scrape.openapi import scraping_text
from fairlead.scrape.router import router as pages
from fairlead.scrape.saved.endpoint_router import router as saved_endpoints
from fairlead.scrape.saved.site_router import router as saved_sites
from fairlead.scrape.search_router import router as search

COPY: Final = "docs/reference/scraping-openapi.json"

router = APIRouter(prefix="/api", tags=["scraping"])


@router.get("/scrape/openapi.json", summary="The scraping API as an OpenAPI document")
async def description(owner: OwnerDep) -> Response:  # noqa: ARG001 - only a caller with a key may read it
    """OpenAPI 3.0.0, description version 1.0.0."""
    return Response(await asyncio.to_thread(described_routes), media_type="application/json")


SCRAPING_ROUTERS: Final[tuple[APIRouter, ...]] = (
    pages,
    router,
    crawls,
    crawl_pages,
    batches,
    batch_pages,
    records,
    maps,
    search,
    saved_endpoints,
    saved_sites,
    browser_sessions,
    llmstxt,
    documents,
    extractions,
    api_discovery,
    agents,
)


@cache
def described_routes() -> str:
    """The OpenAPI document of these routers as text, made once in the process."""
    return scraping_text(SCRAPING_ROUTERS)


def main() -> None:
    """Writes the committed copy, to the path that is given or to `COPY`."""
    Path(sys.argv[1] if len(sys.argv) > 1 else COPY).write_text(described_routes(), "utf-8")


if __name__ == "__main__":
    main()

"""Firecrawl's Python client, unchanged: every call that is served. Prints what it returned as one JSON object.

Runs in the environment of `make .venv/.stamp-clients`, which has no module of ours.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

from firecrawl import Firecrawl  # type: ignore[import-not-found]
from pydantic import BaseModel


def refused(call: Callable[[], Any]) -> dict[str, Any] | None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - the client's errors share no base
        return {
            "kind": type(error).__name__,
            "status": getattr(error, "status_code", None),
            "message": str(error),
        }
    return None


def plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def main() -> None:
    given = json.loads(sys.argv[1])
    site = given["site"]
    page = f"{site}/article"
    client = Firecrawl(api_key=given["key"], api_url=given["url"])
    schema = {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
    }
    returned: dict[str, Any] = {}
    returned["scrape"] = client.scrape(
        page,
        formats=[
            *("markdown", "html", "rawHtml", "links", "images", "summary", "changeTracking"),
            {"type": "json", "schema": schema},
        ],
        only_main_content=True,
        proxy="stealth",
    )
    returned["plain"] = client.scrape(page)
    returned["missing"] = refused(lambda: client.scrape(f"{site}/missing"))
    returned["map"] = client.map(site, limit=10, sitemap="include")
    returned["search"] = client.search(
        "harbours", limit=2, scrape_options={"formats": ["markdown"]}
    )
    returned["crawl"] = client.crawl(
        f"{site}/pages/0",
        limit=7,
        sitemap="skip",
        crawl_entire_domain=True,
        scrape_options={"formats": ["markdown", "links"]},
        poll_interval=1,
        timeout=60,
    )
    started = client.start_crawl(f"{site}/slow/1?s=1", limit=30, sitemap="skip")
    returned["active"] = client.get_active_crawls()
    returned["cancelled"] = client.cancel_crawl(started.id)
    returned["status"] = client.get_crawl_status(started.id)
    returned["unknown"] = refused(lambda: client.get_crawl_status("no-such-id"))
    urls = [page, f"{site}/pages/1", f"{site}/missing", "http://10.0.0.1/"]
    returned["begun"] = begun = client.start_batch_scrape(
        urls, formats=["markdown"], ignore_invalid_urls=True
    )
    returned["batch"] = client.batch_scrape(
        urls, formats=["markdown"], ignore_invalid_urls=True, poll_interval=1, wait_timeout=60
    )
    returned["errors"] = client.get_batch_scrape_errors(begun.id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        returned["extract"] = client.extract(
            [page], schema=schema, prompt="The title.", poll_interval=1, timeout=60
        )
    returned["parse"] = client.parse(b"a,b\n1,2", filename="table.csv")
    returned["agent"] = refused(lambda: client.start_agent(prompt="Find the depth."))
    print(json.dumps({name: plain(value) for name, value in returned.items()}))


if __name__ == "__main__":
    main()

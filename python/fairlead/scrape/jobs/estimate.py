"""What a crawl would come to: by its depth, and by what is seen of the site within a few seconds.

A page that no link leads to from the start is not crawled, so the depth bounds the pages: none but the
start at 0, what the start links to at 1. Beyond that the site's map says how many addresses there are.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from fairlead.moment import now_ms
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.map.cache import find_map, map_key
from fairlead.scrape.map.sitemap import sitemap_urls
from fairlead.scrape.requests.jobs import EstimateRequest
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.scrape.requests.site import MapRequest
from fairlead.scrape.scraper import Scraper
from fairlead.store.services import Services

LOOK_S: Final = 10.0
ADDRESSES_MAX: Final = 10_000


@dataclass(slots=True)
class SiteView:
    """What was seen of a site. `linked` are addresses of the start page, None where it was not read."""

    known: set[str]
    linked: int | None = None
    sitemap: int | None = None
    kept_map: int | None = None
    is_partial: bool = False
    failures: list[str] = field(default_factory=list)

    def shown(self) -> dict[str, Any]:
        """As the answer has it: null is what was not looked at."""
        return {
            "startPageLinks": self.linked,
            "sitemapAddresses": self.sitemap,
            "keptMapAddresses": self.kept_map,
            "knownAddresses": len(self.known),
            "partial": self.is_partial,
            "failures": self.failures,
        }


async def estimate_crawl(
    services: Services, scraper: Scraper, owner: str, url: str, ask: EstimateRequest
) -> dict[str, Any]:
    """Bounds and a forecast, and what they rest on."""
    settings = await scraper.settings()
    view = SiteView({url})
    if ask.depth_max > 0:
        await _look(services, scraper, owner, url, ask, view)
    pages_max = 1 if ask.depth_max == 0 else ask.pages_max
    if ask.depth_max == 1 and view.linked is not None:
        pages_max = min(pages_max, 1 + view.linked)
    pages = min(pages_max, len(view.known))
    return {
        "maxPages": pages_max,
        "estimatedPages": pages,
        "maxDepth": ask.depth_max,
        "renderMode": "browser" if ask.scrape_options.needs_browser else "http",
        # No option of a page read in a crawl calls a model; extractionOptions ask for lists and files.
        "estimatedLlmCalls": 0,
        "estimatedCostUsd": 0,
        "minDurationMs": pages * settings.scrape_host_delay_ms,
        "lookedAt": view.shown(),
        "note": (
            "maxPages is a bound, estimatedPages what is known of the site by what was looked at. "
            "A crawl calls no model, so it costs nothing; POST /api/extract and /api/extract-schema do."
        ),
    }


async def _look(
    services: Services, scraper: Scraper, owner: str, url: str, ask: EstimateRequest, view: SiteView
) -> None:
    """Adds what can be seen before the time is over; what was seen by then counts."""
    try:
        async with asyncio.timeout(LOOK_S):
            await _read_start(scraper, owner, url, ask, view)
            if ask.depth_max > 1 and not await _read_kept(services, owner, url, view):
                found = await sitemap_urls(scraper, url, min(ask.pages_max, ADDRESSES_MAX))
                view.sitemap = _add(view, url, found)
    except TimeoutError:
        view.is_partial = True


async def _read_start(
    scraper: Scraper, owner: str, url: str, ask: EstimateRequest, view: SiteView
) -> None:
    # By HTTP, whatever the options say: an estimate starts no browser.
    tls = ask.scrape_options.skip_tls_verification
    options = ScrapeOptions.model_validate({"skipTlsVerification": tls})
    try:
        page = await scraper.scrape(url, options, owner, wants_links=True)
    except FetchFailed as failure:
        view.failures.append(failure.reason)
        return
    view.linked = _add(view, url, page.links)


async def _read_kept(services: Services, owner: str, url: str, view: SiteView) -> bool:
    """Whether a map of the site is kept for the caller, as `POST /api/map` makes it by default."""
    key = map_key(owner, url, MapRequest(url=url))
    kept = await services.state.read(lambda con: find_map(con, key, now_ms()))
    if kept is None:
        return False
    view.kept_map = _add(view, url, orjson.loads(kept.document)["links"])
    return True


def _add(view: SiteView, url: str, links: list[str]) -> int:
    """How many of the links are the site's own and are not the start itself."""
    site = urlsplit(url).netloc
    own = {link for link in links if urlsplit(link).netloc == site and link != url}
    view.known |= own
    return len(own)

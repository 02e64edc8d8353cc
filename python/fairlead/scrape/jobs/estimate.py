"""A forecast of a crawl, from its depth and from what can be seen of the site within a few seconds.

A page that no link leads to from the start is not crawled, so the depth bounds the pages: none but the
start at 0, what the start links to at 1. Beyond that the site's map says how many addresses there are.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from fairlead.moment import now_ms
from fairlead.net.url import split_url
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.map.cache import find_map, map_key
from fairlead.scrape.map.sitemap import sitemap_urls
from fairlead.scrape.requests.jobs import EstimateRequest
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.scrape.requests.site import MapRequest
from fairlead.scrape.scraper import Reading, Scraper, scraper_of
from fairlead.store.services import Services

SURVEY_DEADLINE_S: Final = 10.0
ADDRESSES_MAX: Final = 10_000


@dataclass(slots=True)
class SiteView:
    """The size of a site. `linked` counts the links of the start page; None where it was not read."""

    known: set[str]
    linked: int | None = None
    sitemap: int | None = None
    kept_map: int | None = None
    is_partial: bool = False
    failures: list[str] = field(default_factory=list)

    def shown(self) -> dict[str, Any]:
        """The view as the answer shows it; null stands for what was not looked at."""
        return {
            "startPageLinks": self.linked,
            "sitemapAddresses": self.sitemap,
            "keptMapAddresses": self.kept_map,
            "knownAddresses": len(self.known),
            "partial": self.is_partial,
            "failures": self.failures,
        }


async def estimate_crawl(
    services: Services, owner: str, url: str, body: EstimateRequest
) -> dict[str, Any]:
    """The answer of an estimate: bounds of pages and time, a forecast, and what was looked at."""
    settings = await scraper_of(services).settings()
    view = SiteView({url})
    if body.depth_max > 0:
        await _survey(services, owner, url, body, view)
    pages_max = 1 if body.depth_max == 0 else body.pages_max
    if body.depth_max == 1 and view.linked is not None:
        pages_max = min(pages_max, 1 + view.linked)
    pages = min(pages_max, len(view.known))
    model_forms = body.scrape_options.model_forms
    return {
        "maxPages": pages_max,
        "estimatedPages": pages,
        "maxDepth": body.depth_max,
        "renderMode": "browser" if body.scrape_options.needs_browser else "http",
        "estimatedLlmCalls": pages * model_forms,
        # The cost of a call depends on the model and on the page.
        "estimatedCostUsd": None if model_forms else 0,
        "minDurationMs": pages * settings.scrape_host_delay_ms,
        "sampled": view.shown(),
        "note": (
            "maxPages is a bound. estimatedPages counts the pages that were found within ten seconds. A crawl calls "
            "a model for the formats json and summary alone; what that costs depends on the model."
        ),
    }


async def _survey(
    services: Services, owner: str, url: str, body: EstimateRequest, view: SiteView
) -> None:
    """Adds what can be seen of the site within `SURVEY_DEADLINE_S`; `is_partial` where that was not enough."""
    scraper = scraper_of(services)
    try:
        async with asyncio.timeout(SURVEY_DEADLINE_S):
            await _read_start(scraper, owner, url, body, view)
            if body.depth_max > 1 and not await _read_cached_map(services, owner, url, view):
                found = await sitemap_urls(scraper, url, min(body.pages_max, ADDRESSES_MAX))
                view.sitemap = _add(view, url, found)
    except TimeoutError:
        view.is_partial = True


async def _read_start(
    scraper: Scraper, owner: str, url: str, body: EstimateRequest, view: SiteView
) -> None:
    # Over HTTP, whatever the options are: an estimate starts no browser.
    tls = body.scrape_options.skip_tls_verification
    options = ScrapeOptions.model_validate({"skipTlsVerification": tls})
    try:
        page = await scraper.scrape(url, options, owner, Reading(wants_links=True))
    except FetchFailed as failure:
        view.failures.append(failure.reason)
        return
    view.linked = _add(view, url, page.links)


async def _read_cached_map(services: Services, owner: str, url: str, view: SiteView) -> bool:
    """Adds the caller's cached map of the site, made by `POST /api/map` with its defaults; False where there is
    none.
    """
    key = map_key(owner, url, MapRequest(url=url))
    cached = await services.state.read(lambda con: find_map(con, key, now_ms()))
    if cached is None:
        return False
    view.kept_map = _add(view, url, orjson.loads(cached.document)["links"])
    return True


def _add(view: SiteView, url: str, links: list[str]) -> int:
    """Adds the links that belong to the site; their number, without the start itself."""
    site = split_url(url).netloc
    own = {link for link in links if split_url(link).netloc == site and link != url}
    view.known |= own
    return len(own)

"""Finding the addresses of a site: in its sitemaps, and in the links of its first pages."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fairlead.errors import InvalidRequest, RateLimited
from fairlead.net.url import split_url
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.map.sitemap import sitemap_urls
from fairlead.scrape.page.patterns import AddressPatterns
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.scrape.requests.site import MapRequest
from fairlead.scrape.scraper import Reading, Scraper

MAP_PAGES_MAX: Final = 10


class Discovery:
    """The discovery of one site for one request."""

    def __init__(self, scraper: Scraper, url: str, owner: str, request: MapRequest) -> None:
        self._scraper = scraper
        self._url = url
        self._owner = owner
        self._request = request
        self._found: dict[str, None] = {}
        self._counts = {"sitemap": 0, "crawling": 0}

    async def run(self, patterns: AddressPatterns) -> dict[str, Any]:
        """The links that the request asks for, how many each method found, and whether time ran out (`partial`)."""
        request, is_partial = self._request, False
        try:
            async with asyncio.timeout(request.timeout_ms / 1000):
                if not request.skip_sitemaps:
                    await self._read_sitemaps()
                if not request.sitemaps_only:
                    await self._follow_links()
        except TimeoutError:
            is_partial = True
        try:
            links = await self._scraper.choose(patterns, list(self._found), self._owner)
        except FetchFailed as failure:
            if failure.code == "overloaded":
                raise RateLimited(failure.reason, retry_after_s=5) from None
            raise InvalidRequest(failure.reason) from None
        return {
            "links": links[: request.max_urls],
            "counts": self._counts,
            "partial": is_partial,
        }

    async def _read_sitemaps(self) -> None:
        limit = self._request.max_urls
        for link in await sitemap_urls(self._scraper, self._url, limit, self._owner):
            self._counts["sitemap"] += link not in self._found and self._belongs(link)
            if self._belongs(link):
                self._found[link] = None

    async def _follow_links(self) -> None:
        """Adds the links of the start page and of a few pages that it links to."""
        options = ScrapeOptions.model_validate({"skipCache": True})
        limit = self._request.max_urls
        waiting, read = [self._url], 0
        while waiting and read < MAP_PAGES_MAX and len(self._found) < limit:
            target = waiting.pop(0)
            read += 1
            try:
                scraped = await self._scraper.scrape(
                    target, options, self._owner, Reading(wants_links=True)
                )
            except FetchFailed as failure:
                if target == self._url and not self._found:
                    raise InvalidRequest(failure.reason, param="url") from None
                continue
            for link in [scraped.url, *scraped.links]:
                if link not in self._found and self._belongs(link) and len(self._found) < limit:
                    self._found[link] = None
                    self._counts["crawling"] += 1
                    waiting.append(link)

    def _belongs(self, link: str) -> bool:
        host, own = split_url(link).hostname or "", split_url(self._url).hostname or ""
        if split_url(link).netloc == split_url(self._url).netloc:
            return True
        return self._request.include_subdomains and host.endswith("." + own.removeprefix("www."))

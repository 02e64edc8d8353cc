"""The addresses of a whole site, kept for a while."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import orjson
from fastapi import APIRouter, Body
from starlette.responses import JSONResponse

from fairlead.errors import InvalidRequest
from fairlead.moment import iso, moment_of, now_ms
from fairlead.scrape.address import check_url
from fairlead.scrape.calls import answer_deadline
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.limits.owner import OwnerDep
from fairlead.scrape.map.cache import (
    CachedMap,
    find_map,
    forget_maps,
    map_key,
    map_stats,
    store_map,
)
from fairlead.scrape.map.sitemap import sitemap_urls
from fairlead.scrape.page.patterns import Patterns
from fairlead.scrape.requests.page import CacheRequest, ScrapeOptions
from fairlead.scrape.requests.site import MapRequest
from fairlead.scrape.scraper import Scraper, scraper_of
from fairlead.store.services import Services, ServicesDep

router = APIRouter(prefix="/api", tags=["scraping"])

MAP_PAGES_MAX: Final = 10


@router.post("/map", summary="The addresses of a site")
async def map_site(ask: MapRequest, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """From its sitemaps and the links of its first pages. The deadline is soft: what was found by
    then is the answer, and `metadata.partial` says so.
    """
    scraper = scraper_of(services)
    url = check_url(ask.url, scraper.egress)
    patterns = Patterns(
        include_patterns=ask.include_patterns, exclude_patterns=ask.exclude_patterns
    )
    patterns.check()
    started, key = time.monotonic(), map_key(owner, url, ask)
    kept = None
    if not ask.skip_cache:
        kept = await services.state.read(lambda con: find_map(con, key, now_ms()))
    if kept is None:
        found = await _discover(scraper, url, owner, ask, patterns)
        if not found["partial"]:
            await _keep(services, key, owner, url, ask, found)
    else:
        found = orjson.loads(kept.document)
    view: dict[str, Any] = {
        "success": True,
        "data": {
            "links": found["links"],
            "total": len(found["links"]),
            "discoveryMethods": found["counts"],
            "timeTaken": round((time.monotonic() - started) * 1000),
            "fromCache": kept is not None,
            **({"searchQuery": ask.search_query} if ask.search_query else {}),
        },
        "metadata": {
            "url": url,
            "includeSubdomains": ask.include_subdomains,
            "maxUrls": ask.max_urls,
            "timestamp": iso(moment_of(now_ms())),
            "partial": found["partial"],
        },
    }
    if kept is not None:
        view["metadata"]["cachedAt"] = iso(moment_of(kept.stored_at_ms))
    return view


async def _discover(
    scraper: Scraper, url: str, owner: str, ask: MapRequest, patterns: Patterns
) -> dict[str, Any]:
    """The links that are wanted, where they were found, and whether time ran out before all was looked at."""
    found: dict[str, None] = {}
    counts = {"sitemap": 0, "crawling": 0}
    partial = False
    try:
        async with asyncio.timeout(ask.timeout_ms / 1000):
            if not ask.skip_sitemaps:
                for link in await sitemap_urls(scraper, url, ask.max_urls, owner):
                    counts["sitemap"] += link not in found and _belongs(link, url, ask)
                    if _belongs(link, url, ask):
                        found[link] = None
            if not ask.sitemaps_only:
                await _follow(scraper, url, owner, ask, found, counts)
    except TimeoutError:
        partial = True
    links = patterns.accepted(list(found))
    if ask.search_query:
        words = ask.search_query.lower().split()
        links = [link for link in links if all(word in link.lower() for word in words)]
    return {"links": links[: ask.max_urls], "counts": counts, "partial": partial}


async def _keep(
    services: Services, key: str, owner: str, url: str, ask: MapRequest, found: dict[str, Any]
) -> None:
    document, at_ms = orjson.dumps(found).decode(), now_ms()
    kept = CachedMap(
        key, owner, url, len(document.encode()), at_ms, at_ms + ask.cache_ttl * 1000, document
    )
    await services.state.database.write(lambda con: store_map(con, kept))


async def _follow(
    scraper: Scraper,
    url: str,
    owner: str,
    ask: MapRequest,
    found: dict[str, None],
    counts: dict[str, int],
) -> None:
    """The links of the start page and of a few pages that it links to."""
    options = ScrapeOptions.model_validate({"skipCache": True})
    waiting, read = [url], 0
    while waiting and read < MAP_PAGES_MAX and len(found) < ask.max_urls:
        target = waiting.pop(0)
        read += 1
        try:
            scraped = await scraper.scrape(target, options, owner, wants_links=True)
        except FetchFailed as failure:
            if target == url and not found:
                raise InvalidRequest(failure.reason, param="url") from None
            continue
        for link in [scraped.url, *scraped.links]:
            if link not in found and _belongs(link, url, ask) and len(found) < ask.max_urls:
                found[link] = None
                counts["crawling"] += 1
                waiting.append(link)


def _belongs(link: str, url: str, ask: MapRequest) -> bool:
    host, own = urlsplit(link).hostname or "", urlsplit(url).hostname or ""
    if urlsplit(link).netloc == urlsplit(url).netloc:
        return True
    return ask.include_subdomains and host.endswith("." + own.removeprefix("www."))


@router.get(
    "/map/health",
    response_model=None,
    summary="Whether sites can be mapped, or this one",
    responses={503: {"description": "The site cannot be mapped now."}},
)
async def map_health(
    services: ServicesDep, owner: OwnerDep, url: str | None = None
) -> JSONResponse | dict[str, Any]:
    """With `url` its start page is asked for, by the same rules as a map: 503 where it is not to be
    had. Without, no site is asked for, and `status` says so.
    """
    scraper = scraper_of(services)
    stats = await services.state.read(lambda con: map_stats(con, owner, now_ms()))
    told: dict[str, Any] = {
        "status": "not-checked",
        "timestamp": iso(moment_of(now_ms())),
        "cachedMaps": stats.count,
    }
    if url is None:
        return {"success": True, **told, "note": "Send `url` to have a site asked for."}
    told |= {"status": "healthy"}
    told["url"] = check_url(url, scraper.egress)
    try:
        async with answer_deadline():
            fetched = await scraper.get(told["url"], ScrapeOptions(), owner)
        if fetched is None or fetched.status >= 400:
            answered = 304 if fetched is None else fetched.status
            raise FetchFailed(f"The page answered {answered}.", status=answered, code="status")
    except FetchFailed as failure:
        told |= {"status": "unhealthy", "error": failure.reason, "reason": failure.code}
        return JSONResponse({"success": False, **told}, 503)
    return {
        "success": True,
        **told,
        "statusCode": fetched.status,
        "responseTime": round(fetched.elapsed_ms),
    }


@router.get("/map/cache/stats", summary="How many maps are kept for the caller, and how large")
async def map_cache_stats(services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """`totalKeys` maps of `totalSize` bytes."""
    stats = await services.state.read(lambda con: map_stats(con, owner, now_ms()))
    return {"success": True, "totalKeys": stats.count, "totalSize": stats.size_bytes}


@router.post(
    "/map/cache/clear", summary="Forget maps: those of one address, or all of the caller's"
)
async def clear_map_cache(
    services: ServicesDep, owner: OwnerDep, ask: Annotated[CacheRequest | None, Body()] = None
) -> dict[str, Any]:
    """Drops the caller's own maps."""
    url = check_url(ask.url, scraper_of(services).egress) if ask and ask.url else None
    count = await services.state.database.write(lambda con: forget_maps(con, owner, url))
    message = f"Map cache cleared for URL: {url}" if url else "Map cache cleared"
    return {"success": True, "message": message, "count": count}

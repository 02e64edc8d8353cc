"""Routes of maps: the addresses of a site, their cache, and whether a site can be mapped."""

from __future__ import annotations

import time
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Body
from starlette.responses import JSONResponse

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
from fairlead.scrape.map.discovery import Discovery
from fairlead.scrape.page.patterns import AddressPatterns
from fairlead.scrape.requests.page import CacheRequest, ScrapeOptions
from fairlead.scrape.requests.site import MapRequest
from fairlead.scrape.scraper import scraper_of
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api", tags=["scraping"])


@router.post("/map", summary="The addresses of a site")
async def map_site(body: MapRequest, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """From its sitemaps and the links of its first pages. The deadline is soft: what was found by
    then is the answer, and `metadata.partial` says so.
    """
    scraper = scraper_of(services)
    url = check_url(body.url, scraper.egress)
    patterns = AddressPatterns(
        include=tuple(body.include_patterns),
        exclude=tuple(body.exclude_patterns),
        words=tuple((body.search_query or "").split()),
    )
    await scraper.check_patterns(patterns, owner)
    started, key = time.monotonic(), map_key(owner, url, body)
    entry = None
    if not body.skip_cache:
        entry = await services.state.read(lambda con: find_map(con, key, now_ms()))
    if entry is None:
        found = await Discovery(scraper, url, owner, body).run(patterns)
        if not found["partial"]:
            document, at_ms = orjson.dumps(found).decode(), now_ms()
            cached = CachedMap(
                key=key,
                owner=owner,
                url=url,
                size_bytes=len(document.encode()),
                stored_at_ms=at_ms,
                expires_at_ms=at_ms + body.cache_ttl * 1000,
                document=document,
            )
            await services.state.database.write(lambda con: store_map(con, cached))
    else:
        found = orjson.loads(entry.document)
    view: dict[str, Any] = {
        "success": True,
        "data": {
            "links": found["links"],
            "total": len(found["links"]),
            "discoveryMethods": found["counts"],
            "timeTaken": round((time.monotonic() - started) * 1000),
            "fromCache": entry is not None,
            **({"searchQuery": body.search_query} if body.search_query else {}),
        },
        "metadata": {
            "url": url,
            "includeSubdomains": body.include_subdomains,
            "maxUrls": body.max_urls,
            "timestamp": iso(moment_of(now_ms())),
            "partial": found["partial"],
        },
    }
    view |= body.lowered
    if entry is not None:
        view["metadata"]["cachedAt"] = iso(moment_of(entry.stored_at_ms))
    return view


@router.get(
    "/map/health",
    response_model=None,
    summary="Whether sites can be mapped, or this one",
    responses={503: {"description": "The site cannot be mapped now."}},
)
async def map_health(
    services: ServicesDep, owner: OwnerDep, url: str | None = None
) -> JSONResponse | dict[str, Any]:
    """With `url` its start page is fetched, by the same rules as a map: 503 if that fails. Without `url` no site
    is fetched, and `status` says so.
    """
    scraper = scraper_of(services)
    stats = await services.state.read(lambda con: map_stats(con, owner, now_ms()))
    health: dict[str, Any] = {
        "status": "not-checked",
        "timestamp": iso(moment_of(now_ms())),
        "cachedMaps": stats.count,
    }
    if url is None:
        return {"success": True, **health, "note": "Send `url` to check a site."}
    health |= {"status": "healthy"}
    health["url"] = check_url(url, scraper.egress)
    try:
        async with answer_deadline():
            fetched = await scraper.get(health["url"], ScrapeOptions(), owner)
        if fetched is None or fetched.status >= 400:
            answered = 304 if fetched is None else fetched.status
            raise FetchFailed(f"The page answered {answered}.", status=answered, code="status")
    except FetchFailed as failure:
        health |= {"status": "unhealthy", "error": failure.reason, "reason": failure.code}
        return JSONResponse({"success": False, **health}, 503)
    return {
        "success": True,
        **health,
        "statusCode": fetched.status,
        "responseTime": round(fetched.elapsed_ms),
    }


@router.get("/map/cache/stats", summary="How many maps are kept for the caller, and how large")
async def map_cache_stats(services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """`totalKeys` maps of `totalSize` bytes."""
    stats = await services.state.read(lambda con: map_stats(con, owner, now_ms()))
    return {"success": True, "totalKeys": stats.count, "totalSize": stats.size_bytes}


@router.post(
    "/map/cache/clear", summary="Delete maps: those of one address, or all of the caller's"
)
async def clear_map_cache(
    services: ServicesDep, owner: OwnerDep, body: Annotated[CacheRequest | None, Body()] = None
) -> dict[str, Any]:
    """Drops the caller's own maps."""
    url = check_url(body.url, scraper_of(services).egress) if body and body.url else None
    count = await services.state.database.write(lambda con: forget_maps(con, owner, url))
    message = f"Map cache cleared for URL: {url}" if url else "Map cache cleared"
    return {"success": True, "message": message, "count": count}

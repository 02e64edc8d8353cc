"""Firecrawl's routes that answer at once: scrape, map, search."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fastapi import APIRouter

from fairlead.errors import InvalidRequest, UpstreamTimeout
from fairlead.scrape.address import check_url
from fairlead.scrape.calls import ANSWER_DEADLINE_S, read_page
from fairlead.scrape.firecrawl.document import firecrawl_document
from fairlead.scrape.firecrawl.options import translate, validated, warning_of
from fairlead.scrape.firecrawl.requests import MapBody, ScrapeBody, SearchBody
from fairlead.scrape.limits.owner import OwnerDep
from fairlead.scrape.map.router import map_site
from fairlead.scrape.requests.site import MapRequest
from fairlead.scrape.scraper import scraper_of
from fairlead.scrape.search_router import FoundPage, search_and_read
from fairlead.search.query import SearchQuery
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/v2", tags=["firecrawl"])

SEARCH_LIMIT: Final = 5
MAP_LIMIT: Final = 5000
_TIME_RANGES: Final = {
    "qdr:h": "hour",
    "qdr:d": "day",
    "qdr:w": "week",
    "qdr:m": "month",
    "qdr:y": "year",
}
_CODES: Final = {"timeout": "SCRAPE_TIMEOUT", "content_type": "SCRAPE_UNSUPPORTED_FILE_ERROR"}
"""Firecrawl's codes of failures, by ours. The code of every other one is `SCRAPE_SITE_ERROR`."""


@router.post("/scrape", summary="Scrape a page (Firecrawl)", name="firecrawl_scrape")
async def scrape(body: ScrapeBody, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """`data` has the requested formats; without `formats` the main content as markdown."""
    url = check_url(body.url, scraper_of(services).egress)
    translated = translate(body)
    options = translated.options
    if options.timeout is not None:
        # Clients may give a page more time than an answer has.
        most = round(ANSWER_DEADLINE_S * 1000)
        options = options.model_copy(update={"timeout": min(options.timeout, most)})
    try:
        scraped = await read_page(services, url, options, owner)
    except InvalidRequest as refusal:
        metadata = refusal.extra.get("metadata")
        if isinstance(metadata, dict):
            refusal.extra["code"] = _CODES.get(metadata.get("reason", ""), "SCRAPE_SITE_ERROR")
        raise
    page = firecrawl_document(scraped.document, source_url=body.url)
    return {"success": True, "data": {**page, **warning_of(translated.passed_over)}}


@router.post("/map", summary="The addresses of a site (Firecrawl)", name="firecrawl_map")
async def map_addresses(body: MapBody, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """From its sitemaps and the links of its first pages."""
    fields: dict[str, Any] = {
        "url": body.url,
        "maxUrls": body.limit or MAP_LIMIT,
        "includeSubdomains": body.include_subdomains is not False,
        "skipSitemaps": body.sitemap == "skip",
        "sitemapsOnly": body.sitemap == "only",
    }
    if body.search is not None:
        fields["searchQuery"] = body.search
    if body.timeout is not None:
        fields["timeoutMs"] = max(1000, round(body.timeout))
    answer = await map_site(validated(MapRequest, fields), services, owner)
    links = [{"url": link} for link in answer["data"]["links"]]
    return {"success": True, "links": links, **warning_of(body.unknown)}


@router.post(
    "/search",
    summary="Search the web, and scrape what is found (Firecrawl)",
    name="firecrawl_search",
)
async def search(body: SearchBody, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """`data.web` has the results; with `scrapeOptions` each has the formats of its page too."""
    query, passed_over = _query(body)
    options = None
    if body.scrape_options is not None and body.scrape_options.formats:
        translated = translate(body.scrape_options, "scrapeOptions.")
        options = translated.options
        passed_over += translated.passed_over
    deadline_s = ANSWER_DEADLINE_S
    if body.timeout is not None:
        deadline_s = min(deadline_s, body.timeout / 1000)
    try:
        async with asyncio.timeout(deadline_s):
            _, found = await search_and_read(services, query, options, owner)
    except TimeoutError:
        raise UpstreamTimeout(f"The search took longer than {deadline_s:g} s.") from None
    web = [_result(result) for result in found]
    return {"success": True, "data": {"web": web}, **warning_of(passed_over)}


def _query(body: SearchBody) -> tuple[SearchQuery, list[str]]:
    """Our query, and what it leaves out."""
    passed_over = body.unknown
    fields: dict[str, Any] = {
        "query": body.query,
        "max_results": body.limit or SEARCH_LIMIT,
        "filters": {
            "include_domains": body.include_domains or [],
            "exclude_domains": body.exclude_domains or [],
        },
    }
    if body.tbs in _TIME_RANGES:
        fields["time_range"] = _TIME_RANGES[body.tbs or ""]
    elif body.tbs is not None:
        passed_over.append(f"tbs ({body.tbs[:40]})")
    if body.country is not None:
        fields["country"] = body.country
    for source in body.sources or []:
        name = source if isinstance(source, str) else str(source.get("type"))
        if name != "web":
            passed_over.append(f"sources ({name[:40]})")
    return validated(SearchQuery, fields), passed_over


def _result(found: FoundPage) -> dict[str, Any]:
    view: dict[str, Any] = {
        "url": found.url,
        "title": found.title,
        "description": found.snippet,
        "position": found.position,
    }
    if found.document is not None:
        view |= firecrawl_document(found.document, source_url=found.url)
    if found.error is not None:
        view["metadata"] = {"sourceURL": found.url, "error": found.error}
    return view

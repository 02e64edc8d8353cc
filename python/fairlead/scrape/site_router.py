"""Whole sites and the web: map, search, and scrapes saved as endpoints of their own."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any, Final
from urllib.parse import quote, urlsplit
from uuid import uuid4

import orjson
from fastapi import APIRouter
from pydantic import ValidationError
from starlette.requests import Request

from fairlead.egress import Egress
from fairlead.errors import Conflict, InvalidRequest, NotFound
from fairlead.moment import iso, moment_of, now_ms
from fairlead.scrape.address import BadAddress, canonical, checked
from fairlead.scrape.fetch import FetchFailed
from fairlead.scrape.jobs.patterns import Patterns
from fairlead.scrape.model import checked_schema
from fairlead.scrape.options import (
    EndpointAsk,
    ExtractAsk,
    MapAsk,
    ScrapeAsk,
    ScrapeOptions,
    SearchAsk,
)
from fairlead.scrape.owner import BaseDep, OwnerDep
from fairlead.scrape.router import extraction, read_page, within_a_minute
from fairlead.scrape.scraper import Scraper, scraper_of
from fairlead.scrape.sitemap import sitemap_urls
from fairlead.search.ask import SearchQuery
from fairlead.search.run import Searched
from fairlead.search.run import search as search_web
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api", tags=["scraping"])

ENDPOINTS_MAX: Final = 500
MAP_PAGES_MAX: Final = 10

_PARAMETER = re.compile(r"\{([A-Za-z][A-Za-z0-9_]{0,39})\}")


@router.post("/map", summary="The addresses of a site")
async def map_site(ask: MapAsk, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """From its sitemaps and the links of its first pages. The deadline is soft: what was found by
    then is the answer, and `metadata.partial` says so.
    """
    scraper = scraper_of(services)
    url = checked(ask.url, scraper.egress)
    patterns = Patterns(
        include_patterns=ask.include_patterns, exclude_patterns=ask.exclude_patterns
    )
    patterns.check()
    started = time.monotonic()
    found: dict[str, None] = {}
    counts = {"sitemap": 0, "crawling": 0}
    partial = False
    try:
        async with asyncio.timeout(ask.timeout_ms / 1000):
            if not ask.skip_sitemaps:
                for link in await sitemap_urls(scraper, url, ask.max_urls):
                    counts["sitemap"] += link not in found and _belongs(link, url, ask)
                    if _belongs(link, url, ask):
                        found[link] = None
            if not ask.sitemaps_only:
                await _follow(scraper, url, owner, ask, found, counts)
    except TimeoutError:
        partial = True
    links = patterns.taken(list(found))
    if ask.search_query:
        words = ask.search_query.lower().split()
        links = [link for link in links if all(word in link.lower() for word in words)]
    links = links[: ask.max_urls]
    return {
        "success": True,
        "data": {
            "links": links, "total": len(links), "discoveryMethods": counts,
            "timeTaken": round((time.monotonic() - started) * 1000), "fromCache": False,
            **({"searchQuery": ask.search_query} if ask.search_query else {}),
        },
        "metadata": {
            "url": url, "includeSubdomains": ask.include_subdomains, "maxUrls": ask.max_urls,
            "timestamp": iso(moment_of(now_ms())), "partial": partial,
        },
    }  # fmt: skip


async def _follow(
    scraper: Scraper, url: str, owner: str, ask: MapAsk, found: dict[str, None],
    counts: dict[str, int],
) -> None:  # fmt: skip
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


def _belongs(link: str, url: str, ask: MapAsk) -> bool:
    host, own = urlsplit(link).hostname or "", urlsplit(url).hostname or ""
    if urlsplit(link).netloc == urlsplit(url).netloc:
        return True
    return ask.include_subdomains and host.endswith("." + own.removeprefix("www."))


@router.post("/search", summary="Search the web, and scrape what is found")
async def search(ask: SearchAsk, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """By the search providers, of which the setting `scrapeSearchUrl` is one."""
    scraper = scraper_of(services)
    async with within_a_minute():
        answer = await search_web(
            services, SearchQuery(query=ask.query, max_results=ask.limit, language=ask.lang)
        )
        results = _listed(answer)
        if ask.scrape_results:
            options = ask.scrape_options.model_copy(update={"extractor_format": "markdown"})
            await asyncio.gather(
                *(_read_result(scraper, result, options, owner) for result in results)
            )
    return {
        "success": True, "query": ask.query, "provider": answer.provider, "count": len(results),
        "results": results,
    }  # fmt: skip


def _listed(answer: Searched) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for one in answer.results:
        try:
            url = canonical(one.url)
        except BadAddress:
            continue
        found.append(
            {"position": len(found) + 1, "title": one.title, "url": url, "snippet": one.snippet}
        )
    return found


async def _read_result(
    scraper: Scraper, result: dict[str, Any], options: ScrapeOptions, owner: str
) -> None:
    try:
        url = checked(result["url"], scraper.egress)
        result["markdown"] = (await scraper.scrape(url, options, owner)).document["content"]
    except (FetchFailed, InvalidRequest) as failure:
        result["scrapeError"] = (
            failure.reason if isinstance(failure, FetchFailed) else failure.message
        )


@router.post("/endpoints", status_code=201, summary="Save a scrape or an extraction as an endpoint")
async def save(
    ask: EndpointAsk, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """It answers under `GET /api/endpoints/{slug}`, its parameters in the query."""
    _check_endpoint(ask, scraper_of(services).egress)
    definition = ask.model_dump(mode="json", by_alias=True)
    endpoint_id, at_ms = str(uuid4()), now_ms()

    def work(con: Connection) -> None:
        count, taken = con.execute(
            "SELECT count(*), count(*) FILTER (slug = ?) FROM scrape_endpoints WHERE owner = ?",
            [ask.slug, owner],
        ).fetchone() or (0, 0)
        if taken:
            raise Conflict("There is an endpoint with this slug: delete it first.", param="slug")
        if count >= ENDPOINTS_MAX:
            raise Conflict(f"There are {ENDPOINTS_MAX} endpoints: delete some first.")
        con.execute(
            "INSERT INTO scrape_endpoints (id, owner, slug, definition, created_at_ms) "
            "VALUES (?, ?, ?, ?, ?)",
            [endpoint_id, owner, ask.slug, orjson.dumps(definition).decode(), at_ms],
        )

    await services.state.database.write(work)
    return {"success": True, "endpoint": _endpoint_view(endpoint_id, definition, at_ms, base)}


@router.get("/endpoints", summary="List saved endpoints")
async def endpoints(services: ServicesDep, owner: OwnerDep, base: BaseDep) -> dict[str, Any]:
    """The caller's endpoints, by slug."""
    rows = await services.state.read(
        lambda con: con.execute(
            "SELECT id, definition, created_at_ms FROM scrape_endpoints WHERE owner = ? ORDER BY slug",
            [owner],
        ).fetchall()
    )
    views = [_endpoint_view(row[0], orjson.loads(row[1]), row[2], base) for row in rows]
    return {"success": True, "count": len(views), "endpoints": views}


@router.get("/endpoints/{slug}", summary="Run a saved endpoint")
async def run(
    slug: str, services: ServicesDep, owner: OwnerDep, request: Request
) -> dict[str, Any]:
    """Answers as `POST /api/scrape`, or with a schema as `POST /api/extract-schema`."""
    row = await services.state.read(
        lambda con: con.execute(
            "SELECT definition FROM scrape_endpoints WHERE owner = ? AND slug = ?", [owner, slug]
        ).fetchone()
    )
    if row is None:
        raise NotFound("Endpoint not found", param="slug")
    ask = EndpointAsk.model_validate_json(row[0])
    url = checked(_filled(ask, dict(request.query_params)), scraper_of(services).egress)
    if ask.schema_ is None:
        whole = ScrapeAsk.model_validate({"url": url, "options": ask.options})
        scraped = await read_page(services, url, whole.options, owner)
        return {"success": True, **scraped.document}
    async with within_a_minute():
        extract = ExtractAsk.model_validate(
            {"url": url, "schema": ask.schema_, "options": ask.options}
        )
        return await extraction(services, extract, owner)


@router.delete("/endpoints/{slug}", summary="Delete a saved endpoint")
async def delete(slug: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """It is gone when this returns."""

    def work(con: Connection) -> bool:
        done = con.execute(
            "DELETE FROM scrape_endpoints WHERE owner = ? AND slug = ? RETURNING 1", [owner, slug]
        )
        return done.fetchone() is not None

    if not await services.state.database.write(work):
        raise NotFound("Endpoint not found", param="slug")
    return {"success": True, "message": "Endpoint deleted"}


def _check_endpoint(ask: EndpointAsk, egress: Egress) -> None:
    checked(_PARAMETER.sub("x", ask.url), egress)
    parts = urlsplit(ask.url)
    if _PARAMETER.search(parts.netloc) or _PARAMETER.search(parts.scheme):
        raise InvalidRequest("url may have parameters in its path and query only.", param="url")
    unknown = set(_PARAMETER.findall(ask.url)) ^ set(ask.params)
    if unknown:
        raise InvalidRequest(
            f"params and the names in url differ: {', '.join(sorted(unknown))}.", param="params"
        )
    if ask.schema_ is not None:
        checked_schema(ask.schema_)
    kind = ScrapeAsk if ask.schema_ is None else ExtractAsk
    body = {"url": "http://x", "options": ask.options} | (
        {} if ask.schema_ is None else {"schema": ask.schema_}
    )
    try:
        kind.model_validate(body)
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidRequest(f"{where} {first['msg']}.", param=where) from None


def _filled(ask: EndpointAsk, sent: dict[str, str]) -> str:
    unknown = sorted(set(sent) - set(ask.params))
    if unknown:
        raise InvalidRequest(f"{unknown[0]} is not a parameter of this endpoint.", param=unknown[0])
    values = {**ask.params, **sent}
    for name, value in values.items():
        if value is None:
            raise InvalidRequest(f"{name} is required: add it to the query.", param=name)
    return _PARAMETER.sub(lambda match: quote(values[match[1]] or "", safe=""), ask.url)


def _endpoint_view(
    endpoint_id: str, definition: dict[str, Any], at_ms: int, base: str
) -> dict[str, Any]:
    return {
        "id": endpoint_id, **definition, "createdAt": iso(moment_of(at_ms)),
        "endpointUrl": f"{base}/api/endpoints/{definition['slug']}",
    }  # fmt: skip

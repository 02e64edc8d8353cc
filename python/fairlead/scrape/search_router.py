"""The route that searches the web and scrapes what is found."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter

from fairlead.errors import InvalidRequest
from fairlead.scrape.address import BadAddress, canonical, check_url
from fairlead.scrape.calls import answer_deadline
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.limits.owner import OwnerDep
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.scrape.requests.site import SearchRequest
from fairlead.scrape.scraper import Scraper, scraper_of
from fairlead.search.query import SearchQuery
from fairlead.search.run import SearchOutcome
from fairlead.search.run import search as search_web
from fairlead.store.services import Services, ServicesDep

router = APIRouter(prefix="/api", tags=["scraping"])


@router.post("/search", summary="Search the web, and scrape what is found")
async def search(body: SearchRequest, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """By the search providers, of which the setting `scrapeSearchUrl` is one."""
    query = SearchQuery(
        query=body.query, max_results=body.limit, language=body.lang, provider=body.provider
    )
    options = None
    if body.scrape_results:
        options = body.scrape_options.model_copy(update={"extractor_format": "markdown"})
    async with answer_deadline():
        provider, found = await search_and_read(services, query, options, owner)
    return {
        "success": True,
        "query": body.query,
        "provider": provider,
        "count": len(found),
        "results": [_view(result) for result in found],
        **body.lowered,
    }


@dataclass(slots=True)
class FoundPage:
    """A result of a search. `document` is the page that was read for it, `error` why it was not."""

    position: int
    title: str
    url: str
    snippet: str
    document: dict[str, Any] | None = None
    error: str | None = None


async def search_and_read(
    services: Services, query: SearchQuery, options: ScrapeOptions | None, owner: str
) -> tuple[str, list[FoundPage]]:
    """The provider that answered, and its results; with `options` each page is read."""
    scraper = scraper_of(services)
    if options is not None:
        await scraper.check_model_forms(options, owner)
    answer = await search_web(services, query)
    found = _listed(answer)
    if options is not None:
        await asyncio.gather(*(_read_result(scraper, result, options, owner) for result in found))
    return answer.provider, found


def _listed(answer: SearchOutcome) -> list[FoundPage]:
    found: list[FoundPage] = []
    for one in answer.results:
        try:
            url = canonical(one.url)
        except BadAddress:
            continue
        found.append(FoundPage(len(found) + 1, one.title, url, one.snippet))
    return found


async def _read_result(
    scraper: Scraper, result: FoundPage, options: ScrapeOptions, owner: str
) -> None:
    try:
        url = check_url(result.url, scraper.egress)
        result.document = (await scraper.scrape(url, options, owner)).document
    except (FetchFailed, InvalidRequest) as failure:
        result.error = failure.reason if isinstance(failure, FetchFailed) else failure.message


def _view(result: FoundPage) -> dict[str, Any]:
    view: dict[str, Any] = {
        "position": result.position,
        "title": result.title,
        "url": result.url,
        "snippet": result.snippet,
    }
    if result.document is not None:
        view["markdown"] = result.document["content"]
    if result.error is not None:
        view["scrapeError"] = result.error
    return view

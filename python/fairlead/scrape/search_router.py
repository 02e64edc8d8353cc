"""The route that searches the web and scrapes what is found."""

from __future__ import annotations

import asyncio
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
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api", tags=["scraping"])


@router.post("/search", summary="Search the web, and scrape what is found")
async def search(body: SearchRequest, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """By the search providers, of which the setting `scrapeSearchUrl` is one."""
    scraper = scraper_of(services)
    async with answer_deadline():
        answer = await search_web(
            services,
            SearchQuery(
                query=body.query, max_results=body.limit, language=body.lang, provider=body.provider
            ),
        )
        results = _listed(answer)
        if body.scrape_results:
            options = body.scrape_options.model_copy(update={"extractor_format": "markdown"})
            await asyncio.gather(
                *(_read_result(scraper, result, options, owner) for result in results)
            )
    return {
        "success": True,
        "query": body.query,
        "provider": answer.provider,
        "count": len(results),
        "results": results,
    }


def _listed(answer: SearchOutcome) -> list[dict[str, Any]]:
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
        url = check_url(result["url"], scraper.egress)
        result["markdown"] = (await scraper.scrape(url, options, owner)).document["content"]
    except (FetchFailed, InvalidRequest) as failure:
        result["scrapeError"] = (
            failure.reason if isinstance(failure, FetchFailed) else failure.message
        )

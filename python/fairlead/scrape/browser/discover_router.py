"""`POST /api/discover-apis`: the calls that a page makes in a browser."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from fairlead.scrape.address import check_url
from fairlead.scrape.browser.api_calls import Calls
from fairlead.scrape.calls import answer_deadline
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.limits.owner import OwnerDep
from fairlead.scrape.requests.browser import DiscoverRequest
from fairlead.scrape.scraper import scraper_of
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api", tags=["scraping"])


@router.post("/discover-apis", summary="The calls that a page makes in a browser")
async def discover(ask: DiscoverRequest, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:  # noqa: ARG001 - only a key may ask
    """`apis` are the calls of the page's scripts, in their order: method, address, status, type, and the
    shape and a sample of what was sent and came back.
    """
    scraper = scraper_of(services)
    url = check_url(ask.url, scraper.egress)
    calls = Calls()
    async with answer_deadline():
        try:
            async with scraper.admit(url) as settings:
                fetched = await scraper.renderer.fetch(url, ask.options.as_scrape(), calls)
            await scraper.check_redirect(fetched, settings)
        except FetchFailed as failure:
            raise failure.as_refusal() from None
    apis = calls.view()
    return {
        "success": True,
        "url": fetched.url,
        "status": fetched.status,
        "count": len(apis),
        "more": calls.more,
        "apis": apis,
    }

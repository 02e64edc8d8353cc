"""Records of a page by selectors that heal."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from fairlead.scrape.address import check_url
from fairlead.scrape.calls import answer_deadline
from fairlead.scrape.css.records import RecordsPage, extract_records, page_key
from fairlead.scrape.css.schema import ExtractAutoRequest
from fairlead.scrape.limits.owner import OwnerDep
from fairlead.scrape.scraper import scraper_of
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api", tags=["scraping"])


@router.post("/extract-auto", summary="Extract records from a page by selectors that heal")
async def extract_auto(
    ask: ExtractAutoRequest, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """`data` has the records. The selectors are `cssSchema`, or stored ones for this path and these fields. If
    less than half of the fields are filled, a model looks for new ones, which are stored for seven days.
    """
    url = check_url(ask.url, scraper_of(services).egress)
    async with answer_deadline():
        page = RecordsPage(owner, url, ask.options, page_key(owner, url, ask))
        extracted = await extract_records(services, page, ask, force_reheal=ask.force_reheal)
    return extracted.view()

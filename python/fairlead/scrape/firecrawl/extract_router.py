"""Firecrawl's extractions, which are jobs of the scraping API."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import orjson
from fastapi import APIRouter
from starlette.responses import Response

from fairlead.errors import InvalidRequest
from fairlead.scrape.address import check_url
from fairlead.scrape.firecrawl.options import translate, validated, warning_of
from fairlead.scrape.firecrawl.requests import ExtractBody, PageOptions
from fairlead.scrape.jobs.extract_router import extraction_view, start
from fairlead.scrape.limits.owner import BaseDep, OwnerDep
from fairlead.scrape.requests.jobs import ExtractJobRequest
from fairlead.scrape.scraper import scraper_of
from fairlead.store.services import Services, ServicesDep

router = APIRouter(prefix="/v2/extract", tags=["firecrawl"])

SITE: Final = "/*"
"""The end of an address that stands for the pages of a site."""
_STATUS: Final = {"pending": "processing", "completed_with_errors": "completed"}


@router.post(
    "", summary="Extract data from pages in the background (Firecrawl)", name="firecrawl_extract"
)
async def start_extraction(
    body: ExtractBody, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """The extraction's id. An address that ends with `/*` stands for the pages of its site; it is sent alone."""
    pages = translate(body.scrape_options or PageOptions(), "scrapeOptions.")
    prompts = [text for text in (body.system_prompt, body.prompt) if text]
    fields: dict[str, Any] = {**_pages(body, services), "schema": body.schema_}
    if prompts:
        fields["prompt"] = "\n\n".join(prompts)
    request = validated(ExtractJobRequest, fields).model_copy(
        update={"scrape_options": pages.options}
    )
    started = await start(request, services, owner, base)
    return {
        "success": True,
        "id": started["id"],
        **warning_of([*body.unknown, *pages.passed_over]),
    }


def _pages(body: ExtractBody, services: Services) -> dict[str, Any]:
    if any(url.endswith(SITE) for url in body.urls):
        if len(body.urls) > 1:
            raise InvalidRequest(
                "urls has an address that ends with /*: send it alone, or name each page.",
                param="urls",
            )
        return {"url": body.urls[0].removesuffix("*")}
    egress = scraper_of(services).egress
    urls: list[str] = []
    for number, url in enumerate(body.urls):
        try:
            urls.append(check_url(url, egress, f"urls[{number}]"))
        except InvalidRequest:
            if not body.ignore_invalid_urls:
                raise
    if not urls:
        raise InvalidRequest("urls has no address that can be read.", param="urls")
    return {"urls": urls}


@router.get(
    "/{job_id}",
    summary="An extraction, or how far it is (Firecrawl)",
    response_model=dict[str, Any],
    name="firecrawl_extract_status",
)
async def show(job_id: str, services: ServicesDep, owner: OwnerDep) -> Response:
    """`data` is the data of all pages in one value: lists are joined, and of other values the first counts."""
    view = await extraction_view(services, job_id, owner)
    answer: dict[str, Any] = {
        "success": True,
        "status": _STATUS.get(view["status"], view["status"]),
        "data": [],
    }
    for name in ("expiresAt", "error"):
        if name in view:
            answer[name] = view[name]
    if result := view.get("result"):
        answer["tokensUsed"] = sum(result["tokens"].values())
        answer["sources"] = {"pages": result["sources"]}
        answer["data"] = await asyncio.to_thread(merged, result["data"])
    # A model's data may be large, so it is not serialized on the event loop.
    return Response(await asyncio.to_thread(orjson.dumps, answer), media_type="application/json")


def merged(values: list[Any]) -> Any:
    """The data of several pages as one value. Objects are merged member by member, lists joined without repetitions; of
    other values the first that is not null counts. Values of different kinds become a list.
    """
    present = [value for value in values if value is not None]
    if len(present) < 2:
        return present[0] if present else None
    if all(isinstance(value, dict) for value in present):
        names = dict.fromkeys(name for value in present for name in value)
        return {name: merged([value[name] for value in present if name in value]) for name in names}
    if all(isinstance(value, list) for value in present):
        return _without_repetitions([item for value in present for item in value])
    if any(isinstance(value, dict | list) for value in present):
        return present
    return present[0]


def _without_repetitions(items: list[Any]) -> list[Any]:
    unique = {orjson.dumps(item, option=orjson.OPT_SORT_KEYS): item for item in reversed(items)}
    return list(reversed(unique.values()))

"""Routes of extraction jobs: data from many pages by a model."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import orjson
from fastapi import APIRouter
from starlette.responses import Response

from fairlead.scrape.address import check_url
from fairlead.scrape.calls import resolve_model
from fairlead.scrape.jobs.extraction import ExtractionResult
from fairlead.scrape.jobs.start import new_job, start_job
from fairlead.scrape.jobs.table import (
    FrontierEntry,
    Page,
    PageSelection,
    find_job_progress,
    list_pages,
)
from fairlead.scrape.jobs.view import job_view, progress_view
from fairlead.scrape.limits.owner import BaseDep, OwnerDep
from fairlead.scrape.requests.jobs import EXTRACT_PAGES_MAX, ExtractJobRequest
from fairlead.scrape.scraper import scraper_of
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep

router = APIRouter(prefix="/api/extract", tags=["scraping"])


@router.post("", summary="Extract data from a list of pages in the background")
async def start(
    body: ExtractJobRequest, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """A job's id and where to ask for it. The pages are `urls`, or what is found from `url`."""
    if body.schema_ is not None:
        await scraper_of(services).schema(body.schema_, owner).check()
    egress = scraper_of(services).egress
    written = body.urls if body.urls is not None else [body.url or ""]
    param = "urls" if body.urls is not None else "url"
    urls = list(dict.fromkeys(check_url(url, egress, param) for url in written))[: body.pages_max]
    # The model is fixed now: a later change of the setting does not reach a job that has begun.
    request = body.model_copy(update={"model": await resolve_model(services, body.model, "model")})
    job = new_job("extract", owner, urls[0], request, body.pages_max)
    entries = [FrontierEntry(number, 0, url) for number, url in enumerate(urls)]
    return {**await start_job(services, job, entries, base), **body.lowered}


@router.get("/{job_id}", summary="An extraction, or how far it is", response_model=dict[str, Any])
async def show(job_id: str, services: ServicesDep, owner: OwnerDep) -> Response:
    """`result` has `data` and `sources` when the job has ended, also when no page could be read."""
    view = await extraction_view(services, job_id, owner)
    # A model's data may be large, so it is not serialized on the event loop.
    return Response(await asyncio.to_thread(orjson.dumps, view), media_type="application/json")


async def extraction_view(services: Services, job_id: str, owner: str) -> dict[str, Any]:
    """The job, its progress, and its result when it has ended."""
    job, progress = await services.state.read(
        lambda con: find_job_progress(con, job_id, "extract", owner)
    )
    view = {"success": True, **job_view(job), "progress": progress_view(progress)}
    if not job.is_active:
        result = ExtractionResult(orjson.loads(job.options)["model"])
        after = -1
        while pages := await services.state.read(partial(_next_pages, job_id=job.id, after=after)):
            after = pages[-1].place
            await asyncio.to_thread(result.add, pages)
        view["result"] = result.view()
    return view


def _next_pages(con: Connection, job_id: str, after: int) -> list[Page]:
    return list_pages(con, job_id, after, EXTRACT_PAGES_MAX, PageSelection(order="place"))

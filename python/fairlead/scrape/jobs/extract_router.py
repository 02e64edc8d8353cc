"""Data from many pages by a model: a job whose pages are read, and then asked about."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import orjson
from fastapi import APIRouter
from starlette.responses import Response

from fairlead.scrape.address import checked
from fairlead.scrape.jobs.extraction import ExtractionResult
from fairlead.scrape.jobs.runner import JobRunner
from fairlead.scrape.jobs.table import (
    Job,
    Page,
    Place,
    Progress,
    find_job,
    insert_job,
    list_pages,
    progress_of,
)
from fairlead.scrape.options import EXTRACT_PAGES_MAX, ExtractTaskAsk
from fairlead.scrape.owner import BaseDep, OwnerDep
from fairlead.scrape.router import job_view, model_name, new_job, progress_view
from fairlead.scrape.scraper import scraper_of
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api/extract", tags=["scraping"])


@router.post("", summary="Extract data from a list of pages in the background")
async def start(
    ask: ExtractTaskAsk, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """A job's id and where to ask for it. The pages are `urls`, or what is found from `url`."""
    if ask.schema_ is not None:
        await scraper_of(services).schema(ask.schema_, owner).check()
    egress = scraper_of(services).egress
    written = ask.urls if ask.urls is not None else [ask.url or ""]
    param = "urls" if ask.urls is not None else "url"
    urls = list(dict.fromkeys(checked(url, egress, param) for url in written))[: ask.pages_max]
    # The setting of today: a job goes on with the model that it began with.
    asked = ask.model_copy(update={"model": await model_name(services, ask.model, "model")})
    job = new_job(
        "extract", owner, urls[0], asked.model_dump(mode="json", by_alias=True), ask.pages_max
    )
    places = [Place(number, 0, url) for number, url in enumerate(urls)]
    await services.state.database.write(lambda con: insert_job(con, job, places))
    JobRunner.of(services).wake()
    return {
        "success": True,
        "id": job.id,
        "url": f"{base}/api/extract/{job.id}",
        "status": job.status,
    }


@router.get("/{job_id}", summary="An extraction, or how far it is", response_model=dict[str, Any])
async def show(job_id: str, services: ServicesDep, owner: OwnerDep) -> Response:
    """`result` has `data` and `sources` when the job has ended, also when no page could be read."""

    def look(con: Connection) -> tuple[Job, Progress]:
        job = find_job(con, job_id, "extract", owner)
        return job, progress_of(con, job)

    job, progress = await services.state.read(look)
    view = {"success": True, **job_view(job), "progress": progress_view(progress)}
    if not job.is_active:
        result = ExtractionResult(orjson.loads(job.options)["model"])
        after = -1
        while pages := await services.state.read(partial(_some, job_id=job.id, after=after)):
            after = pages[-1].place
            await asyncio.to_thread(result.add, pages)
        view["result"] = result.view()
    # What the model read can be as long as it likes to be: not for the event loop.
    return Response(await asyncio.to_thread(orjson.dumps, view), media_type="application/json")


def _some(con: Connection, job_id: str, after: int) -> list[Page]:
    return list_pages(con, job_id, after, EXTRACT_PAGES_MAX, order="place")

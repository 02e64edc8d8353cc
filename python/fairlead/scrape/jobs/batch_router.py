"""Starting a batch, its bare progress, and forgetting batches that ended long ago."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from fastapi import APIRouter, Query

from fairlead.moment import now_ms
from fairlead.scrape.address import check_url, host_of
from fairlead.scrape.jobs.start import new_job, start_job
from fairlead.scrape.jobs.table import FrontierEntry, find_job_progress, forget_ended
from fairlead.scrape.jobs.view import job_view, progress_view
from fairlead.scrape.limits.owner import BaseDep, OwnerDep
from fairlead.scrape.requests.jobs import BatchRequest
from fairlead.scrape.scraper import scraper_of
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api", tags=["scraping"])

Days = Annotated[int, Query(ge=1, le=365)]


@router.post("/batch/scrape", summary="Scrape a list of pages in the background")
async def batch(
    body: BatchRequest, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """Each address is read once, however often it is named. `estimatedTime` is the least time that it takes, in
    seconds.
    """
    egress = scraper_of(services).egress
    urls = dict.fromkeys(check_url(url, egress, f"urls[{n}]") for n, url in enumerate(body.urls))
    await scraper_of(services).check_model_forms(body.options, owner)
    entries = [FrontierEntry(place, 0, url) for place, url in enumerate(urls)]
    job = new_job("batch", owner, entries[0].url, body, len(entries))
    settings = await scraper_of(services).settings()
    # The pauses between requests to one host are the least time that a batch takes.
    most_of_host = max(Counter(map(host_of, urls)).values())
    return await start_job(services, job, entries, base, body.webhook) | {
        "batchId": job.id,
        "totalUrls": len(entries),
        "estimatedTime": most_of_host * settings.scrape_host_delay_ms / 1000,
        **body.lowered,
    }


@router.get("/batch/scrape/{job_id}/status", summary="A batch and its progress, without pages")
async def batch_progress(job_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """Status and counts of pages, as `GET /api/batch/scrape/{job_id}` gives them with pages."""
    job, progress = await services.state.read(
        lambda con: find_job_progress(con, job_id, "batch", owner)
    )
    return {"success": True, **job_view(job), "progress": progress_view(progress)}


@router.post("/batch/cleanup", summary="Delete batches that ended long ago")
async def cleanup(services: ServicesDep, owner: OwnerDep, days: Days = 7) -> dict[str, Any]:
    """The caller's jobs that ended more than `days` days ago."""
    before_ms = now_ms() - days * 86_400_000
    count = await services.state.database.write(
        lambda con: forget_ended(con, "batch", owner, before_ms)
    )
    return {"success": True, "count": count}

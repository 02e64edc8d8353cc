"""Routes of `llms.txt`: start a job that writes one, and show it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final

import orjson
from fastapi import APIRouter

from fairlead.net.url import split_url
from fairlead.scrape.address import check_url
from fairlead.scrape.jobs.llmstxt import FullText, llms_txt, read_entries
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
from fairlead.scrape.requests.jobs import LlmsTxtRequest
from fairlead.scrape.scraper import scraper_of
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api/llmstxt", tags=["scraping"])

PAGES_MAX: Final = 500


@router.post("", summary="Write a site's llms.txt in the background")
async def start(
    body: LlmsTxtRequest, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """A job's id and where to ask for it. The pages are those of the sitemaps and what is linked."""
    url = check_url(body.url, scraper_of(services).egress)
    job = new_job("llmstxt", owner, url, body, body.max_urls)
    return {**await start_job(services, job, [FrontierEntry(0, 0, url)], base), **body.lowered}


@router.get("/{job_id}", summary="A site's llms.txt, or how far it is")
async def show(job_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """`result` has `host`, `pageCount`, `llmstxt`, and `llmsFullTxt` where it was asked for."""
    job, progress = await services.state.read(
        lambda con: find_job_progress(con, job_id, "llmstxt", owner)
    )
    view: dict[str, Any] = {
        "success": True,
        **job_view(job),
        "progress": progress_view(progress),
    }
    if job.status == "completed":
        wants_text = orjson.loads(job.options)["includeFullText"]
        entries: list[dict[str, Any]] = []
        text = FullText()
        after = -1
        # Some pages at a time, so that only what is written of them is held in memory.
        while pages := await services.state.read(partial(_next_pages, job_id=job.id, after=after)):
            after = pages[-1].place
            entries += await asyncio.to_thread(read_entries, pages, text if wants_text else None)
        view["result"] = {
            "host": split_url(job.url).netloc,
            "pageCount": len(entries),
            "llmstxt": llms_txt(entries),
        }
        if wants_text:
            view["result"]["llmsFullTxt"] = text.whole()
    return view


def _next_pages(con: Connection, job_id: str, after: int) -> list[Page]:
    return list_pages(con, job_id, after, PAGES_MAX, PageSelection("completed", "place"))

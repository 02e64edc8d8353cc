"""Many pages: crawl and batch, their progress, their end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any, Final

import orjson
from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from fairlead import _core
from fairlead.errors import FairleadError, InvalidRequest
from fairlead.host import AddressRefused
from fairlead.moment import iso, moment_of, now_ms
from fairlead.scrape.address import checked, host_of
from fairlead.scrape.jobs.ending import conclude
from fairlead.scrape.jobs.estimate import estimate_crawl
from fairlead.scrape.jobs.frontier import patterns_of
from fairlead.scrape.jobs.hook import insert_hook, tell_start
from fairlead.scrape.jobs.runner import JobRunner
from fairlead.scrape.jobs.table import (
    Job,
    Kind,
    Page,
    Place,
    Progress,
    find_job,
    forget_ended,
    insert_job,
    last_number,
    list_failures,
    list_jobs,
    list_pages,
    progress_of,
)
from fairlead.scrape.options import LIMIT_MAX, BatchAsk, CrawlAsk, EstimateAsk
from fairlead.scrape.owner import BaseDep, OwnerDep
from fairlead.scrape.router import job_view, new_job, progress_view
from fairlead.scrape.scraper import scraper_of
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep

router = APIRouter(prefix="/api", tags=["scraping"])

Skip = Annotated[int, Query(ge=0, le=2**31)]
PageLimit = Annotated[int, Query(ge=1, le=100)]
ListLimit = Annotated[int, Query(ge=1, le=500)]

Days = Annotated[int, Query(ge=1, le=365)]

HEARTBEAT_S: Final = 10.0
STREAM_MAX_S: Final = 1800.0
STREAM_PAGES: Final = 50
PATHS: Final[dict[Kind, str]] = {"crawl": "/api/crawl", "batch": "/api/batch/scrape"}


@router.post("/crawl", summary="Crawl a site in the background")
async def crawl(
    ask: CrawlAsk, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """Where to ask for it; with a webhook also the secret that its events are signed with."""
    url = checked(ask.url, scraper_of(services).egress)
    patterns_of(ask).check()
    job = new_job("crawl", owner, url, ask.model_dump(mode="json", by_alias=True), ask.pages_max)
    return await _start(services, job, [Place(0, 0, url)], ask.webhook, base)


@router.post("/crawl/estimate", summary="What a crawl would come to")
async def estimate(
    ask: EstimateAsk,
    services: ServicesDep,
    owner: OwnerDep,
) -> dict[str, Any]:
    """By `maxDepth`, the start page's links and the site's map: one that is kept, else its sitemaps.
    `lookedAt` says what was seen within ten seconds.
    """
    scraper = scraper_of(services)
    url = checked(ask.url, scraper.egress)
    return {"success": True, "estimate": await estimate_crawl(services, scraper, owner, url, ask)}


@router.get("/crawl", summary="List crawls")
async def crawls(services: ServicesDep, owner: OwnerDep, limit: ListLimit = 50) -> dict[str, Any]:
    """The caller's crawls, newest first."""
    return await _list(services, "crawl", owner, limit, only_active=False)


@router.get("/crawl/active", summary="List crawls that have not ended")
async def active_crawls(
    services: ServicesDep, owner: OwnerDep, limit: ListLimit = 50
) -> dict[str, Any]:
    """The caller's crawls that are under way, newest first."""
    return await _list(services, "crawl", owner, limit, only_active=True)


@router.get(
    "/crawl/{job_id}",
    summary="A crawl, its progress and its pages",
    response_model=dict[str, Any],
)
async def crawl_status(
    job_id: str,
    services: ServicesDep,
    owner: OwnerDep,
    base: BaseDep,
    skip: Skip = 0,
    limit: PageLimit = 20,
) -> Response:
    """`jobs` are pages in the order in which they ended, at most `limit` and 8 MiB of them, or one;
    `next` is the address of the following ones.
    """
    return await _status(services, "crawl", job_id, owner, base, skip, limit)


@router.get("/crawl/{job_id}/errors", summary="The pages of a crawl that failed")
async def crawl_errors(job_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """At most 10,000, in the order in which they failed."""
    return await _errors(services, "crawl", job_id, owner)


@router.get("/crawl/{job_id}/stream", summary="A crawl's progress as it happens (SSE)")
async def crawl_stream(
    job_id: str, services: ServicesDep, owner: OwnerDep, skip: Skip = 0
) -> StreamingResponse:
    """Events `open`, `page`, `progress`, and `done` or `error`; `skip` leaves out pages that were seen."""
    return await _stream(services, "crawl", job_id, owner, skip)


@router.delete("/crawl/{job_id}", summary="Cancel a crawl")
async def cancel_crawl(job_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """Ends it now; what was read stays. A crawl that has ended stays as it ended."""
    return await _cancel(services, "crawl", job_id, owner)


@router.post("/batch/scrape", summary="Scrape a list of pages in the background")
async def batch(
    ask: BatchAsk, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """Each address is read once, however often it is named. `estimatedTime` are seconds, and the least."""
    egress = scraper_of(services).egress
    urls = dict.fromkeys(checked(url, egress, f"urls[{n}]") for n, url in enumerate(ask.urls))
    places = [Place(place, 0, url) for place, url in enumerate(urls)]
    job = new_job(
        "batch", owner, places[0].url, ask.model_dump(mode="json", by_alias=True), len(places)
    )
    settings = await scraper_of(services).settings()
    # What the manners alone take: no host is asked sooner.
    turns = max(Counter(map(host_of, urls)).values())
    return await _start(services, job, places, ask.webhook, base) | {
        "batchId": job.id,
        "totalUrls": len(places),
        "estimatedTime": turns * settings.scrape_host_delay_ms / 1000,
    }


@router.get("/batch/scrape", summary="List batches")
async def batches(services: ServicesDep, owner: OwnerDep, limit: ListLimit = 50) -> dict[str, Any]:
    """The caller's batches, newest first."""
    return await _list(services, "batch", owner, limit, only_active=False)


@router.get(
    "/batch/scrape/{job_id}",
    summary="A batch, its progress and its pages",
    response_model=dict[str, Any],
)
async def batch_status(
    job_id: str,
    services: ServicesDep,
    owner: OwnerDep,
    base: BaseDep,
    skip: Skip = 0,
    limit: PageLimit = 20,
) -> Response:
    """`jobs` are pages in the order in which they ended, at most `limit` and 8 MiB of them, or one;
    `next` is the address of the following ones.
    """
    return await _status(services, "batch", job_id, owner, base, skip, limit)


@router.get("/batch/scrape/{job_id}/errors", summary="The pages of a batch that failed")
async def batch_errors(job_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """In the order in which they failed."""
    return await _errors(services, "batch", job_id, owner)


@router.get("/batch/scrape/{job_id}/stream", summary="A batch's progress as it happens (SSE)")
async def batch_stream(
    job_id: str, services: ServicesDep, owner: OwnerDep, skip: Skip = 0
) -> StreamingResponse:
    """Events `open`, `page`, `progress`, and `done` or `error`; `skip` leaves out pages that were seen."""
    return await _stream(services, "batch", job_id, owner, skip)


@router.get("/batch/scrape/{job_id}/status", summary="A batch and its progress, without pages")
async def batch_progress(job_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """The same as of the batch, in little."""

    def look(con: Connection) -> tuple[Job, Progress]:
        job = find_job(con, job_id, "batch", owner)
        return job, progress_of(con, job)

    job, progress = await services.state.read(look)
    return {"success": True, **job_view(job), "progress": progress_view(progress)}


@router.post("/batch/cleanup", summary="Forget batches that ended long ago")
async def cleanup(services: ServicesDep, owner: OwnerDep, days: Days = 7) -> dict[str, Any]:
    """Those of the caller that ended more than `days` days ago."""
    before_ms = now_ms() - days * 86_400_000
    count = await services.state.database.write(
        lambda con: forget_ended(con, "batch", owner, before_ms)
    )
    return {"success": True, "count": count}


@router.delete("/batch/scrape/{job_id}", summary="Cancel a batch")
async def cancel_batch(job_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """Ends it now; what was read stays. A batch that has ended stays as it ended."""
    return await _cancel(services, "batch", job_id, owner)


async def _start(
    services: Services, job: Job, places: list[Place], webhook: str | None, base: str
) -> dict[str, Any]:
    view: dict[str, Any] = {
        "success": True,
        "id": job.id,
        "url": f"{base}{PATHS[job.kind]}/{job.id}",
        "status": job.status,
    }
    target: str | None = None
    secret = _core.new_webhook_secret()
    if webhook is not None:
        try:
            target = await services.egress.check_target(webhook)
        except AddressRefused as error:
            raise InvalidRequest(f"webhook {error}.", param="webhook") from None
        view["webhookSecret"] = secret

    def work(con: Connection) -> None:
        insert_job(con, job, places)
        if target is not None:
            insert_hook(con, services.state.sealer, job, target, secret)
            tell_start(con, job)

    await services.state.record(work)
    JobRunner.of(services).wake()
    return view


async def _list(
    services: Services, kind: Kind, owner: str, limit: int, *, only_active: bool
) -> dict[str, Any]:
    jobs = await services.state.read(
        lambda con: list_jobs(con, kind, owner, limit, only_active=only_active)
    )
    name = "crawls" if kind == "crawl" else "batches"
    return {"success": True, "count": len(jobs), name: [job_view(job) for job in jobs]}


async def _status(
    services: Services, kind: Kind, job_id: str, owner: str, base: str, skip: int, limit: int
) -> Response:
    def look(con: Connection) -> tuple[Job, Progress, list[Page], int]:
        job = find_job(con, job_id, kind, owner)
        pages = list_pages(con, job.id, skip, limit)
        return job, progress_of(con, job), pages, last_number(con, job.id)

    job, progress, pages, last = await services.state.read(look)
    view: dict[str, Any] = {
        "success": True,
        **job_view(job),
        "crawl" if kind == "crawl" else "batch": orjson.loads(job.options),
        "jobs": [_page_view(page) for page in pages],
        "count": len(pages),
        "progress": progress_view(progress),
    }
    seen = pages[-1].number if pages else skip
    if seen < last or job.is_active:
        view["next"] = f"{base}{PATHS[kind]}/{job.id}?skip={seen}&limit={limit}"
    # Documents go out as they are stored: nothing reads them on the way.
    return Response(orjson.dumps(view), media_type="application/json")


async def _errors(services: Services, kind: Kind, job_id: str, owner: str) -> dict[str, Any]:
    def look(con: Connection) -> list[Page]:
        job = find_job(con, job_id, kind, owner)
        return list_failures(con, job.id, LIMIT_MAX)

    pages = await services.state.read(look)
    return {
        "success": True,
        "count": len(pages),
        "errors": [
            {
                "url": page.url,
                "error": page.error,
                "code": page.code,
                "statusCode": page.http_status,
                "at": iso(moment_of(page.at_ms)),
            }
            for page in pages
        ],
    }


async def _cancel(services: Services, kind: Kind, job_id: str, owner: str) -> dict[str, Any]:
    def work(con: Connection) -> str:
        job = find_job(con, job_id, kind, owner)
        return "cancelled" if conclude(con, job, "cancelled", None) else job.status

    status = await services.state.record(work)
    JobRunner.of(services).stop(job_id)
    return {"success": True, "id": job_id, "status": status}


async def _stream(
    services: Services, kind: Kind, job_id: str, owner: str, skip: int
) -> StreamingResponse:
    await services.state.read(lambda con: find_job(con, job_id, kind, owner))
    return StreamingResponse(
        _events(services, kind, job_id, owner, skip),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def _events(
    services: Services, kind: Kind, job_id: str, owner: str, seen: int
) -> AsyncIterator[bytes]:
    name = "crawlId" if kind == "crawl" else "batchId"
    yield _event("open", {name: job_id, "message": "The stream is open."})
    told: Progress | None = None
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + STREAM_MAX_S
    while True:
        # Asked for before looking, so that no change falls between.
        news = asyncio.ensure_future(JobRunner.of(services).news(HEARTBEAT_S))
        try:
            try:
                job, progress, pages = await services.state.read(
                    partial(_look, kind, job_id, owner, seen)
                )
            except FairleadError as fault:
                yield _event("error", {"error": fault.message, "code": fault.kind})
                return
            for event in await asyncio.to_thread(_page_events, pages):
                yield event
            seen = pages[-1].number if pages else seen
            if progress != told:
                told = progress
                yield _event("progress", progress_view(progress))
            if pages:
                # There may be more: a look tells at most so many, and so many bytes.
                continue
            if not job.is_active:
                yield _event(
                    "done",
                    {
                        "status": job.status,
                        "total": progress.total,
                        "success": progress.completed,
                        "failed": progress.failed,
                        "done": True,
                    },
                )
                return
            if loop.time() > ends_s:
                yield _event(
                    "done", {"status": "timeout", **progress_view(progress), "done": False}
                )
                return
            yield b": waiting\n\n"
            await news
        finally:
            news.cancel()


def _look(
    kind: Kind, job_id: str, owner: str, after: int, con: Connection
) -> tuple[Job, Progress, list[Page]]:
    job = find_job(con, job_id, kind, owner)
    return job, progress_of(con, job), list_pages(con, job.id, after, STREAM_PAGES)


def _page_events(pages: list[Page]) -> list[bytes]:
    return [_event("page", _told_page(page), page.number) for page in pages]


def _event(name: str, data: dict[str, Any], number: int | None = None) -> bytes:
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {name}\ndata: {orjson.dumps(data).decode()}\n\n".encode()


def _page_view(page: Page) -> dict[str, Any]:
    view: dict[str, Any] = {
        "id": str(page.number),
        "status": page.status,
        "url": page.url,
        "statusCode": page.http_status,
        "at": iso(moment_of(page.at_ms)),
    }
    if page.document is not None:
        view["document"] = orjson.Fragment(page.document)
    if page.error is not None:
        view["error"] = page.error
    return view


def _told_page(page: Page) -> dict[str, Any]:
    """A page as a stream tells it: what most listeners want of it stands at the top too."""
    view = _page_view(page)
    if page.document is not None:
        document = orjson.loads(page.document)
        view |= {"title": document["title"], "metadata": document["metadata"]}
        if document["contentType"] == "markdown":
            view["markdown"] = document["content"]
    return view

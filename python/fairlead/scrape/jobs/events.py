"""A crawl's or a batch's progress as server-sent events: `open`, `page`, `progress`, and `done` or `error` at the
end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

import orjson

from fairlead.errors import FairleadError
from fairlead.scrape.jobs.runner import JobRunner
from fairlead.scrape.jobs.table import Job, Kind, Page, Progress, find_job, list_pages, progress_of
from fairlead.scrape.jobs.view import page_event_view, progress_view
from fairlead.store.file import Connection
from fairlead.store.services import Services

HEARTBEAT_S: Final = 10.0
STREAM_MAX_S: Final = 1800.0
STREAM_PAGES: Final = 50


async def job_events(
    services: Services, kind: Kind, job_id: str, owner: str, after: int
) -> AsyncIterator[bytes]:
    """Events until the job has ended or `STREAM_MAX_S` are over; pages whose number is not above `after` are left
    out.
    """
    name = "crawlId" if kind == "crawl" else "batchId"
    yield _event("open", {name: job_id, "message": "The stream is open."})
    shown: Progress | None = None
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + STREAM_MAX_S
    while True:
        # Begun before the rows are read, so that no change falls between.
        change = asyncio.ensure_future(JobRunner.of(services).wait_for_change(HEARTBEAT_S))
        try:
            try:
                job, progress, pages = await services.state.read(
                    partial(_read_changes, kind, job_id, owner, after)
                )
            except FairleadError as fault:
                yield _event("error", {"error": fault.message, "code": fault.kind})
                return
            for event in await asyncio.to_thread(_page_events, pages):
                yield event
            after = pages[-1].number if pages else after
            if progress != shown:
                shown = progress
                yield _event("progress", progress_view(progress))
            if pages:
                # One read gives at most `STREAM_PAGES`, and a bound of bytes: there may be more.
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
            await change
        finally:
            change.cancel()


def _read_changes(
    kind: Kind, job_id: str, owner: str, after: int, con: Connection
) -> tuple[Job, Progress, list[Page]]:
    job = find_job(con, job_id, kind, owner)
    return job, progress_of(con, job), list_pages(con, job.id, after, STREAM_PAGES)


def _page_events(pages: list[Page]) -> list[bytes]:
    return [_event("page", page_event_view(page), page.number) for page in pages]


def _event(name: str, data: dict[str, Any], number: int | None = None) -> bytes:
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {name}\ndata: {orjson.dumps(data).decode()}\n\n".encode()

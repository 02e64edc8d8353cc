"""The webhook of a crawl or a batch: an endpoint that the job owns. Its events go through the outbox, in the
transaction of what they report.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from fairlead.records.webhook_endpoints import (
    delete_endpoints,
    idle_endpoints,
    insert_endpoint,
    new_endpoint,
)
from fairlead.scrape.jobs.table import Job, JobEnd, Page, Progress, known_jobs
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.store.sealer import Sealer

EventName = Literal["started", "page", "completed", "failed", "cancelled"]

# A title may have any length; an event is small.
TITLE_MAX_CHARS: Final = 500


def insert_listener(con: Connection, sealer: Sealer, job: Job, url: str, secret: str) -> None:
    """Adds the job's listener, which receives every event of the job; `url` comes from `Egress.check_target`."""
    endpoint = new_endpoint("crawl", url, ["*"], job.created_at_ms, owner=job.id)
    insert_endpoint(con, sealer, endpoint, secret)


def notify_started(con: Connection, job: Job) -> None:
    """Emits `started`."""
    data = {"url": job.url, "status": job.status}
    _emit(con, job, _event(job, "started", "start", job.created_at_ms, data))


def notify_page(con: Connection, job: Job, page: Page, title: str | None) -> None:
    """Emits `page`: a page that was read, with its title, or one that failed."""
    data: dict[str, Any] = {"url": page.url, "status": page.status}
    if page.status == "completed":
        data |= {"title": (title or "")[:TITLE_MAX_CHARS], "statusCode": page.http_status}
    else:
        data["error"] = page.error
    # The id is made of the place, not of the number, so a page that is read again after a crash is one event.
    _emit(con, job, _event(job, "page", f"page-{page.place}", page.at_ms, data))


def notify_ended(con: Connection, job: Job, end: JobEnd, progress: Progress) -> None:
    """Emits `completed`, `failed` or `cancelled`, by the status with which the job ended."""
    name: EventName = "completed"
    if end.status == "failed":
        name = "failed"
    elif end.status == "cancelled":
        name = "cancelled"
    data: dict[str, Any] = {
        "url": job.url,
        "status": end.status,
        "total": progress.completed + progress.failed,
        "completed": progress.completed,
        "failed": progress.failed,
    }
    if end.error is not None:
        data["error"] = end.error
    _emit(con, job, _event(job, name, "end", end.at_ms, data))


def sweep_listeners(con: Connection) -> None:
    """Drops the listeners of jobs that are deleted, with their history. A listener with a waiting delivery is kept
    until the delivery is over.
    """
    idle = idle_endpoints(con, "crawl")
    known = known_jobs(con, [job_id for _, job_id in idle])
    delete_endpoints(con, [hook_id for hook_id, job_id in idle if job_id not in known])


def _event(job: Job, name: EventName, suffix: str, at_ms: int, data: dict[str, Any]) -> Event:
    """An event of a crawl or a batch; `suffix` tells it from the job's other events in its id."""
    prefix, own_id = ("crawl", "crawlId") if job.kind == "crawl" else ("batch_scrape", "batchId")
    return Event(f"{prefix}.{name}", {own_id: job.id, **data}, at_ms, id=f"msg_{job.id}_{suffix}")


def _emit(con: Connection, job: Job, event: Event) -> None:
    """Puts the event into the outbox. Other kinds of jobs have no listener."""
    if job.kind in {"crawl", "batch"}:
        emit(con, event, surface="crawl", owner=job.id)

"""The listener that a crawl or a batch was given: an endpoint that the job owns, told through the
outbox in the transaction of what it is told of.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from fairlead.scrape.jobs.table import Job, Page, Progress, known_jobs
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.store.sealer import Sealer
from fairlead.store.webhook_endpoints import (
    delete_endpoints,
    idle_endpoints,
    insert_endpoint,
    new_endpoint,
)

EventName = Literal["started", "page", "completed", "failed", "cancelled"]

# A page may call itself anything at any length; an event is thin.
TITLE_MAX_CHARS: Final = 500


def insert_listener(con: Connection, sealer: Sealer, job: Job, url: str, secret: str) -> None:
    """Adds the job's listener, which is told of everything; `url` comes from `Egress.check_target`."""
    endpoint = new_endpoint("crawl", url, ["*"], job.created_at_ms, owner=job.id)
    insert_endpoint(con, sealer, endpoint, secret)


def notify_started(con: Connection, job: Job) -> None:
    """The job began."""
    _tell(con, job, "started", "start", job.created_at_ms, {"url": job.url, "status": job.status})


def notify_page(con: Connection, job: Job, page: Page, title: str | None) -> None:
    """A page was read, then it has a title, or it was not."""
    data: dict[str, Any] = {"url": page.url, "status": page.status}
    if page.status == "completed":
        data |= {"title": (title or "")[:TITLE_MAX_CHARS], "statusCode": page.http_status}
    else:
        data["error"] = page.error
    # Of an address, not of a number: a page that is read again after a crash is told of once.
    _tell(con, job, "page", f"page-{page.place}", page.at_ms, data)


def notify_ended(
    con: Connection, job: Job, status: str, error: str | None, progress: Progress, at_ms: int
) -> None:
    """The job ended with this status."""
    happening: EventName = "completed"
    if status == "failed":
        happening = "failed"
    elif status == "cancelled":
        happening = "cancelled"
    data: dict[str, Any] = {
        "url": job.url,
        "status": status,
        "total": progress.completed + progress.failed,
        "completed": progress.completed,
        "failed": progress.failed,
    }
    if error is not None:
        data["error"] = error
    _tell(con, job, happening, "end", at_ms, data)


def sweep_listeners(con: Connection) -> None:
    """Drops the listeners of jobs that are gone, with their history. One for which a delivery still
    waits is kept until its day is over: it was promised that long.
    """
    idle = idle_endpoints(con, "crawl")
    kept = known_jobs(con, [job_id for _, job_id in idle])
    delete_endpoints(con, [hook_id for hook_id, job_id in idle if job_id not in kept])


def _tell(
    con: Connection, job: Job, happening: EventName, what: str, at_ms: int, data: dict[str, Any]
) -> None:
    if job.kind not in {"crawl", "batch"}:
        return
    prefix, own_id = ("crawl", "crawlId") if job.kind == "crawl" else ("batch_scrape", "batchId")
    event = Event(
        f"{prefix}.{happening}", {own_id: job.id, **data}, at_ms, id=f"msg_{job.id}_{what}"
    )
    emit(con, event, surface="crawl", owner=job.id)

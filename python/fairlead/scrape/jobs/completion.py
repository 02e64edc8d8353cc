"""How jobs end: which status they end with, who is told, and how long they are kept."""

from __future__ import annotations

from fairlead.moment import now_ms
from fairlead.scrape.jobs.listener import notify_ended
from fairlead.scrape.jobs.table import Job, end_job, list_pages, progress_of
from fairlead.store.file import Connection
from fairlead.store.operator_settings import read_operator_settings


def finish(con: Connection, job: Job) -> None:
    """The job has nothing left to do: its last status follows from its pages."""
    progress = progress_of(con, job)
    status, error = "completed", None
    if job.kind == "batch" and progress.failed and progress.completed:
        status = "completed_with_errors"
    elif progress.failed and not progress.completed:
        status = "failed"
        first = list_pages(con, job.id, 0, 1, status="failed")
        error = first[0].error if first else None
    conclude(con, job, status, error)


def conclude(con: Connection, job: Job, status: str, error: str | None) -> bool:
    """Ends a job and tells its listener; False when it had ended already."""
    at_ms = now_ms()
    expires_at_ms = at_ms + retention_ms(con)
    progress = progress_of(con, job)
    if not end_job(con, job.id, status, error, at_ms, expires_at_ms):
        return False
    notify_ended(con, job, status, error, progress, at_ms)
    return True


def retention_ms(con: Connection) -> int:
    """How long an ended job is kept."""
    return read_operator_settings(con).scrape_retention_hours * 3_600_000

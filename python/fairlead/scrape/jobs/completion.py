"""Ending a job: its last status, the notification of its listener, and how long it is kept."""

from __future__ import annotations

from fairlead.moment import now_ms
from fairlead.scrape.jobs.listener import notify_ended
from fairlead.scrape.jobs.table import Job, JobEnd, PageSelection, end_job, list_pages, progress_of
from fairlead.store.file import Connection
from fairlead.store.operator_settings import read_operator_settings


def finish(con: Connection, job: Job) -> None:
    """Ends a job whose pages are all done; the status follows from how they went."""
    progress = progress_of(con, job)
    status, error = "completed", None
    if job.kind == "batch" and progress.failed and progress.completed:
        status = "completed_with_errors"
    elif progress.failed and not progress.completed:
        status = "failed"
        first = list_pages(con, job.id, 0, 1, PageSelection("failed"))
        error = first[0].error if first else None
    conclude(con, job, status, error)


def conclude(con: Connection, job: Job, status: str, error: str | None) -> bool:
    """Ends a job and notifies its listener; False when it had ended already."""
    at_ms = now_ms()
    end = JobEnd(status, error, at_ms, at_ms + retention_ms(con))
    progress = progress_of(con, job)
    if not end_job(con, job.id, end):
        return False
    notify_ended(con, job, end, progress)
    return True


def retention_ms(con: Connection) -> int:
    """How long an ended job is kept, in milliseconds, by the setting `scrapeRetentionHours`."""
    return read_operator_settings(con).scrape_retention_hours * 3_600_000

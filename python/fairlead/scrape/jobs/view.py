"""Jobs, their progress and their pages as the API shows them."""

from __future__ import annotations

from typing import Any

import orjson

from fairlead.moment import iso, moment_of
from fairlead.scrape.jobs.table import Job, Page, Progress


def progress_view(progress: Progress) -> dict[str, int]:
    """The counts of a job's pages as the API shows them."""
    return {
        "total": progress.total,
        "completed": progress.completed,
        "failed": progress.failed,
        "pending": progress.pending,
    }


def job_view(job: Job) -> dict[str, Any]:
    """The fields that every kind of job shows."""
    view: dict[str, Any] = {
        "id": job.id,
        "type": job.kind,
        "status": job.status,
        "url": job.url,
        "createdAt": iso(moment_of(job.created_at_ms)),
    }
    if job.ended_at_ms is not None:
        view["completedAt"] = iso(moment_of(job.ended_at_ms))
    if job.expires_at_ms is not None:
        view["expiresAt"] = iso(moment_of(job.expires_at_ms))
    if job.error is not None:
        view["error"] = job.error
    return view


def page_view(page: Page) -> dict[str, Any]:
    """A page of a job; its document goes out as it is stored, without being parsed."""
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


def page_event_view(page: Page) -> dict[str, Any]:
    """A page of an event: `page_view` with the title, the metadata and the markdown at its top too."""
    view = page_view(page)
    if page.document is not None:
        document = orjson.loads(page.document)
        view |= {"title": document["title"], "metadata": document["metadata"]}
        if document["contentType"] == "markdown":
            view["markdown"] = document["content"]
    return view

"""Starting a job: one way for every kind, from the row to the answer with its id."""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

import orjson

from fairlead import _core
from fairlead.errors import InvalidRequest
from fairlead.moment import now_ms
from fairlead.net.host import AddressRefused
from fairlead.scrape.jobs.listener import insert_listener, notify_started
from fairlead.scrape.jobs.runner import JobRunner
from fairlead.scrape.jobs.secrets import seal_secrets
from fairlead.scrape.jobs.table import FIRST_STATUS, FrontierEntry, Job, Kind, insert_job
from fairlead.scrape.requests.fields import RequestBody
from fairlead.store.file import Connection
from fairlead.store.services import Services

PATHS: Final[dict[Kind, str]] = {
    "scrape": "/api/scrape/job",
    "crawl": "/api/crawl",
    "batch": "/api/batch/scrape",
    "llmstxt": "/api/llmstxt",
    "extract": "/api/extract",
    "agent": "/api/agent",
}


def new_job(kind: Kind, owner: str, url: str, request: RequestBody, pages_max: int) -> Job:
    """A job with a new id, not stored yet. Its options are the request's body."""
    return Job(
        id=str(uuid4()),
        kind=kind,
        owner=owner,
        status=FIRST_STATUS[kind],
        url=url,
        options=orjson.dumps(request.model_dump(mode="json", by_alias=True)).decode(),
        pages_max=pages_max,
        error=None,
        created_at_ms=now_ms(),
        ended_at_ms=None,
        expires_at_ms=None,
    )


async def start_job(
    services: Services,
    job: Job,
    entries: list[FrontierEntry],
    base: str,
    webhook: str | None = None,
) -> dict[str, Any]:
    """Stores the job with its first addresses, its headers and cookies sealed, and wakes the runner. The answer says
    where to ask for the job, and with a `webhook` also the secret that its events are signed with.
    """
    view: dict[str, Any] = {
        "success": True,
        "id": job.id,
        "url": f"{base}{PATHS[job.kind]}/{job.id}",
        "status": job.status,
    }
    job = seal_secrets(services.state.sealer, job)
    target: str | None = None
    secret = _core.new_webhook_secret()
    if webhook is not None:
        try:
            target = await services.egress.check_target(webhook)
        except AddressRefused as error:
            raise InvalidRequest(f"webhook {error}.", param="webhook") from None
        view["webhookSecret"] = secret

    def insert(con: Connection) -> None:
        insert_job(con, job, entries)
        if target is not None:
            insert_listener(con, services.state.sealer, job, target, secret)
            notify_started(con, job)

    await services.state.record(insert)
    JobRunner.of(services).wake()
    return view

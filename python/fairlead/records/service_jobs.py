"""Long-running jobs of the generative service (batches and others that outlive their call) and their webhooks.

A job's owner is a key. The owner's webhooks (surface `service`) get the events of all its jobs; a job with
`webhook_config.uris` notifies those in their place (surface `job`, whose deliveries are signed with a token,
since the two share no secret).

    def end(con: Connection) -> None:
        change_batch(con, batch.id, status="completed", ...)
        queue_job_event(con, owner, JobEvent(batch.id, "batch.succeeded", {...}, at_ms))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import orjson
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StrictStr, field_validator
from pydantic_core import PydanticCustomError

from fairlead.errors import InvalidRequest
from fairlead.events import EVERY
from fairlead.net.egress import Egress
from fairlead.net.host import AddressRefused
from fairlead.records.webhook_endpoints import (
    delete_endpoints,
    idle_endpoints,
    insert_endpoint_without_secret,
    new_endpoint,
)
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit

URIS_MAX: Final = 5
USER_METADATA_MAX_BYTES: Final = 4096
# The final events of a job: after one of these it raises no more.
FINAL_EVENTS: Final = frozenset(
    {
        "batch.succeeded",
        "batch.cancelled",
        "batch.expired",
        "batch.failed",
        "interaction.completed",
        "interaction.failed",
        "interaction.cancelled",
        "video.generated",
    }
)
VERSION: Final = "v1"


class WebhookConfig(BaseModel):
    """The `webhook_config` of a call: which URLs get the job's events."""

    model_config = ConfigDict(extra="forbid")

    uris: Annotated[
        list[Annotated[StrictStr, Field(min_length=1, max_length=2048)]],
        Field(max_length=URIS_MAX, description="URLs that replace the caller's webhooks."),
    ] = []
    user_metadata: Annotated[
        dict[str, Any] | None,
        Field(
            description="Returned in every delivery.",
            # Google's clients send either spelling.
            validation_alias=AliasChoices("user_metadata", "userMetadata"),
        ),
    ] = None

    @field_validator("user_metadata")
    @classmethod
    def _bounded(cls, metadata: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            size = len(orjson.dumps(metadata))
        except TypeError:
            raise PydanticCustomError(
                "metadata", "must be JSON whose integers have 64 bits at most"
            ) from None
        if size > USER_METADATA_MAX_BYTES:
            raise PydanticCustomError(
                "metadata",
                "must be at most {most} bytes as JSON",
                {"most": USER_METADATA_MAX_BYTES},
            )
        return metadata


async def checked_uris(egress: Egress, config: WebhookConfig, name: str) -> list[str]:
    """The listeners' URLs in canonical spelling; `InvalidRequest` names the one that is refused."""
    checked = []
    for place, uri in enumerate(config.uris):
        try:
            checked.append(await egress.check_target(uri))
        except AddressRefused as error:
            field = f"{name}.uris[{place}]"
            raise InvalidRequest(f"{field} {error}.", param=field) from None
    return list(dict.fromkeys(checked))


@dataclass(frozen=True, slots=True)
class Subscribers:
    """The webhooks of one job, where its caller names them: `uris` come from `checked_uris`, `metadata` goes with
    each of its events.
    """

    uris: Sequence[str]
    metadata: Mapping[str, Any] | None


def insert_job(
    con: Connection, owner: str, job_id: str, subscribers: Subscribers, at_ms: int
) -> None:
    """Stores a job's webhook configuration, in the writer."""
    metadata = subscribers.metadata
    text = None if metadata is None else orjson.dumps(metadata).decode()
    con.execute(
        "INSERT INTO service_jobs VALUES (?, ?, ?, ?, ?, NULL)",
        [job_id, owner, bool(subscribers.uris), text, at_ms],
    )
    for uri in subscribers.uris:
        insert_endpoint_without_secret(con, new_endpoint("job", uri, [EVERY], at_ms, owner=job_id))


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something that happened to a job: `name` as `batch.succeeded`, `data` beside the job's id."""

    job_id: str
    name: str
    data: Mapping[str, Any]
    at_ms: int


def queue_job_event(con: Connection, owner: str, happened: JobEvent) -> int:
    """Queues an event of a job, in the writer, at most once for each event name. Returns the number of deliveries."""
    job_id, name, at_ms = happened.job_id, happened.name, happened.at_ms
    row = con.execute(
        "SELECT has_own_listeners, user_metadata FROM service_jobs WHERE id = ?", [job_id]
    ).fetchone()
    has_own, metadata = row if row is not None else (False, None)
    members: dict[str, Any] = {"version": VERSION}
    if metadata is not None:
        members["user_metadata"] = orjson.loads(metadata)
    message_id = f"msg_{job_id}_{name.replace('.', '_')}"
    event = Event(name, {"id": job_id, **happened.data}, at_ms, members, message_id)
    if name in FINAL_EVENTS:
        end_job(con, job_id, at_ms)
    if has_own:
        return emit(con, event, surface="job", owner=job_id)
    return emit(con, event, surface="service", owner=owner)


def job_owner(con: Connection, job_id: str) -> str | None:
    """The owner of a job that has a stored configuration and has not ended."""
    row = con.execute(
        "SELECT owner FROM service_jobs WHERE id = ? AND ended_at_ms IS NULL", [job_id]
    ).fetchone()
    return None if row is None else str(row[0])


def end_job(con: Connection, job_id: str, at_ms: int) -> None:
    """Marks a job as ended, in the writer: it raises no more events."""
    con.execute(
        "UPDATE service_jobs SET ended_at_ms = ? WHERE id = ? AND ended_at_ms IS NULL",
        [at_ms, job_id],
    )


def sweep_jobs(con: Connection) -> None:
    """Deletes ended jobs with their own listeners once no delivery is pending, in the writer."""
    rows = con.execute("SELECT id FROM service_jobs WHERE ended_at_ms IS NOT NULL").fetchall()
    ended = {row[0] for row in rows}
    known = {row[0] for row in con.execute("SELECT id FROM service_jobs").fetchall()}
    idle = [
        (endpoint_id, job_id)
        for endpoint_id, job_id in idle_endpoints(con, "job")
        if job_id in ended or job_id not in known
    ]
    delete_endpoints(con, [endpoint_id for endpoint_id, _ in idle])
    con.execute(
        "DELETE FROM service_jobs WHERE ended_at_ms IS NOT NULL AND id NOT IN "
        "(SELECT owner FROM webhook_endpoints WHERE surface = 'job')"
    )

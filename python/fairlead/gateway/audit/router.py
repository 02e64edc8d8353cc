"""`/api/audit`: changes through the management API, newest first."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query

from fairlead.calls.caller import PrincipalKind
from fairlead.gateway.audit.changes import FieldChange, changes_of
from fairlead.moment import Moment, Time, moment_of, ms_of
from fairlead.store.audit_log import AuditFilter, Outcome, read_entries
from fairlead.store.services import ServicesDep
from fairlead.wire import Limit, Wire

router = APIRouter(prefix="/api/audit", tags=["audit"])

Text = Annotated[str | None, Query(min_length=1, max_length=300)]


class Actor(Wire):
    """The actor of an audited request. `name` is the key's or token's name or the user's address, as it was then."""

    kind: PrincipalKind
    id: str | None
    name: str | None


class AuditEntry(Wire):
    """One change. `sent` is the body with secrets as `***`; null where the route takes none, or
    a file. `changes` compares it with the thing as it was shown before.
    """

    id: str
    at: Time
    request_id: str
    actor: Actor
    peer: str
    method: str
    path: str
    route: str
    outcome: Outcome
    status: int | None
    sent: Any | None
    before: Any | None
    changes: list[FieldChange]


class AuditPage(Wire):
    """`next` is what `after` takes for the following page; null at the end."""

    entries: list[AuditEntry]
    limit: int
    next: str | None


@router.get("", summary="Changes through the management API, newest first")
async def list_entries(
    services: ServicesDep,
    *,
    limit: Limit = 50,
    after: Text = None,
    actor: Annotated[PrincipalKind | None, Query(description="The kind of who asked.")] = None,
    actor_id: Annotated[str | None, Query(alias="actorId", min_length=1, max_length=300)] = None,
    method: Annotated[
        Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | None,
        Query(description="GET: bodies that were read."),
    ] = None,
    route: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=300,
            description="The beginning of the route's path, such as `/api/keys`.",
        ),
    ] = None,
    request_id: Annotated[
        str | None, Query(alias="requestId", min_length=1, max_length=300)
    ] = None,
    outcome: Annotated[Outcome | None, Query()] = None,
    from_: Annotated[Moment | None, Query(alias="from")] = None,
    until: Annotated[Moment | None, Query()] = None,
) -> AuditPage:
    """A page of the log. Entries that come meanwhile do not shift the pages that follow."""
    filters = AuditFilter(
        actor_kind=actor,
        actor_id=actor_id,
        method=method,
        route=route,
        request_id=request_id,
        outcome=outcome,
        from_ms=None if from_ is None else ms_of(from_),
        until_ms=None if until is None else ms_of(until),
        before_id=after,
    )
    rows = await services.state.read(lambda con: read_entries(con, filters, limit + 1))
    shown = rows[:limit]
    return AuditPage.model_construct(
        entries=[_view(row) for row in shown],
        limit=limit,
        next=shown[-1]["id"] if len(rows) > limit else None,
    )


def _view(row: dict[str, Any]) -> AuditEntry:
    sent = None if row["sent"] is None else orjson.loads(row["sent"])
    before = None if row["before"] is None else orjson.loads(row["before"])
    return AuditEntry.model_construct(
        actor=Actor(kind=row["actor_kind"], id=row["actor_id"], name=row["actor_name"]),
        at=moment_of(row["at_ms"]),
        sent=sent,
        before=before,
        changes=changes_of(sent, before),
        **{
            name: row[name]
            for name in (
                *("id", "request_id", "peer", "method", "path", "route", "outcome", "status"),
            )
        },
    )

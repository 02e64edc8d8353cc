"""The audit log: one entry for each change through the management API.

An entry is written in the transaction of the change, so neither is there without the other. Control
puts an `AuditRecord` into the context of a request that may change something, and `State` stores it
with the request's first write.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from fairlead.calls.caller import Caller
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.ordered_id import ordered_id
from fairlead.store.table import read_number

Outcome = Literal["done", "refused", "failed"]

ENTRIES_MAX: Final = 500_000
DAY_MS: Final = 86_400_000

COLUMNS: Final = (
    *("id", "at_ms", "request_id", "actor_kind", "actor_id", "actor_name", "peer", "method"),
    *("path", "route", "outcome", "status", "sent", "before"),
)

# Names of those who may act, as they are at that moment: a key that is deleted later keeps its name here.
_ACTOR_NAMES: Final = {
    "session": "SELECT email FROM users WHERE id = ?",
    "key": "SELECT name FROM keys WHERE id = ?",
    "token": "SELECT name FROM management_tokens WHERE id = ?",
}


@dataclass(slots=True)
class AuditRecord:
    """A request that may change something: its caller, its path, its members.

    `sent` and `before` are JSON text with secrets masked, or None: the body, and the thing as it
    was shown before the change. `is_stored` says that the entry is in the log.
    """

    caller: Caller
    method: str
    path: str
    route: str
    sent: str | None = None
    before: str | None = None
    at_ms: int = field(default_factory=now_ms)
    is_stored: bool = False
    id: str = field(init=False)

    def __post_init__(self) -> None:
        self.id = ordered_id(self.at_ms)


# Set by control for the requests that are audited.
current_record: ContextVar[AuditRecord | None] = ContextVar("current_record", default=None)


def insert_entry(
    con: Connection, record: AuditRecord, outcome: Outcome = "done", status: int | None = None
) -> None:
    """Stores the entry, in the writer."""
    principal = record.caller.principal
    statement = _ACTOR_NAMES.get(principal.kind)
    row = con.execute(statement, [principal.id]).fetchone() if statement else None
    con.execute(
        f"INSERT INTO audit_log ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})",
        [
            *(record.id, record.at_ms, record.caller.request_id, principal.kind, principal.id),
            *(row[0] if row else None, record.caller.peer, record.method, record.path),
            *(record.route, outcome, status, record.sent, record.before),
        ],
    )


def insert_read(con: Connection, caller: Caller, route: str, **named: str) -> None:
    """Stores that somebody is shown what is shown to nobody unseen, in the writer. `named` are the parts
    of the route's path in braces.
    """
    insert_entry(con, AuditRecord(caller, "GET", route.format(**named), route), "done", 200)


def set_outcome(con: Connection, record: AuditRecord, outcome: Outcome, status: int) -> None:
    """Says how the request was answered, in the writer."""
    con.execute(
        "UPDATE audit_log SET outcome = ?, status = ? WHERE id = ?", [outcome, status, record.id]
    )


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries are read; None does not filter.

    `route` matches the beginning of the route's path, times are UTC milliseconds (`until_ms` is not
    included), and `before_id` is the last id of the page before.
    """

    actor_kind: str | None = None
    actor_id: str | None = None
    method: str | None = None
    route: str | None = None
    request_id: str | None = None
    outcome: str | None = None
    from_ms: int | None = None
    until_ms: int | None = None
    before_id: str | None = None


_CONDITIONS: Final = {
    "actor_kind": "actor_kind = ?",
    "actor_id": "actor_id = ?",
    "method": "method = ?",
    "route": "starts_with(route, ?)",
    "request_id": "request_id = ?",
    "outcome": "outcome = ?",
    "from_ms": "at_ms >= ?",
    "until_ms": "at_ms < ?",
    "before_id": "id < ?",
}


def read_entries(con: Connection, filters: AuditFilter, limit: int) -> list[dict[str, Any]]:
    """Entries as in the table, newest first."""
    wanted = {name: getattr(filters, name) for name in _CONDITIONS}
    where = [_CONDITIONS[name] for name, value in wanted.items() if value is not None]
    rows = con.execute(
        f"SELECT {', '.join(COLUMNS)} FROM audit_log WHERE {' AND '.join(where) or 'true'} "
        "ORDER BY id DESC LIMIT ?",
        [*(value for value in wanted.values() if value is not None), limit],
    ).fetchall()
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def delete_entries_before(con: Connection, kept_from_ms: int) -> int:
    """Deletes entries that are older (UTC milliseconds), and the oldest of more than
    `ENTRIES_MAX`, in the writer; returns how many.
    """
    surplus = con.execute(
        "SELECT id FROM audit_log ORDER BY id DESC OFFSET ? LIMIT 1", [ENTRIES_MAX]
    ).fetchone()
    query = "DELETE FROM audit_log WHERE at_ms < ? OR id <= ?"
    return read_number(con, query, [kept_from_ms, surplus[0] if surplus else ""])

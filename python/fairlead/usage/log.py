"""Settled requests one by one, newest first or in another order. Those of keys that ask for no log are never listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from fairlead.store.file import Connection
from fairlead.store.table import read_number
from fairlead.usage.ingestion.record import COLUMNS as RECORD

COLUMNS = tuple(name for name in RECORD if name != "no_log")

_CONDITIONS = {
    "key_id": "key_id = ?",
    "model": "(model = ? OR upstream_model = ?)",
    "provider": "provider = ?",
    "connection_id": "connection_id = ?",
    "combo": "combo = ?",
    "endpoint": "endpoint = ?",
    "group_id": "list_contains(string_split(group_path, '/'), ?)",
    "tag": "contains(tags, ',' || ? || ',')",
    "request_id": "request_id = ?",
    "session_tag": "session_tag = ?",
    "session_id": "session_id = ?",
    "error_kind": "error_kind = ?",
    "session": "coalesce(session_tag, session_id) = ?",
    "error_message": "contains(lower(error_message), lower(?))",
    "search": "(request_id = ? OR session_tag = ? OR session_id = ? OR trace_id = ? OR "
    "contains(lower(concat_ws(' ', error_message, failed_attempts)), lower(?)))",
    "own_search": "(request_id = ? OR session_tag = ? OR session_id = ? OR trace_id = ? OR "
    "contains(lower(error_message), lower(?)))",
    "error_text": "contains(lower(concat_ws(' ', error_message, failed_attempts)), lower(?))",
    "status": "status = ?",
    "outcome": "outcome = ?",
    "from_ms": "ts_ms >= ?",
    "until_ms": "ts_ms < ?",
}


Order = Literal["time", "latency", "cost", "tokens"]
_ORDERS: Final[dict[Order, str]] = {
    "time": "ts_ms DESC, request_id",
    "latency": "latency_ms DESC, ts_ms DESC, request_id",
    "cost": "cost_usd_micros DESC, ts_ms DESC, request_id",
    "tokens": "tokens_input + tokens_output DESC, ts_ms DESC, request_id",
}


@dataclass(frozen=True, slots=True)
class LogFilter:
    """The filter of the log; None does not filter. `model` is the caller's name for it or the
    provider's; `error_message` is a part of the message that the caller received, `error_text` of that or of what a
    provider answered. `search` is an id (of the request, its session or its trace) or a part of such a text;
    `own_search` leaves out what providers answered.
    """

    key_id: str | None = None
    model: str | None = None
    provider: str | None = None
    connection_id: str | None = None
    combo: str | None = None
    endpoint: str | None = None
    group_id: str | None = None
    tag: str | None = None
    request_id: str | None = None
    session_tag: str | None = None
    session_id: str | None = None
    error_kind: str | None = None
    session: str | None = None
    error_message: str | None = None
    error_text: str | None = None
    search: str | None = None
    own_search: str | None = None
    status: int | None = None
    outcome: str | None = None
    from_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PageCursor:
    """A row's place in the log: when it was admitted (UTC milliseconds), and its request."""

    ts_ms: int
    request_id: str


@dataclass(frozen=True, slots=True)
class Page:
    """At most `limit` rows: those that follow the row at `after`, which only the order of time has, or else all but the
    first `offset`. Every order is from the newest or largest down.
    """

    limit: int
    offset: int = 0
    after: PageCursor | None = None
    order: Order = "time"


def read_log(con: Connection, filters: LogFilter, page: Page) -> tuple[list[dict[str, Any]], int]:
    """Rows as in the table, and the number of all that match."""
    where = ["NOT no_log"]
    bound: list[object] = []
    for name, condition in _CONDITIONS.items():
        value = getattr(filters, name)
        if value is not None:
            where.append(condition)
            bound += [value] * condition.count("?")
    # Built from the constants above; values from the caller are bound.
    source = f"FROM requests WHERE {' AND '.join(where)}"
    total = read_number(con, f"SELECT count(*) {source}", bound)
    follows = ""
    if page.after is not None:
        follows = " AND (ts_ms < ? OR (ts_ms = ? AND request_id > ?))"
        bound += [page.after.ts_ms, page.after.ts_ms, page.after.request_id]
    rows = con.execute(
        f"SELECT {', '.join(COLUMNS)} {source}{follows} "
        f"ORDER BY {_ORDERS[page.order]} LIMIT ? OFFSET ?",
        [*bound, page.limit, 0 if page.after else page.offset],
    ).fetchall()
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows], total

"""Requests that the gate refused because of who called or from where, counted by minute, address, route and reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

from pydantic import BaseModel, Field

from fairlead.store.file import Connection

RETENTION_MS: Final = 7 * 86_400_000
ROWS_MAX: Final = 20_000

_COLUMNS: Final = (
    "minute_ms",
    "address",
    "method",
    "path",
    "status",
    "kind",
    "message",
    "requests",
)


class RefusedCallers(BaseModel, frozen=True):
    """A count as a relay worker reports it. `address` is null, and `path` empty, for all other requests of a minute."""

    minute_ms: int = Field(ge=0, le=2**53)
    address: Annotated[str, Field(max_length=64)] | None
    method: str = Field(max_length=16)
    path: str = Field(max_length=300)
    status: int = Field(ge=400, le=599)
    kind: str = Field(max_length=64)
    message: str = Field(max_length=300)
    requests: int = Field(ge=1, le=2**53)


class RefusedCallersFilter(NamedTuple):
    """Which counts are read: minutes from `from_ms` until before `until_ms`, UTC."""

    from_ms: int
    until_ms: int
    address: str | None = None


def replace_counts(con: Connection, worker_id: str, counts: Sequence[RefusedCallers]) -> None:
    """Replaces a worker's counts of the minutes that these counts are of, in the writer."""
    minutes = sorted({count.minute_ms for count in counts})
    con.execute(
        f"DELETE FROM refused_callers WHERE worker_id = ? AND minute_ms IN ({', '.join('?' * len(minutes))})",
        [worker_id, *minutes],
    )
    marks = f"({', '.join('?' * (len(_COLUMNS) + 1))})"
    con.execute(
        f"INSERT INTO refused_callers (worker_id, {', '.join(_COLUMNS)}) VALUES {', '.join([marks] * len(counts))}",
        [
            value
            for count in counts
            for value in (worker_id, *(getattr(count, name) for name in _COLUMNS))
        ],
    )


def delete_counts_before(con: Connection, kept_from_ms: int) -> None:
    """Deletes counts of earlier minutes, and the oldest where there are more than `ROWS_MAX`, in the writer."""
    surplus = con.execute(
        "SELECT minute_ms FROM refused_callers ORDER BY minute_ms DESC OFFSET ? LIMIT 1", [ROWS_MAX]
    ).fetchone()
    until_ms = max(kept_from_ms, surplus[0] + 1 if surplus else 0)
    con.execute("DELETE FROM refused_callers WHERE minute_ms < ?", [until_ms])


def read_counts(con: Connection, wanted: RefusedCallersFilter, limit: int) -> list[RefusedCallers]:
    """Counts of all workers together, the newest minute first, then the largest."""
    only, bound = "", [wanted.from_ms, wanted.until_ms]
    if wanted.address is not None:
        only = " AND address = ?"
    names = ", ".join(_COLUMNS[:-1])
    rows = con.execute(
        f"SELECT {names}, sum(requests)::BIGINT AS requests FROM refused_callers "
        f"WHERE minute_ms >= ? AND minute_ms < ?{only} GROUP BY {names} "
        "ORDER BY minute_ms DESC, requests DESC, address, path, message LIMIT ?",
        [*bound, *([wanted.address] if wanted.address is not None else []), limit],
    ).fetchall()
    return [RefusedCallers(**dict(zip(_COLUMNS, row, strict=True))) for row in rows]


def count_requests(con: Connection, wanted: RefusedCallersFilter) -> int:
    """The number of requests that were refused, of all addresses."""
    row = con.execute(
        "SELECT coalesce(sum(requests), 0)::BIGINT FROM refused_callers WHERE minute_ms >= ? AND minute_ms < ?",
        [wanted.from_ms, wanted.until_ms],
    ).fetchone()
    return int(row[0]) if row else 0

"""The log of usage in PostgreSQL: appended to by every node, followed by every node (`usage_log.sql`)."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from psycopg import sql

from fairlead.store.meta import PURGED_BEFORE
from fairlead.store.postgresql.channels import AsyncRaw

STATEMENT_DEADLINE_MS: Final = 60_000
LOCK_WITHIN_MS: Final = 10_000
# The size of what is read at once: the same as a round of ingestion from the spool.
READ_SEGMENTS: Final = 512
READ_BYTES: Final = 4 * 1024 * 1024
PARTITION: Final = "usage_segments_"
_FASTEST: Final = 1

_READ: Final = """
SELECT position, name, CASE WHEN name = ANY($4::VARCHAR[]) THEN NULL ELSE data END FROM (
    SELECT position, name, data, sum(octet_length(data)) OVER (ORDER BY position) - octet_length(data) AS before
    FROM (SELECT position, name, data FROM usage_segments WHERE position > $1 ORDER BY position LIMIT $2) AS next
) AS counted
WHERE before < $3 ORDER BY position
"""

# A node deletes its own copy of what it has appended, so the transaction waits for its own commit. A stricter setting
# than `on` stays.
_LOCK: Final = """
SELECT position, (
    SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'
)
FROM usage_log FOR UPDATE
"""

_LOOK: Final = """
SELECT (clock_timestamp() AT TIME ZONE 'UTC')::DATE::VARCHAR, epoch_ms(clock_timestamp()),
    ARRAY(SELECT name FROM usage_segments WHERE name = ANY($1::VARCHAR[]))
"""


@dataclass(frozen=True, slots=True)
class LogHead:
    """Which log it is, where it ends, and before which time single requests were deleted."""

    log_id: str
    position: int
    purged_before_ms: int


@dataclass(frozen=True, slots=True)
class OutgoingSegment:
    """A segment to append: its lines, all of them records."""

    name: str
    records: int
    data: bytes

    def packed(self) -> bytes:
        return zlib.compress(self.data, _FASTEST)


@dataclass(frozen=True, slots=True)
class LoggedSegment:
    """A segment of the log. `data` is compressed; None where the reader has the content and did not ask for it."""

    position: int
    name: str
    data: bytes | None

    def lines(self) -> bytes:
        """Raises `zlib.error` when they are damaged."""
        return zlib.decompress(self.data) if self.data is not None else b""


class UsageLog:
    """The log over one connection in autocommit. Raises `psycopg.Error` when the server does not answer."""

    def __init__(self, raw: AsyncRaw) -> None:
        self._raw = raw
        self._day_made: str | None = None

    async def begin(self) -> None:
        """Sets the deadlines of the connection; first of all."""
        await self._raw.execute(
            f"SET statement_timeout = {STATEMENT_DEADLINE_MS}; SET lock_timeout = {LOCK_WITHIN_MS}"
        )

    async def head(self) -> LogHead:
        """The end of the log."""
        row = await self._row(
            "SELECT log_id, position, (SELECT value FROM meta WHERE name = $1) FROM usage_log",
            [PURGED_BEFORE],
        )
        return LogHead(str(row[0]), int(row[1]), int(row[2] or 0))

    async def append(self, segments: Sequence[OutgoingSegment]) -> int:
        """Appends the segments that are not there yet, in one transaction; returns how many these were.

        They outlast the server's end once this returns, also where it is set to say so of a commit too early.
        """
        async with self._raw.transaction():
            row = await self._row(_LOCK, [])
            position = int(row[0])
            # From here on nobody else appends. This statement sees all that was appended before.
            day, at_ms, known = await self._row(_LOOK, [[each.name for each in segments]])
            fresh = [each for each in segments if each.name not in known]
            if fresh:
                await self._make_partition(day)
                await self._add(fresh, position, day, at_ms)
        if fresh:
            self._day_made = day
        return len(fresh)

    async def after(self, position: int, own: Collection[str] = ()) -> list[LoggedSegment]:
        """The next segments in order; none at the end of the log. The content of segments named in `own` is left
        out.
        """
        found = await self._raw.execute(_READ, [position, READ_SEGMENTS, READ_BYTES, list(own)])
        return [
            LoggedSegment(int(at), str(name), data) for at, name, data in await found.fetchall()
        ]

    async def names(self, first: int, last: int) -> dict[int, str]:
        """The names of the segments from one position to another, both included, as far as the log has them."""
        found = await self._raw.execute(
            "SELECT position, name FROM usage_segments WHERE position BETWEEN $1 AND $2",
            [first, last],
        )
        return {int(position): str(name) for position, name in await found.fetchall()}

    async def drop_days(self, kept_days: int) -> int:
        """Drops the partitions of days that ended longer ago; returns how many. One that is in use is left for the
        next time, with `LockNotAvailable`.
        """
        found = await self._raw.execute(
            "SELECT c.relname::VARCHAR FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
            "WHERE i.inhparent = 'usage_segments'::regclass AND c.relname < $1 || "
            "to_char((clock_timestamp() AT TIME ZONE 'UTC')::DATE - $2::INTEGER, 'YYYYMMDD') ORDER BY 1",
            [PARTITION, kept_days],
        )
        names = [str(name) for (name,) in await found.fetchall()]
        for name in names:
            # Another node may have been first.
            await self._raw.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name)))
        return len(names)

    async def _add(
        self, fresh: Sequence[OutgoingSegment], position: int, day: str, at_ms: int
    ) -> None:
        """Appends behind a position."""
        query = "COPY usage_segments (day, position, name, records, added_at_ms, data) FROM STDIN"
        async with self._raw.cursor() as cursor, cursor.copy(query) as copy:
            for at, each in enumerate(fresh, start=position + 1):
                await copy.write_row((day, at, each.name, each.records, at_ms, each.packed()))
        await self._raw.execute("UPDATE usage_log SET position = $1", [position + len(fresh)])

    async def _row(self, query: str, values: list[Any]) -> tuple[Any, ...]:
        """The row of a statement that has one."""
        found = await self._raw.execute(query, values)
        row: tuple[Any, ...] | None = await found.fetchone()
        if row is None:
            raise LookupError("the table usage_log has no row")
        return row

    async def _make_partition(self, day: str) -> None:
        """Creates a day's partition unless it exists. The caller holds the row of `usage_log`: nobody else does."""
        if self._day_made == day:
            return
        name = PARTITION + day.replace("-", "")
        found = await self._raw.execute("SELECT to_regclass($1)", [name])
        row = await found.fetchone()
        if row is None or row[0] is None:
            table, parent = sql.Identifier(name), sql.Identifier("usage_segments")
            # Attached rather than made in its place: that needs no lock that readers of the log hold up.
            await self._raw.execute(
                sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)").format(table, parent)
            )
            await self._raw.execute(
                sql.SQL("ALTER TABLE {} ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})").format(
                    parent, table, sql.Literal(day), sql.Literal(_next_day(day))
                )
            )


def _next_day(day: str) -> str:
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat()

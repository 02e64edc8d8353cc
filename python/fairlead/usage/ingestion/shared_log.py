"""The usage of all nodes of one PostgreSQL database: this node's segments go into their log, and the usage database
follows the log.

Ingestion stores a segment here first, so that requests of a node are visible at once even if the server does
not answer, and moves the file to `spool/outgoing`. From there it is appended to the log, and deleted when that
is committed; the log has each name once. Segments from the log are stored under the same names, so a segment of
this node comes back without effect; those that this process stored come back by name alone. The position up to
which the log was read is stored with the records: a usage database that was thrown away, or copied from another
node, continues from its position.
"""

from __future__ import annotations

import asyncio
import os
import time
import zlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from fairlead.store.arrivals import Arrivals
from fairlead.store.file import Connection
from fairlead.store.log_lag import LogLag
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.segment import SEALED, Segment, is_full_round, read_segments
from fairlead.store.services import Services
from fairlead.usage.ingestion.log_position import LogPosition, read_position
from fairlead.usage.ingestion.retention import delete_before

if TYPE_CHECKING:
    from fairlead.store.postgresql.usage_log import (
        LoggedSegment,
        LogHead,
        OutgoingSegment,
        UsageLog,
    )
    from fairlead.usage.ingestion.segment_store import Batch, SegmentStore

LOOK_EVERY_S: Final = 1.0
# Storing a few segments takes as long as storing one: those that follow each other are stored together, so the log is
# looked at so long after the last round.
TAKE_EVERY_S: Final = 3.0
# How many of its segments a process remembers until they come back.
OWN_NAMES_MAX: Final = 1000
ROUND_WITHIN_S: Final = 90.0
DROP_EVERY_S: Final = 3600.0
# Budgets of a month are summed up from a usage database, also from one that was made again.
KEPT_DAYS_MIN: Final = 35
# How far back the last segment is looked for that this node and a log which lost its end have in common.
COMMON_WITHIN: Final = 20_000
REPORT_EVERY_S: Final = 5.0

log = structlog.get_logger("fairlead.usage")


class LogDiverged(Exception):
    """The log and this usage database have no segment in common any more."""


class SharedLog:
    """This node's side of the log. `run` is a background task; ingestion calls the rest."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._outgoing = services.data_dir / "spool" / "outgoing"
        self._wanted = asyncio.Event()
        self._arrivals = services.singleton(Arrivals, Arrivals)
        self._position: LogPosition | None = None
        self._own: set[str] = set()
        self._look_at_s = 0.0
        self._purged_before_ms = 0
        self._drop_at_s = 0.0
        self._reported_s = 0.0
        self._is_caught_up = False
        self.was_current = False
        """Whether this process has once followed the log to its end."""
        self.lag: LogLag = services.singleton(LogLag, LogLag)

    @classmethod
    def of(cls, services: Services) -> SharedLog | None:
        """The process's only one; None at a single node."""
        if services.config.database_url is None:
            return None
        return services.singleton(cls, lambda: cls(services))

    # --- for ingestion

    async def accept(self, segments: Sequence[Segment]) -> None:
        """Moves the files of segments to the outgoing ones."""
        self._is_caught_up = False
        await asyncio.to_thread(self._move, segments)
        # Segments from before this process may not be in this usage database, so their content comes back.
        if len(self._own) < OWN_NAMES_MAX:
            self._own.update(segment.name for segment in segments)
        self._wanted.set()

    def is_caught_up(self) -> bool:
        """Whether all that was handed over has been read from the log again."""
        return self._is_caught_up

    # --- the task

    async def run(self) -> None:
        """Appends and follows until it is cancelled, or until the server does not answer."""
        from fairlead.store.postgresql.channels import connect_async  # noqa: PLC0415 - an extra
        from fairlead.store.postgresql.usage_log import UsageLog  # noqa: PLC0415 - an extra

        url = self._services.config.database_url
        if url is None:
            raise LookupError("a single node has no log to follow")
        async with await connect_async(url.get_secret_value(), "usage") as raw:
            shared = UsageLog(raw)
            await shared.begin()
            head = await shared.head()
            self._position = await self._find_place(shared, head)
            self._look_at_s = 0.0
            self._wanted.set()
            while True:
                async with asyncio.timeout(ROUND_WITHIN_S):
                    if self._wanted.is_set():
                        self._wanted.clear()
                        await self._append(shared)
                    if time.monotonic() >= self._look_at_s:
                        await self._follow(shared)
                if not self._wanted.is_set() and time.monotonic() < self._look_at_s:
                    await self._drop_old(shared)
                    await self._wait()

    async def _wait(self) -> None:
        """Until there is something to append, or it is time to look at the log."""
        try:
            async with asyncio.timeout(self._look_at_s - time.monotonic()):
                await self._wanted.wait()
        except TimeoutError:
            return

    # --- to the log

    async def _append(self, shared: UsageLog) -> None:
        """Appends one round of outgoing segments, and deletes their files."""
        segments = await asyncio.to_thread(read_segments, self._outgoing)
        if not segments:
            return
        self._is_caught_up = False
        await shared.append(await asyncio.to_thread(_outgoing_of, segments))
        await asyncio.to_thread(_delete, segments)
        if is_full_round(segments):
            self._wanted.set()

    def _move(self, segments: Sequence[Segment]) -> None:
        self._outgoing.mkdir(mode=0o700, exist_ok=True)
        for segment in segments:
            # An earlier round may have moved it and died before it could say so.
            if segment.path.exists():
                segment.path.replace(self._outgoing / f"{segment.name}{SEALED}")

    # --- from the log

    async def _find_place(self, shared: UsageLog, head: LogHead) -> LogPosition:
        """The next position. A server that took over from another may have lost the end of the log; then it is the
        last segment that both sides have.
        """
        position = await self._services.usage.read(read_position)
        if position is None or position.log_id != head.log_id:
            if position is not None:
                log.warning("this is another log of usage, it is followed from its beginning")
            return LogPosition(head.log_id, 0, "")
        named = await shared.names(max(1, position.position - COMMON_WITHIN), position.position)
        if named.get(position.position) == position.segment:
            return position
        if position.position <= head.position and not named:
            # The days up to here were dropped, and perhaps days after it: `_follow` finds out.
            return position
        known = await self._services.usage.read(partial(_known_names, names=list(named.values())))
        common = max((at for at, name in named.items() if name in known), default=None)
        if common is None:
            log.error(
                "the log of usage is not the one that usage.duckdb followed",
                advice="stop this node, move its usage.duckdb away and start it: it is made again from the log",
            )
            raise LogDiverged
        log.warning("the log of usage has lost its end", from_=common, until=position.position)
        return LogPosition(head.log_id, common, named[common])

    async def _follow(self, shared: UsageLog) -> None:
        """Takes in one round of the log, and says when to look for the next."""
        position = self._position
        if position is None:
            raise LookupError("the log is followed before its place is known")
        head = await shared.head()
        await self._purge(head.purged_before_ms)
        waiting = max(0, head.position - position.position)
        segments = await shared.after(position.position, self._own) if waiting else []
        self.lag.segments = max(0, waiting - len(segments))
        if not segments:
            self._note_even()
            self._look_at_s = time.monotonic() + LOOK_EVERY_S
            return
        if segments[0].position > position.position + 1:
            log.error(
                "days of usage were dropped from the log before this node read them",
                segments=segments[0].position - position.position - 1,
            )
        store = await asyncio.to_thread(store_of, self._services)
        batches = await asyncio.to_thread(batches_of, segments, head.log_id, store)
        if self.was_current:
            await store.take_in_with_next(batches)
        else:
            await store.take_in(batches)
        self._own.difference_update(segment.name for segment in segments)
        last = segments[-1]
        self._position = LogPosition(head.log_id, last.position, last.name)
        self._arrivals.announce()
        self._log_progress(last.position, head.position)
        if not self.lag.segments:
            self._note_even()
            self._look_at_s = time.monotonic() + TAKE_EVERY_S

    def _note_even(self) -> None:
        if not self.was_current:
            self.was_current = True
            log.info("the log of usage is followed to its end")
        self._is_caught_up = not _has_files(self._outgoing)

    def _log_progress(self, position: int, end: int) -> None:
        """Says how far a long way to the end of the log has come."""
        if not self.was_current and time.monotonic() - self._reported_s >= REPORT_EVERY_S:
            self._reported_s = time.monotonic()
            log.info("usage is read from the log", segments=position, of=end)

    async def _purge(self, before_ms: int) -> None:
        """Deletes single requests that an operator had deleted, here or at another node."""
        if before_ms > self._purged_before_ms:
            await delete_before(self._services.usage, before_ms)
            self._purged_before_ms = before_ms

    async def _drop_old(self, shared: UsageLog) -> None:
        if time.monotonic() < self._drop_at_s:
            return
        self._drop_at_s = time.monotonic() + DROP_EVERY_S
        settings = await self._services.state.read(read_operator_settings)
        dropped = await shared.drop_days(max(settings.usage_retention_days, KEPT_DAYS_MIN))
        if dropped:
            log.info("old days dropped from the log of usage", days=dropped)


def store_of(services: Services) -> SegmentStore:
    """The process's only writer of segments. It is imported on first use, because polars is large."""
    from fairlead.usage.ingestion.segment_store import SegmentStore  # noqa: PLC0415
    from fairlead.usage.sums.closed_bins import ClosedBins  # noqa: PLC0415

    spool_dir = services.data_dir / "spool"
    closed = services.singleton(ClosedBins, ClosedBins)
    return services.singleton(SegmentStore, lambda: SegmentStore(services.usage, spool_dir, closed))


def _has_files(folder: Path) -> bool:
    try:
        with os.scandir(folder) as files:
            return any(files)
    except FileNotFoundError:
        return False


def _known_names(con: Connection, names: list[str]) -> set[str]:
    rows = con.execute(
        "SELECT name FROM segments WHERE name IN (SELECT unnest(?))", [names]
    ).fetchall()
    return {str(row[0]) for row in rows}


def _outgoing_of(segments: list[Segment]) -> list[OutgoingSegment]:
    """Segments as they go into the log: without lines that are no records, which are set aside here."""
    from fairlead.store.postgresql.usage_log import OutgoingSegment  # noqa: PLC0415 - an extra
    from fairlead.usage.ingestion.record import parse_lines  # noqa: PLC0415 - polars is large

    outgoing = []
    for segment in segments:
        parsed = parse_lines(segment.data)
        data = segment.data[: segment.data.rfind(b"\n") + 1]
        if parsed.rejected:
            bad = set(parsed.rejected)
            data = b"".join(
                line for line in data.splitlines(keepends=True) if line.rstrip(b"\n") not in bad
            )
        outgoing.append(OutgoingSegment(segment.name, len(parsed.rows), data))
    return outgoing


def batches_of(segments: list[LoggedSegment], log_id: str, store: SegmentStore) -> list[Batch]:
    """Segments of the log as they are stored. Blocking."""
    from fairlead.usage.ingestion.record import parse_lines  # noqa: PLC0415 - polars is large
    from fairlead.usage.ingestion.segment_store import Batch  # noqa: PLC0415 - polars is large

    batches = []
    for segment in segments:
        try:
            data = segment.lines()
        except zlib.error:
            log.error("a segment of the log is damaged and left out", segment=segment.name)
            data = b""
        parsed = parse_lines(data)
        if parsed.rejected:
            store.rejected.keep_lines(segment.name, parsed.rejected)
        position = LogPosition(log_id, segment.position, segment.name)
        batches.append(Batch(segment.name, data, parsed.rows, position))
    return batches


def _delete(segments: list[Segment]) -> None:
    for segment in segments:
        segment.path.unlink(missing_ok=True)

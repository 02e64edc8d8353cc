"""Segments into the table `requests` and the rollups, each name once.

The names of a round's segments go into the table `segments` in the transaction that adds their rows. A segment whose
content the database refuses is found by halving the round, and set aside whole; the rest is stored.

A round costs about the same for one segment as for many, so segments that are in no hurry go along with the next round.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import duckdb
import polars as pl

from fairlead.moment import now_ms
from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.usage.ingestion.intake import Intake
from fairlead.usage.ingestion.log_position import LogPosition, write_position
from fairlead.usage.ingestion.rejected import Rejected
from fairlead.usage.sums.closed_bins import ClosedBins

WRITE_DEADLINE_S: Final = 60.0
# Segments that go along with the next round wait for it so long, and only where rounds have been made lately.
NEXT_ROUND_WITHIN_S: Final = 1.5
# Longer than anybody could still look for the file of a name, or find its segment in the log a second time.
NAMES_KEPT_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of one segment, and its position in the log if it comes from there."""

    name: str
    data: bytes
    rows: pl.DataFrame
    position: LogPosition | None = None


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Segments that wait for the next round, and whether that round has stored them."""

    batches: list[Batch]
    is_stored: asyncio.Future[bool]


class SegmentStore:
    """The one writer of segments of a usage database: its statements are planned once for the connection."""

    def __init__(self, usage: Database, spool_dir: Path, closed: ClosedBins | None = None) -> None:
        self.usage = usage
        self._closed = closed or ClosedBins()
        self.rejected = Rejected(spool_dir)
        self._intake = Intake()
        self._plan_lock = asyncio.Lock()
        self._is_planned = False
        self._waiting: _Waiting | None = None
        self._round_s = -NEXT_ROUND_WITHIN_S

    async def take_in(self, batches: list[Batch]) -> list[Batch]:
        """Stores segments that are not known yet, and those that wait for a round. Returns all of `batches` but those
        that were set aside: content that the engine refuses would be refused for ever and block all later segments.
        """
        if not batches:
            return []
        await self._plan()
        self._round_s = time.monotonic()
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return await self._store(batches)
        is_stored = False
        try:
            stored = await self._store(batches + waiting.batches)
            is_stored = True
        finally:
            if not waiting.is_stored.done():
                waiting.is_stored.set_result(is_stored)
        names = {batch.name for batch in batches}
        return [batch for batch in stored if batch.name in names]

    async def take_in_with_next(self, batches: list[Batch]) -> None:
        """Stores segments in the round of `take_in` that begins next; by themselves if none does. One caller at a
        time.
        """
        if not batches:
            return
        if time.monotonic() - self._round_s < NEXT_ROUND_WITHIN_S:
            waiting = _Waiting(batches, asyncio.get_running_loop().create_future())
            self._waiting = waiting
            try:
                await asyncio.wait({waiting.is_stored}, timeout=NEXT_ROUND_WITHIN_S)
                if self._waiting is not waiting and await waiting.is_stored:
                    return
            finally:
                if self._waiting is waiting:
                    self._waiting = None
        # Segments that a failed round had stored nevertheless are known by their names.
        await self._plan()
        await self._store(batches)

    async def _store(self, batches: list[Batch]) -> list[Batch]:
        try:
            await self.usage.write(partial(self._insert, batches), deadline_s=WRITE_DEADLINE_S)
        except duckdb.Error as error:
            # An engine that does not answer raises `StorageUnavailable` instead, which may pass.
            if len(batches) == 1:
                await self._set_aside(batches[0], error)
                return []
            half = len(batches) // 2
            return await self._store(batches[:half]) + await self._store(batches[half:])
        for batch in batches:
            times: list[int] = batch.rows["ts_ms"].to_list()
            if times:
                self._closed.forget(min(times), max(times) + 1)
        return batches

    async def forget_names(self) -> None:
        """Deletes names that nobody looks for any more."""
        before_ms = now_ms() - NAMES_KEPT_MS
        await self.usage.write(
            lambda con: con.execute(
                "DELETE FROM segments WHERE ingested_at_ms < ?", [before_ms]
            ).fetchall()
        )

    async def _plan(self) -> None:
        async with self._plan_lock:
            if not self._is_planned:
                await self.usage.write(self._intake.make, deadline_s=WRITE_DEADLINE_S)
                await self.usage.write(self._intake.plan, deadline_s=WRITE_DEADLINE_S)
                self._is_planned = True

    async def _set_aside(self, batch: Batch, error: duckdb.Error) -> None:
        await asyncio.to_thread(self.rejected.keep_segment, batch.name, batch.data, error)
        if (position := batch.position) is not None:
            await self.usage.write(lambda con: write_position(con, position))

    def _insert(self, batches: list[Batch], con: Connection) -> None:
        names = [batch.name for batch in batches]
        known = {
            row[0]
            for row in con.execute(
                "SELECT name FROM segments WHERE name IN (SELECT unnest(?))", [names]
            ).fetchall()
        }
        fresh = {batch.name: batch.rows for batch in batches if batch.name not in known}
        if fresh:
            # One table costs less in every statement than many small ones.
            self._intake.add(con, pl.concat(fresh.values(), rechunk=True))
            con.execute("INSERT INTO segments SELECT unnest(?), ?", [list(fresh), now_ms()])
        if (position := batches[-1].position) is not None:
            write_position(con, position)

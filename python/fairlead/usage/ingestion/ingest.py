"""Ingestion: from the spool into the table `requests` and the rollups, each segment exactly once.

`SegmentStore` stores a round's rows with the names of its segments; the files are deleted after the commit, or
handed over to the log that nodes share. After a crash in between, the next round finds the names and only does the
rest. A line that is no record is set aside in `spool/rejected/` and blocks nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol

import polars as pl
import structlog

from fairlead.errors import FairleadError
from fairlead.store.segment import ROUND_SEGMENTS, Segment, read_segments
from fairlead.store.spool_watch import SpoolWatch
from fairlead.usage.ingestion.record import parse_lines
from fairlead.usage.ingestion.segment_store import Batch, SegmentStore

FORGET_EVERY_S = 60.0
# A round costs the same for one segment as for several, and each worker seals one a second.
ROUND_EVERY_S = 0.9

log = structlog.get_logger("fairlead.usage")

# Receives a round's rows. Called after they are stored and before their files are deleted, so more
# than once if it fails or control dies.
Announce = Callable[[Sequence[pl.DataFrame]], Awaitable[None]]


class SegmentSink(Protocol):
    """Receives the segments that are stored here, for the other nodes."""

    async def accept(self, segments: Sequence[Segment]) -> None:
        """Accepts the files."""

    def is_caught_up(self) -> bool:
        """Whether everything accepted has come back from the log, so its names can be forgotten."""


class Ingest:
    """Moves settled requests from `<data dir>/spool` into the usage database."""

    def __init__(
        self,
        store: SegmentStore,
        spool_dir: Path,
        announce: Announce | None = None,
        shared: SegmentSink | None = None,
    ) -> None:
        self._store = store
        self._spool_dir = spool_dir
        self._announce = announce
        self._shared = shared
        self._forgot_at = time.monotonic()
        self.wanted = asyncio.Event()
        """Set by who does not wait until the next round is due."""

    async def run(self) -> None:
        """Ingests until it is cancelled. Raises when the database does not answer; nothing is lost
        by that.
        """
        with SpoolWatch(self._spool_dir) as watch:
            while True:
                watch.begin_look()
                began_s = time.monotonic()
                taken = await self.ingest()
                if taken == 0:
                    await self._forget_names()
                    await watch.wait()
                elif taken < ROUND_SEGMENTS:
                    await self._until_due(began_s + ROUND_EVERY_S)

    async def _until_due(self, due_s: float) -> None:
        self.wanted.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(due_s - time.monotonic()):
                await self.wanted.wait()

    async def ingest(self) -> int:
        """One round; returns the number of segments that were ingested or set aside."""
        segments = await asyncio.to_thread(read_segments, self._spool_dir)
        if not segments:
            return 0
        batches = await asyncio.to_thread(self._parse, segments)
        taken = await self._store.take_in(batches)
        await self._announce_rows(taken)
        await self._dispose(segments, {batch.name for batch in taken})
        return len(segments)

    async def _announce_rows(self, batches: list[Batch]) -> None:
        """Announces rows. Rows that cannot be announced are skipped, and block nothing."""
        if self._announce is None or not batches:
            return
        try:
            await self._announce([batch.rows for batch in batches])
        except FairleadError:
            # The database does not answer: the round is repeated.
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one record is not wrong with the others
            if len(batches) > 1:
                half = len(batches) // 2
                await self._announce_rows(batches[:half])
                await self._announce_rows(batches[half:])
                return
            name, reason = batches[0].name, type(error).__name__
            log.error("usage cannot be announced", segment=name, error=reason)

    def _parse(self, segments: list[Segment]) -> list[Batch]:
        batches = []
        for segment in segments:
            parsed = parse_lines(segment.data)
            if parsed.rejected:
                self._store.rejected.keep_lines(segment.name, parsed.rejected)
            batches.append(Batch(segment.name, segment.data, parsed.rows))
        return batches

    async def _dispose(self, segments: list[Segment], stored: set[str]) -> None:
        """Hands over what is stored, if there is somebody, and deletes the other files."""
        if self._shared is not None:
            await self._shared.accept([each for each in segments if each.name in stored])
        await asyncio.to_thread(_delete, segments)

    async def _forget_names(self) -> None:
        if time.monotonic() - self._forgot_at < FORGET_EVERY_S:
            return
        self._forgot_at = time.monotonic()
        # Called when the spool is empty, so none of the names has a file.
        if self._shared is None or self._shared.is_caught_up():
            await self._store.forget_names()


def _delete(segments: list[Segment]) -> None:
    for segment in segments:
        segment.path.unlink(missing_ok=True)

"""Ingestion: from the spool into the table `requests` and the rollups, each segment exactly once.

The names of a round's segments go into the table `segments` in the transaction that adds their
rows; the files are deleted after the commit. After a crash in between, the next round finds the
names and only deletes the files. A line that is no record is set aside in `spool/rejected/` and
blocks nothing. A segment whose content the database refuses is found by halving the round, and set
aside whole; the rest of the round is ingested.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import polars as pl
import structlog

from fairlead.errors import FairleadError
from fairlead.moment import now_ms
from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.usage.intake import Intake
from fairlead.usage.record import parse_lines
from fairlead.usage.segment import REASON, SEALED, Segment, read_segments
from fairlead.usage.spool_watch import SpoolWatch

WRITE_DEADLINE_S = 60.0

# Names of deleted segments are kept a little longer than anybody could still look for
# them.
NAMES_KEPT_MS = 3_600_000
FORGET_EVERY_S = 60.0

REJECTED_BYTES_MAX = 64 * 1024 * 1024
REASON_MAX_CHARS = 500

log = structlog.get_logger("fairlead.usage")

# Receives a round's rows. Called after they are stored and before their files are deleted, so more
# than once if it fails or control dies.
Announce = Callable[[Sequence[pl.DataFrame]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Batch:
    segment: Segment
    rows: pl.DataFrame

    @property
    def name(self) -> str:
        return self.segment.name


class Ingest:
    """Moves settled requests from `<data dir>/spool` into the usage database."""

    def __init__(self, usage: Database, spool_dir: Path, announce: Announce | None = None) -> None:
        self._usage = usage
        self._spool_dir = spool_dir
        self._announce = announce
        self._forgot_at = time.monotonic()
        self._intake = Intake()
        self._is_planned = False

    async def run(self) -> None:
        """Ingests until it is cancelled. Raises when the database does not answer; nothing is lost
        by that.
        """
        with SpoolWatch(self._spool_dir) as watch:
            while True:
                watch.begin_look()
                if await self.ingest() == 0:
                    await self._forget_names()
                    await watch.wait()

    async def ingest(self) -> int:
        """One round; returns the number of segments that were ingested or set aside."""
        segments = await asyncio.to_thread(read_segments, self._spool_dir)
        if not segments:
            return 0
        batches = await asyncio.to_thread(self._parse, segments)
        if not self._is_planned:
            await self._usage.write(self._intake.make, deadline_s=WRITE_DEADLINE_S)
            await self._usage.write(self._intake.plan, deadline_s=WRITE_DEADLINE_S)
            self._is_planned = True
        taken = await self._take_in(batches)
        await self._announce_rows(taken)
        # Segments that were set aside have been moved already.
        await asyncio.to_thread(_delete, segments)
        return len(segments)

    async def _take_in(self, batches: list[_Batch]) -> list[_Batch]:
        """Stores segments and returns those that were stored. A segment whose content the engine
        refuses would be refused for ever and block all later ones, so it is set aside.
        """
        if not batches:
            return []
        try:
            await self._usage.write(partial(self._insert, batches), deadline_s=WRITE_DEADLINE_S)
        except duckdb.Error as error:
            # An engine that does not answer raises `StorageUnavailable` instead, which may pass.
            if len(batches) == 1:
                await asyncio.to_thread(self._set_segment_aside, batches[0].segment, error)
                return []
            half = len(batches) // 2
            return await self._take_in(batches[:half]) + await self._take_in(batches[half:])
        return batches

    async def _announce_rows(self, batches: list[_Batch]) -> None:
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

    def _parse(self, segments: list[Segment]) -> list[_Batch]:
        batches = []
        for segment in segments:
            parsed = parse_lines(segment.data)
            if parsed.rejected:
                self._set_lines_aside(segment.name, parsed.rejected)
            batches.append(_Batch(segment, parsed.rows))
        return batches

    def _insert(self, batches: list[_Batch], con: Connection) -> None:
        names = [batch.name for batch in batches]
        known = {
            row[0]
            for row in con.execute(
                "SELECT name FROM segments WHERE name IN (SELECT unnest(?))", [names]
            ).fetchall()
        }
        fresh = {batch.name: batch.rows for batch in batches if batch.name not in known}
        if not fresh:
            return
        # One table costs less in every statement than many small ones.
        self._intake.add(con, pl.concat(fresh.values(), rechunk=True))
        con.execute("INSERT INTO segments SELECT unnest(?), ?", [list(fresh), now_ms()])

    def _set_lines_aside(self, name: str, lines: list[bytes]) -> None:
        folder, is_kept = self._rejected()
        log.error("lines are no records", segment=name, lines=len(lines), kept=is_kept)
        if is_kept:
            # A repeated round writes the same lines under the same name.
            _write(folder / name, b"\n".join(lines) + b"\n")

    def _set_segment_aside(self, segment: Segment, error: duckdb.Error) -> None:
        """Moves a segment aside under its sealed name: once its lines are repaired, it can be moved
        back.
        """
        folder, is_kept = self._rejected()
        reason = str(error).partition("\n")[0][:REASON_MAX_CHARS]
        log.error(
            "segment cannot be taken in",
            segment=segment.name,
            bytes=len(segment.data),
            error=type(error).__name__,
            reason=reason,
            kept=is_kept,
        )
        if is_kept:
            _write(folder / f"{segment.name}{REASON}", reason.encode() + b"\n")
            _write(folder / f"{segment.name}{SEALED}", segment.data)
        segment.path.unlink(missing_ok=True)

    def _rejected(self) -> tuple[Path, bool]:
        """The folder of rejected segments, and whether there is room in it."""
        folder = self._spool_dir / "rejected"
        folder.mkdir(mode=0o700, exist_ok=True)
        kept = sum(entry.stat().st_size for entry in os.scandir(folder))
        return folder, kept < REJECTED_BYTES_MAX

    async def _forget_names(self) -> None:
        if time.monotonic() - self._forgot_at < FORGET_EVERY_S:
            return
        self._forgot_at = time.monotonic()
        before_ms = now_ms() - NAMES_KEPT_MS
        # Called when the spool is empty, so none of these names has a file.
        await self._usage.write(
            lambda con: con.execute(
                "DELETE FROM segments WHERE ingested_at_ms < ?", [before_ms]
            ).fetchall()
        )


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def _delete(segments: list[Segment]) -> None:
    for segment in segments:
        segment.path.unlink(missing_ok=True)

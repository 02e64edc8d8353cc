"""A usage database made again from the log that nodes share, or brought to its end, while the node is stopped.

A rebuilt database grows beside the existing one, which is moved away when the new one has reached the end of
the log. After an interruption either resumes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from fairlead.store.database import Database
from fairlead.store.postgresql.channels import connect_async
from fairlead.store.postgresql.usage_log import UsageLog
from fairlead.store.prepare import MIGRATIONS, usage_path
from fairlead.store.table import read_number
from fairlead.usage.ingestion.log_position import read_position
from fairlead.usage.ingestion.retention import delete_before
from fairlead.usage.ingestion.segment_store import SegmentStore
from fairlead.usage.ingestion.shared_log import batches_of

ROUND_WITHIN_S: Final = 90.0
# Told how many segments of how many are in.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RebuiltUsage:
    """The new database in numbers, and where the one before it is; None where there was none."""

    segments: int
    requests: int
    replaced: Path | None


async def rebuild_usage(data_dir: Path, url: str, report: Progress) -> RebuiltUsage:
    """Makes the database and puts it in place. Raises `psycopg.Error` when the server does not answer."""
    path = usage_path(data_dir)
    growing = path.with_name(f"{path.name}.incoming")
    database = await asyncio.to_thread(Database.open, growing, MIGRATIONS / "usage")
    try:
        segments = await _fill(database, data_dir / "spool", url, report)
        requests = await database.read(
            lambda con: read_number(con, "SELECT count(*) FROM requests")
        )
    finally:
        await database.close()
    return RebuiltUsage(segments, requests, await asyncio.to_thread(_put_in_place, growing, path))


async def follow_usage(data_dir: Path, url: str, report: Progress) -> None:
    """Brings the database that is there to the log's end: a node that was stopped before others has not all of it.
    Raises `psycopg.Error` when the server does not answer.
    """
    opened = partial(Database.open, usage_path(data_dir), MIGRATIONS / "usage")
    database = await asyncio.to_thread(opened)
    try:
        await _fill(database, data_dir / "spool", url, report)
    finally:
        await database.close()


async def _fill(database: Database, spool_dir: Path, url: str, report: Progress) -> int:
    """Follows the log to its end; returns the number of its segments."""
    store = SegmentStore(database, spool_dir)
    async with await connect_async(url, "usage") as raw:
        shared = UsageLog(raw)
        await shared.begin()
        head = await shared.head()
        known = await database.read(read_position)
        position = known.position if known is not None and known.log_id == head.log_id else 0
        while True:
            async with asyncio.timeout(ROUND_WITHIN_S):
                head = await shared.head()
                segments = await shared.after(position) if head.position > position else []
                if not segments:
                    break
                of_round = partial(batches_of, segments, head.log_id, store)
                await store.take_in(await asyncio.to_thread(of_round))
            position = segments[-1].position
            report(position, head.position)
        if head.purged_before_ms:
            await delete_before(database, head.purged_before_ms)
    return position


def _put_in_place(growing: Path, path: Path) -> Path | None:
    replaced = path.with_name(f"{path.name}.replaced")
    was_there = path.exists()
    if was_there:
        for old, new in ((path, replaced), (_log_of(path), _log_of(replaced))):
            new.unlink(missing_ok=True)
            if old.exists():
                old.rename(new)
    if _log_of(growing).exists():
        _log_of(growing).rename(_log_of(path))
    growing.rename(path)
    return replaced if was_there else None


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.wal")

"""Deletion of usage that is older than the operator's setting, and merging of rollup rows."""

from __future__ import annotations

import asyncio
from functools import partial

import structlog

from fairlead.moment import now_ms
from fairlead.records.key_uses import forget_other_uses
from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.state import State
from fairlead.store.table import read_number
from fairlead.usage.sums.rollup import (
    RollupLevel,
    delete_rollups_before,
    forget_dimensions,
    keep_from,
    merge_rollups,
)

EVERY_S = 3600.0
MERGE_EVERY_S = 60.0
DAY_MS = 86_400_000

# One transaction deletes one slice, so that ingest never waits long.
SLICE_MS = 3_600_000
WRITE_DEADLINE_S = 60.0

log = structlog.get_logger("fairlead.usage")


async def run_retention(state: State, usage: Database) -> None:
    """Deletes old usage every hour, by the setting `usageRetentionDays`; runs until it is
    cancelled.
    """
    while True:
        settings = await state.read(read_operator_settings)
        kept_from_ms = now_ms() - settings.usage_retention_days * DAY_MS
        deleted = await delete_before(usage, kept_from_ms)
        if deleted:
            log.info("old usage deleted", requests=deleted, days=settings.usage_retention_days)
        key_ids = await state.read(_key_ids)
        await usage.write(partial(forget_other_uses, key_ids=key_ids))
        days: dict[RollupLevel, int] = {
            "minute": settings.usage_minute_retention_days,
            "hour": settings.usage_hour_retention_days,
            "day": settings.usage_day_retention_days,
        }
        rows = 0
        for level, kept_days in days.items():
            rows += await delete_rollups_before(usage, level, now_ms() - kept_days * DAY_MS)
        if rows:
            await forget_dimensions(usage)
            log.info("old rollups deleted", rows=rows)
        await asyncio.sleep(EVERY_S)


def _key_ids(con: Connection) -> list[str]:
    return [str(row[0]) for row in con.execute("SELECT id FROM keys").fetchall()]


async def run_merging(usage: Database) -> None:
    """Merges rollup rows of closed buckets every minute; runs until it is cancelled."""
    while True:
        await merge_rollups(usage)
        await asyncio.sleep(MERGE_EVERY_S)


async def delete_before(usage: Database, kept_from_ms: int) -> int:
    """Deletes requests admitted before this time (UTC milliseconds), oldest first; returns how
    many.
    """

    def oldest(con: Connection) -> int | None:
        row = con.execute("SELECT min(ts_ms) FROM requests").fetchone()
        return None if row is None or row[0] is None else int(row[0])

    deleted = 0
    while (start_ms := await usage.read(oldest)) is not None and start_ms < kept_from_ms:
        until_ms = min(kept_from_ms, start_ms + SLICE_MS)

        def delete_step(con: Connection, until_ms: int = until_ms) -> int:
            gone = read_number(con, "DELETE FROM requests WHERE ts_ms < ?", [until_ms])
            keep_from(con, "requests", until_ms)
            return gone

        deleted += await usage.write(delete_step, deadline_s=WRITE_DEADLINE_S)
    return deleted

"""Scheduled backups: one every `backupEveryHours`, counted from the one before, across restarts."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from fairlead.errors import FairleadError
from fairlead.gateway.backups.folder import Backup
from fairlead.gateway.backups.keeper import Keeper, keeper_of
from fairlead.moment import now_ms
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.outbox import Event, emit
from fairlead.store.services import BackgroundTask, Services

HOUR_MS: Final = 3_600_000
CHECK_EVERY_S: Final = 60.0
# After a start there is other work; a process that starts again and again makes no backup each time.
FIRST_CHECK_AFTER_S: Final = 300.0
RETRY_AFTER_S: Final = 900.0

log = structlog.get_logger("fairlead.gateway")


async def run_schedule(services: Services) -> None:
    """Makes the backups that are due; runs until it is cancelled. A failed backup sends the event `backup.failed`
    and is retried a quarter of an hour later.
    """
    wait_s = FIRST_CHECK_AFTER_S
    while True:
        await asyncio.sleep(wait_s)
        is_made = await make_if_due(services, now_ms())
        wait_s = CHECK_EVERY_S if is_made else RETRY_AFTER_S


async def make_if_due(services: Services, at_ms: int) -> bool:
    """Makes a backup if one is due at this moment (UTC milliseconds). False if that failed."""
    settings = await services.state.read(read_operator_settings)
    keeper = keeper_of(services)
    if not is_due(await _newest_scheduled_ms(keeper), settings.backup_every_hours, at_ms):
        return True
    try:
        backup = await keeper.make("scheduled")
    except (FairleadError, OSError) as error:
        kind = error.kind if isinstance(error, FairleadError) else type(error).__name__
        log.error("scheduled backup failed", error=kind)
        failed = Event("backup.failed", {"errorKind": kind})
        await services.state.record(lambda con: emit(con, failed))
        return False
    log.info("scheduled backup made", backup=backup.id, bytes=backup.size)
    await services.state.record(lambda con: emit(con, _created(backup)))
    return True


def is_due(newest_ms: int | None, every_hours: int, at_ms: int) -> bool:
    """Whether a backup is due: `every_hours` after the newest scheduled one (UTC milliseconds), at
    once if there is none. A clock that went back does not stop backups.
    """
    if every_hours == 0:
        return False
    return newest_ms is None or abs(at_ms - newest_ms) >= every_hours * HOUR_MS


async def _newest_scheduled_ms(keeper: Keeper) -> int | None:
    backups = await keeper.folder.list()
    return next((each.created_at_ms for each in backups if each.reason == "scheduled"), None)


def _created(backup: Backup) -> Event:
    return Event("backup.created", {"id": backup.id, "sizeBytes": backup.size})


TASKS = (BackgroundTask("backups.schedule", run_schedule),)

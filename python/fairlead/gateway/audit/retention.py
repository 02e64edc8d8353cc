"""Deletion of audit entries that are older than the operator's setting."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from fairlead.moment import now_ms
from fairlead.store.audit_log import DAY_MS, delete_entries_before
from fairlead.store.file import Connection
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.services import BackgroundTask, Services

EVERY_S: Final = 3600.0

log = structlog.get_logger("fairlead.audit")


async def run_retention(services: Services) -> None:
    """Deletes old entries every hour, by the setting `auditRetentionDays`; runs until it is
    cancelled.
    """
    while True:
        deleted = await services.state.database.write(lambda con: sweep(con, now_ms()))
        if deleted:
            log.info("old audit entries deleted", entries=deleted)
        await asyncio.sleep(EVERY_S)


def sweep(con: Connection, at_ms: int) -> int:
    """Deletes what is too old at this moment (UTC milliseconds), in the writer; returns how many."""
    days = read_operator_settings(con).audit_retention_days
    return delete_entries_before(con, at_ms - days * DAY_MS)


TASKS = (BackgroundTask("audit.retention", run_retention),)

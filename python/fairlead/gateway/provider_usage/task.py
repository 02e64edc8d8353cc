"""Providers are asked for usage by the clock: each active connection whose provider tells it, every
`providerUsageMinutes`, which is 0 until an operator sets it: nobody is asked unbidden.

A connection is due by when it was asked last, so a restart asks nobody again. After failures the pauses grow
up to a day. At most two are asked at once.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from fairlead.errors import FairleadError
from fairlead.moment import now_ms
from fairlead.records.provider_usage import ProviderUsage, all_provider_usage
from fairlead.store.file import Connection as Database
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.services import BackgroundTask, Services

LOOK_EVERY_S: Final = 30.0
MINUTE_MS: Final = 60_000
PAUSE_MAX_MS: Final = 86_400_000
AT_ONCE: Final = 2
# In one look; the others are due at the next.
AT_MOST: Final = 50

log = structlog.get_logger("fairlead.gateway")


def due_ms(usage: ProviderUsage, every_minutes: int) -> int:
    """When a connection's provider is polled again, UTC milliseconds; 0 if it never was."""
    if usage.asked_at_ms is None:
        return 0
    every_ms = every_minutes * MINUTE_MS
    pause_ms: int = max(every_ms, min(every_ms * 2 ** min(usage.failures, 10), PAUSE_MAX_MS))
    return usage.asked_at_ms + pause_ms


async def read_due(services: Services, at_ms: int) -> list[str]:
    """Asks for the connections that are due at this moment (UTC milliseconds), those that wait longest first;
    returns their ids.
    """
    # Imported when there may be something to ask, since most gateways have another kind of provider.
    from fairlead.gateway.provider_usage.reader import (  # noqa: PLC0415
        needs_own_key,
        read_usage,
        usage_section,
    )
    from fairlead.gateway.providers.table import active_connections  # noqa: PLC0415

    settings = await services.state.read(read_operator_settings)
    minutes = settings.provider_usage_minutes
    if minutes == 0:
        return []

    def find_due(con: Database) -> list[tuple[int, str]]:
        known = all_provider_usage(con)
        found = []
        for connection in active_connections(con):
            section = usage_section(con, connection)
            usage = known.get(connection.id, ProviderUsage(connection.id))
            if section is None or (needs_own_key(section) and usage.key_sealed is None):
                continue
            if (due := due_ms(usage, minutes)) <= at_ms:
                found.append((due, connection.id))
        return sorted(found)

    due = [each for _, each in (await services.state.read(find_due))[:AT_MOST]]
    slots = asyncio.Semaphore(AT_ONCE)

    async def fetch(connection_id: str) -> None:
        async with slots:
            try:
                await read_usage(services, connection_id)
            except FairleadError as error:
                # Deleted or changed meanwhile, or the database does not answer: the next look finds out.
                log.warning("usage not read", connection_id=connection_id, error=error.kind)
            except Exception as error:  # noqa: BLE001 - one odd row must not stop the questions about the others
                log.error("usage not read", connection_id=connection_id, error=type(error).__name__)

    async with asyncio.TaskGroup() as group:
        for connection_id in due:
            group.create_task(fetch(connection_id))
    return due


async def run_usage(services: Services) -> None:
    """Asks for what is due; runs until it is cancelled."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        settings = await services.state.read(read_operator_settings)
        if settings.provider_usage_minutes and await services.state.read(_has_connections):
            await read_due(services, now_ms())


def _has_connections(con: Database) -> bool:
    return con.execute("SELECT 1 FROM provider_connections LIMIT 1").fetchone() is not None


TASKS = (BackgroundTask("providers.usage", run_usage),)

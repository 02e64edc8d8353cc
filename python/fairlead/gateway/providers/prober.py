"""Credentials are tested by the clock, where the operator wants it: each active connection every
`credentialProbeMinutes`, spread by `credentialProbeJitterPercent`.

A connection is due by its own last test, so a restart asks nobody again, and an operator's test counts
too. At most two are asked at once, and each question has its deadline.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Final

import structlog

from fairlead.errors import FairleadError, NotFound
from fairlead.gateway.providers.connection_test import test_connection
from fairlead.gateway.providers.table import Connection, active_connections
from fairlead.store.operator_settings import OperatorSettings, read_operator_settings
from fairlead.store.services import Services

MINUTE_MS: Final = 60_000
AT_ONCE: Final = 2
# In one look; the others are due at the next.
AT_MOST: Final = 50

log = structlog.get_logger("fairlead.gateway")


async def probe_due(services: Services, at_ms: int) -> list[str]:
    """Tests the connections that are due at this moment (UTC milliseconds), those that wait longest
    first; returns their ids.
    """
    settings = await services.state.read(read_operator_settings)
    if settings.credential_probe_minutes == 0:
        return []
    connections = await services.state.read(active_connections)
    due = [each for each in connections if due_ms(each, settings) <= at_ms]
    due = sorted(due, key=lambda each: due_ms(each, settings))[:AT_MOST]
    slots = asyncio.Semaphore(AT_ONCE)

    async def test(connection: Connection) -> None:
        async with slots:
            try:
                await test_connection(services, connection.id, by_operator=False)
            except NotFound:
                return  # deleted meanwhile
            except FairleadError as error:
                log.error("a connection is not tested", id=connection.id, error=error.kind)
            except Exception as error:  # noqa: BLE001 - one odd row must not stop the tests of the others
                log.error(
                    "a connection is not tested", id=connection.id, error=type(error).__name__
                )

    async with asyncio.TaskGroup() as group:
        for connection in due:
            group.create_task(test(connection))
    return [each.id for each in due]


def due_ms(connection: Connection, settings: OperatorSettings) -> int:
    """When the connection is due: the interval after its last test, or after it was made, sooner or
    later by its share of the jitter. The share is the same for one test and another for the next.
    """
    last_ms = connection.last_tested_at_ms or connection.created_at_ms
    every_ms = settings.credential_probe_minutes * MINUTE_MS
    spread_ms = every_ms * settings.credential_probe_jitter_percent // 100
    digest = hashlib.sha256(f"{connection.id}:{last_ms}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    return last_ms + every_ms - spread_ms + int(2 * spread_ms * share)

"""Keeping of bodies: those that relay workers wrote are taken in, and bounded by age, size and keys.

Bodies of keys that are gone, or want no log by now, are deleted within a minute, however they went.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

import structlog

from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.kept_bodies import KeptBodies
from fairlead.store.operator_settings import OperatorSettings, read_operator_settings
from fairlead.store.services import Services
from fairlead.usage.spool_watch import SpoolWatch

DAY_MS: Final = 86_400_000
SWEEP_EVERY_S: Final = 60.0
# Files are moved together: a busy gateway writes many in a second.
PAUSE_S: Final = 0.5

log = structlog.get_logger("fairlead.usage")


class BodyKeeper:
    """The process's access to kept bodies, one change at a time."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._busy = asyncio.Lock()
        self.bodies = KeptBodies(services.data_dir)
        self._keys: frozenset[str] | None = None

    async def run(self) -> None:
        """Takes in and sweeps until it is cancelled."""
        swept_s = -SWEEP_EVERY_S
        with SpoolWatch(self.bodies.spool) as watch:
            while True:
                watch.begin_look()
                await self.take_in()
                if time.monotonic() - swept_s >= SWEEP_EVERY_S:
                    swept_s = time.monotonic()
                    await self.sweep()
                await asyncio.sleep(PAUSE_S)
                await watch.wait()

    async def take_in(self) -> None:
        """Moves what workers have written."""
        async with self._busy:
            await asyncio.to_thread(self.bodies.take_in)

    async def sweep(self) -> None:
        """Deletes what is over its bounds now."""
        if await asyncio.to_thread(self.bodies.total_bytes) == 0:
            return
        settings, keys = await self._services.state.read(_bounds)
        days = min(settings.capture_days, settings.usage_retention_days)
        async with self._busy:
            deleted = await asyncio.to_thread(self.bodies.delete_before, now_ms() - days * DAY_MS)
            # Names are read again only where a key went: after a start nobody knows which did.
            if self._keys is None or not self._keys <= keys:
                deleted += await asyncio.to_thread(self.bodies.delete_of_others, keys)
            self._keys = keys
            deleted += await asyncio.to_thread(
                self.bodies.delete_surplus, settings.capture_mb * 1024 * 1024
            )
        if deleted:
            log.info("kept bodies deleted", files=deleted)

    async def delete_before(self, before_ms: int) -> int:
        """Deletes what was admitted before this moment (UTC milliseconds); returns how many."""
        async with self._busy:
            return await asyncio.to_thread(self.bodies.delete_before, before_ms)


def body_keeper_of(services: Services) -> BodyKeeper:
    """The process's keeper of bodies, made when it is first needed."""
    return services.singleton(BodyKeeper, lambda: BodyKeeper(services))


def _bounds(con: Connection) -> tuple[OperatorSettings, frozenset[str]]:
    """The settings, and the keys that may have bodies kept."""
    rows = con.execute("SELECT id FROM keys WHERE NOT no_log").fetchall()
    return read_operator_settings(con), frozenset(str(row[0]) for row in rows)

"""Bodies that are kept in the data directory: taken in there, and bounded by age, size and keys.

Bodies of keys that are gone, or want no log by now, are deleted within a minute, however they went.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import structlog

from fairlead.moment import now_ms
from fairlead.records.kept_bodies import BodyName, KeptBodies
from fairlead.store.services import Services
from fairlead.store.spool_watch import SpoolWatch
from fairlead.usage.bodies.body_bounds import PAUSE_S, SWEEP_EVERY_S, read_bounds

log = structlog.get_logger("fairlead.usage")


class LocalBodyKeeper:
    """`BodyKeeper` over the data directory, one change at a time."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._busy = asyncio.Lock()
        self.bodies = KeptBodies(services.data_dir)
        self._keys: frozenset[str] | None = None

    @property
    def spool(self) -> Path:
        return self.bodies.spool

    async def run(self) -> None:
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

    async def find(self, name: BodyName) -> bytes | None:
        return await asyncio.to_thread(self.bodies.find, name)

    async def has(self, names: Sequence[BodyName]) -> list[bool]:
        return await asyncio.to_thread(lambda: [self.bodies.has(name) for name in names])

    async def take_in(self) -> None:
        async with self._busy:
            taken = await asyncio.to_thread(self.bodies.take_in)
            if self._keys is not None and not taken <= self._keys:
                # The body belongs to a new key, or to one that was deleted before it came.
                self._keys = None

    async def sweep(self) -> None:
        if await asyncio.to_thread(self.bodies.total_bytes) == 0:
            return
        bounds = await self._services.state.read(read_bounds)
        keys, before_ms = bounds.keys, bounds.before_ms(now_ms())
        async with self._busy:
            deleted = await asyncio.to_thread(self.bodies.delete_before, before_ms)
            # Names are read again only where a key went: after a start nobody knows which did.
            if self._keys is None or not self._keys <= keys:
                deleted += await asyncio.to_thread(self.bodies.delete_of_others, keys)
            self._keys = keys
            deleted += await asyncio.to_thread(self.bodies.delete_surplus, bounds.limit_bytes)
        if deleted:
            log.info("kept bodies deleted", files=deleted)

    async def delete_before(self, before_ms: int) -> int:
        async with self._busy:
            return await asyncio.to_thread(self.bodies.delete_before, before_ms)

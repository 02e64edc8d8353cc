"""Work that one control does for all of a database: whoever has its advisory lock.

The locks belong to one connection. If that is lost, another control may have them at once, so the work of this
one is cancelled, and begins again when it gets the locks.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import psycopg
import structlog

from fairlead.store.postgresql.channels import AsyncRaw, connect_async

T = TypeVar("T")

# The first of an advisory lock's two numbers says that it is one of ours.
CLASS: Final = 0x6661_6972
LOOK_EVERY_S: Final = 1.0

log = structlog.get_logger("fairlead.store")


class Locks:
    """The locks of this process. `run` watches over their connection and belongs to a background task."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._raw: AsyncRaw | None = None
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Connects, and looks that the connection lives, until it is cancelled or the connection is lost."""
        async with await connect_async(self._url, "locks") as raw:
            self._set(raw)
            try:
                while True:
                    await asyncio.sleep(LOOK_EVERY_S)
                    await raw.execute("SELECT 1")
            finally:
                self._set(None)

    async def alone(self, name: str, run: Callable[[], Awaitable[T]]) -> T:
        """Runs `run` while this process has the lock of this name; waits for it as long as it takes."""
        while True:
            raw = await self._connected()
            if not await _take(raw, name):
                await asyncio.sleep(LOOK_EVERY_S)
                continue
            work = asyncio.ensure_future(run())
            lost = asyncio.ensure_future(self._until_not(raw))
            try:
                await asyncio.wait((work, lost), return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    return work.result()
                log.warning("the lock is lost, work begins again", work=name)
            finally:
                for each in (work, lost):
                    each.cancel()
                await asyncio.wait((work, lost))
                await _give_back(raw, name)

    def _set(self, raw: AsyncRaw | None) -> None:
        self._raw = raw
        self._changed.set()
        self._changed = asyncio.Event()

    async def _connected(self) -> AsyncRaw:
        while self._raw is None:
            await self._changed.wait()
        return self._raw

    async def _until_not(self, raw: AsyncRaw) -> None:
        while self._raw is raw:
            await self._changed.wait()


async def _take(raw: AsyncRaw, name: str) -> bool:
    try:
        found = await raw.execute(
            "SELECT pg_try_advisory_lock($1::INTEGER, $2::INTEGER)", [CLASS, _number(name)]
        )
        row = await found.fetchone()
    except psycopg.OperationalError:
        # `run` finds the connection lost too, and a new one is made.
        return False
    return bool(row and row[0])


async def _give_back(raw: AsyncRaw, name: str) -> None:
    # A lost connection has no locks to give back.
    with contextlib.suppress(psycopg.Error):
        await raw.execute(
            "SELECT pg_advisory_unlock($1::INTEGER, $2::INTEGER)", [CLASS, _number(name)]
        )


def _number(name: str) -> int:
    return zlib.crc32(name.encode()) - 2**31

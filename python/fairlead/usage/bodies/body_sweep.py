"""The bounds of bodies in a store of files that nodes share, held by one of them for all.

Lists of a bucket cost time and money, so sizes and keys of each hour are remembered. Hours that are still
written to are listed at each sweep, everything once an hour and after a purge. Deletions begin with the oldest
and list no further than necessary.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead.records.kept_bodies import FOLDER, HOUR_MS, BodyName, parse_name
from fairlead.store.blobs.blob import Blobs
from fairlead.usage.bodies.body_bounds import BodyBounds

LIST_ALL_EVERY_S: Final = 3600.0
# Longer than most answers take, and than clocks of nodes differ.
WRITTEN_TO_FOR_MS: Final = 600_000
LEFT_AFTER_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class SharedBody:
    """A body in the store."""

    name: BodyName
    size: int


@dataclass(slots=True)
class HourStock:
    """The size and the keys of the indexed bodies of an hour."""

    size: int = 0
    keys: set[str] = field(default_factory=set)


async def stored_bodies(blobs: Blobs, folder: str) -> AsyncIterator[list[SharedBody]]:
    """The bodies below a folder of the store, the oldest first, some at a time."""
    async for page in blobs.pages(folder):
        named = ((blob, parse_name(blob.file)) for blob in page)
        yield [
            SharedBody(name, blob.size)
            for blob, name in named
            if name is not None and name.path == blob.name
        ]
        # A folder that answers at once would let nothing else run.
        await asyncio.sleep(0)


class BodySweep:
    """The sweeps of one node, for as long as it is this node's turn."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._hours: dict[int, HourStock] = {}
        self._listed_s: float | None = None
        self._purged_before_ms = 0
        self._busy = asyncio.Lock()

    @property
    def total_bytes(self) -> int:
        """The bytes of all remembered bodies."""
        return sum(stock.size for stock in self._hours.values())

    async def run(self, bounds: BodyBounds, at_ms: int) -> int:
        """Deletes everything beyond its limits at this time (UTC milliseconds); returns the number."""
        async with self._busy:
            try:
                await self._refresh(bounds, at_ms)
                return (
                    await self._delete_before(bounds.before_ms(at_ms))
                    + await self._delete_of_others(bounds.keys)
                    + await self._delete_surplus(bounds.limit_bytes)
                )
            except BaseException:
                # The point of the interruption is unknown.
                self._listed_s = None
                raise

    # --- what there is

    async def _refresh(self, bounds: BodyBounds, at_ms: int) -> None:
        now_s = time.monotonic()
        is_due = self._listed_s is None or now_s - self._listed_s >= LIST_ALL_EVERY_S
        if is_due or bounds.purged_before_ms != self._purged_before_ms:
            await self._blobs.forget_unfinished(FOLDER, at_ms - LEFT_AFTER_MS)
            self._hours = await self._stock_of(FOLDER)
            self._listed_s = now_s
            self._purged_before_ms = bounds.purged_before_ms
            return
        for hour in range((at_ms - WRITTEN_TO_FOR_MS) // HOUR_MS, at_ms // HOUR_MS + 1):
            self._hours.pop(hour, None)
            self._hours |= await self._stock_of(_folder_of(hour))

    async def _stock_of(self, folder: str) -> dict[int, HourStock]:
        hours: dict[int, HourStock] = {}
        async for page in stored_bodies(self._blobs, folder):
            for body in page:
                stock = hours.setdefault(body.name.hour, HourStock())
                stock.size += body.size
                if body.name.key_id is not None:
                    stock.keys.add(sys.intern(body.name.key_id))
        return hours

    # --- what goes

    async def _delete_before(self, before_ms: int) -> int:
        deleted = 0
        for hour in sorted(self._hours):
            if hour > before_ms // HOUR_MS:
                break
            async for page in stored_bodies(self._blobs, _folder_of(hour)):
                old = [body for body in page if body.name.ts_ms < before_ms]
                deleted += await self._remove(old)
                if len(old) < len(page):
                    break
            else:
                self._hours.pop(hour)
        return deleted

    async def _delete_of_others(self, keys: frozenset[str]) -> int:
        deleted = 0
        for hour, stock in sorted(self._hours.items()):
            if stock.keys <= keys:
                continue
            async for page in stored_bodies(self._blobs, _folder_of(hour)):
                deleted += await self._remove(
                    [
                        body
                        for body in page
                        if body.name.key_id is not None and body.name.key_id not in keys
                    ]
                )
            stock.keys &= keys
        return deleted

    async def _delete_surplus(self, limit_bytes: int) -> int:
        deleted = 0
        for hour in sorted(self._hours):
            if self.total_bytes <= limit_bytes:
                break
            async for page in stored_bodies(self._blobs, _folder_of(hour)):
                oldest = list(_first(page, self.total_bytes - limit_bytes))
                deleted += await self._remove(oldest)
                if len(oldest) < len(page):
                    return deleted
            self._hours.pop(hour)
        return deleted

    async def _remove(self, bodies: Sequence[SharedBody]) -> int:
        await self._blobs.remove(*(body.name.path for body in bodies))
        for body in bodies:
            self._hours[body.name.hour].size -= body.size
        return len(bodies)


def _first(bodies: Sequence[SharedBody], surplus_bytes: int) -> Iterator[SharedBody]:
    """The first of these, until they have so many bytes."""
    for body in bodies:
        if surplus_bytes <= 0:
            return
        surplus_bytes -= body.size
        yield body


def _folder_of(hour: int) -> str:
    return f"{FOLDER}/{hour}"

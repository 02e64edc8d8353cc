"""Calls of each key in the present day (UTC). They are counted in memory and stored every `WRITE_EVERY_S`: a crash
loses the last of them, a restart none.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from fairlead.errors import FairleadError, RateLimited
from fairlead.moment import iso, moment_of
from fairlead.store.file import Connection
from fairlead.store.services import Services
from fairlead.store.table import read_number

DAY_MS: Final = 86_400_000
WRITE_EVERY_S: Final = 5.0
OWNERS_MAX: Final = 10_000

log = structlog.get_logger("fairlead.scrape")


class DailyCalls:
    """The counts of the present day, one object for the process."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._day = ""
        self._counts: dict[str, int] = {}
        self._unstored: set[str] = set()

    async def made(self, owner: str, at_ms: int) -> int:
        """How many calls a key has made on the day of this moment."""
        day = day_of(at_ms)
        self._turn_to(day)
        if owner not in self._counts:
            stored = await self._services.state.read(lambda con: _stored(con, owner, day))
            self._turn_to(day)
            self._counts.setdefault(owner, stored if self._day == day else 0)
        return self._counts[owner]

    async def spend(self, owner: str, most: int, at_ms: int) -> int:
        """Counts a call; how many there are now. `RateLimited` when the day has no room for it. 0 is no limit."""
        if await self.made(owner, at_ms) >= most > 0:
            raise RateLimited(
                "Daily quota exceeded: the next day begins at midnight UTC.",
                retry_after_s=max(1, (DAY_MS - at_ms % DAY_MS) // 1000),
                extra={"dailyLimit": most, "remaining": 0},
            )
        self._counts[owner] += 1
        self._unstored.add(owner)
        return self._counts[owner]

    async def store_counts(self) -> None:
        """Stores the counts that have changed since they were last stored."""
        day, owners = self._day, self._unstored
        if not owners:
            return
        counts = {owner: self._counts[owner] for owner in owners}
        self._unstored = set()
        try:
            await self._services.state.database.write(lambda con: _store(con, day, counts))
        except FairleadError as error:
            # Logged, and stored with the next counts.
            log.warning("calls not stored", error=error.kind)
            if self._day == day:
                self._unstored |= owners
            return
        for owner in list(self._counts)[: max(0, len(self._counts) - OWNERS_MAX)]:
            if owner not in self._unstored:
                del self._counts[owner]

    def _turn_to(self, day: str) -> None:
        if day > self._day:
            self._day, self._counts, self._unstored = day, {}, set()


def day_of(at_ms: int) -> str:
    """The UTC date: `2026-11-22`."""
    return iso(moment_of(at_ms))[:10]


def daily_calls_of(services: Services) -> DailyCalls:
    """The process's counts, made when they are first needed."""
    return services.singleton(DailyCalls, lambda: DailyCalls(services))


async def store_daily_calls(services: Services) -> None:
    """Stores the counts every few seconds and at the end; lasts until it is cancelled."""
    try:
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            await daily_calls_of(services).store_counts()
    finally:
        await daily_calls_of(services).store_counts()


def _stored(con: Connection, owner: str, day: str) -> int:
    query = "SELECT calls FROM scrape_calls WHERE owner = ? AND day = ?"
    return read_number(con, query, [owner, day])


def _store(con: Connection, day: str, counts: dict[str, int]) -> None:
    con.execute("DELETE FROM scrape_calls WHERE day < ?", [day])
    for owner, calls in counts.items():
        con.execute("DELETE FROM scrape_calls WHERE owner = ?", [owner])
        con.execute(
            "INSERT INTO scrape_calls (owner, day, calls) VALUES (?, ?, ?)", [owner, day, calls]
        )

"""Work on rows that become due: one at a time for each row, a few rows at once, again after growing pauses."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Final

from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.state import State

AT_ONCE: Final = 8
PAUSE_FIRST_MS: Final = 5_000
PAUSE_MAX_MS: Final = 900_000
LONGEST_SLEEP_S: Final = 30.0
_SHORTEST_SLEEP_S: Final = 0.25
_UNUSED_LOCKS_MAX: Final = 1_000


class Turns:
    """`slots` bounds the rows that are worked on at once; each row has one worker at a time."""

    def __init__(self) -> None:
        self.slots = asyncio.Semaphore(AT_ONCE)
        self._locks: dict[str, asyncio.Lock] = {}

    def of(self, row_id: str) -> asyncio.Lock:
        """The lock of a row."""
        free = [each for each, lock in self._locks.items() if not lock.locked()]
        for each in free[:-_UNUSED_LOCKS_MAX]:
            del self._locks[each]
        return self._locks.setdefault(row_id, asyncio.Lock())


def pause_ms(failures: int) -> int:
    """How long to wait after so many failures before this one: doubled each time, and spread by a fifth, so
    that many rows do not come back at once.
    """
    pause: int = min(PAUSE_MAX_MS, PAUSE_FIRST_MS * 2 ** min(failures, 20))
    return round(pause * random.uniform(0.8, 1.2))  # noqa: S311 - no secret is made of it


async def run_when_due(
    state: State,
    work: Callable[[], Awaitable[None]],
    next_due_ms: Callable[[Connection], int | None],
    wait_s: Callable[[], float | None] = lambda: None,
) -> None:
    """Runs until it is cancelled. Does the work after each change of the database and when the next row is due, at
    least every 30 seconds. `wait_s` gives a time to wait in place of the row's.
    """
    changed = state.watch()
    try:
        while True:
            changed.clear()
            await work()
            due_ms = await state.read(next_due_ms)
            sleep_s = LONGEST_SLEEP_S
            if due_ms is not None:
                sleep_s = max(_SHORTEST_SLEEP_S, min(sleep_s, (due_ms - now_ms()) / 1000))
            # Not `wait_for`, which drops a cancellation that comes together with the change.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s() or sleep_s):
                    await changed.wait()
    finally:
        state.unwatch(changed)

"""A fair queue: a few places, shared between owners who wait for them.

One owner never holds all places, and waiting owners take turns, however many requests one of them waits with. So slow
pages hold up the key that sent them, and hardly any other.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class QueueFull(Exception):
    """A refusal, because enough requests wait already, in all or of this owner."""


class FairQueue:
    """Up to `slots`, of which one owner holds `slots_per_owner`; `waiting_max` and `own_waiting_max` can wait."""

    def __init__(
        self, slots: int, slots_per_owner: int, waiting_max: int, own_waiting_max: int
    ) -> None:
        self._free = slots
        self._slots_per_owner = slots_per_owner
        self._waiting_max = waiting_max
        self._own_waiting_max = own_waiting_max
        self._in_use: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def slot(self, owner: str) -> AsyncIterator[None]:
        """Holds a place while it is open. `QueueFull`."""
        await self._take(owner)
        try:
            yield
        finally:
            self._give_back(owner)

    async def _take(self, owner: str) -> None:
        own = self._waiting.get(owner, ())
        if not own and self._may_begin(owner):
            self._begin(owner)
            return
        if (
            len(own) >= self._own_waiting_max
            or sum(map(len, self._waiting.values())) >= self._waiting_max
        ):
            raise QueueFull
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():
                # The place was given in the same moment: it is passed on.
                self._give_back(owner)
            else:
                self._stop_waiting(owner, slot)
            raise

    def _may_begin(self, owner: str) -> bool:
        return self._free > 0 and self._in_use[owner] < self._slots_per_owner

    def _begin(self, owner: str) -> None:
        self._free -= 1
        self._in_use[owner] += 1

    def _give_back(self, owner: str) -> None:
        self._free += 1
        self._in_use[owner] -= 1
        if not self._in_use[owner]:
            del self._in_use[owner]
        self._serve_next()

    def _stop_waiting(self, owner: str, slot: asyncio.Future[None]) -> None:
        own = self._waiting.get(owner)
        if own is not None and slot in own:
            own.remove(slot)
            if not own:
                del self._waiting[owner]

    def _serve_next(self) -> None:
        """Gives free places to the owners in turn; one that was served goes to the end of the line."""
        for owner in list(self._waiting):
            if self._free <= 0:
                return
            own = self._waiting[owner]
            while own and self._may_begin(owner):
                slot = own.popleft()
                if not slot.done():
                    self._begin(owner)
                    slot.set_result(None)
                    self._waiting.move_to_end(owner)
                    break
            if not own:
                del self._waiting[owner]

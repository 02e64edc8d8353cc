"""Which endpoints this control delivers to, where several share a database: those whose lease it has.

An endpoint's deliveries are sent by one control, as if there were no other: a few at a time, one at a time when it
fails, over its kept connections. A control leases an endpoint when something is due, and gives it back when nothing is
left. One that dies or stands still loses it to another (`fairlead.store.work_leases`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from fairlead.store.peers import WorkLeases, take_if_reached
from fairlead.store.work_leases import Lease

KIND: Final = "webhook"
HELD_MAX: Final = 512
# Controls that are woken by the same change each get some.
TAKEN_AT_ONCE: Final = 32
# The interval after which an endpoint of another control is requested again.
ASK_AGAIN_S: Final = 1.0


class EndpointLeases:
    """The leases of this control. `on_lost` is called with an endpoint that must not be sent to any more."""

    def __init__(self, leases: WorkLeases, on_lost: Callable[[str], None]) -> None:
        self._leases = leases
        self._on_lost = on_lost
        self._refused_s: dict[str, float] = {}
        self.by_endpoint: dict[str, Lease] = {}

    def free_slots(self) -> int:
        """How many more may be leased now."""
        return min(HELD_MAX - len(self.by_endpoint), TAKEN_AT_ONCE)

    def passed_over(self) -> list[str]:
        """Endpoints that are not worth asking for: those that it has, and those that others had a moment ago."""
        now_s = time.monotonic()
        self._refused_s = {
            each: until_s for each, until_s in self._refused_s.items() if until_s > now_s
        }
        return [*self.by_endpoint, *self._refused_s]

    def waits_for_others(self) -> bool:
        """Whether something is due to endpoints that others had when they were asked for."""
        return bool(self._refused_s)

    async def take(self, endpoint_ids: Collection[str]) -> None:
        """Leases those that nobody else has."""
        if not endpoint_ids:
            return
        taken = await take_if_reached(self._leases, KIND, endpoint_ids)
        for endpoint_id, lease in taken.items():
            lease.on_lost = partial(self._mark_lost, endpoint_id)
            self.by_endpoint[endpoint_id] = lease
        until_s = time.monotonic() + ASK_AGAIN_S
        self._refused_s |= {each: until_s for each in endpoint_ids if each not in taken}

    async def give_back(self, endpoint_ids: Collection[str]) -> None:
        """Gives back leases that it has."""
        await self._leases.release([self.by_endpoint.pop(each) for each in endpoint_ids])

    def _mark_lost(self, endpoint_id: str) -> None:
        self.by_endpoint.pop(endpoint_id, None)
        self._on_lost(endpoint_id)

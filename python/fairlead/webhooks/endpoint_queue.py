"""The queue of one endpoint: deliveries that wait, deliveries in flight, and kept connections."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

from fairlead.store.work_leases import Lease
from fairlead.webhooks.connection import IDLE_S, ConnectionPool
from fairlead.webhooks.due_deliveries import PER_ENDPOINT_MAX, DueDelivery


@dataclass(slots=True)
class EndpointQueue:
    """The queue of one endpoint. `is_failing`: its last known attempt failed. `lease` is the right to deliver to it,
    where several controls share a database.
    """

    waiting: deque[DueDelivery] = field(default_factory=deque)
    in_flight: int = 0
    is_failing: bool = False
    pool: ConnectionPool = field(default_factory=ConnectionPool)
    lease: Lease | None = None

    def takes_more(self, *, is_crowded: bool) -> bool:
        """Whether another delivery may go out now."""
        if self.lease is not None and not self.lease.is_good():
            return False
        most = 1 if self.is_failing or is_crowded else PER_ENDPOINT_MAX
        return bool(self.waiting) and self.in_flight < most

    def is_idle(self) -> bool:
        """Whether the queue has nothing left to do; closes connections that were idle for a while."""
        self.pool.close_idle(time.monotonic() - IDLE_S)
        return not self.waiting and not self.in_flight and not self.pool.connections

"""The way to one endpoint: what is taken up for it, what is in flight, and its connections."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

from fairlead.webhooks.connection import IDLE_S, Kept
from fairlead.webhooks.due import PER_ENDPOINT_MAX, Due


@dataclass(slots=True)
class Lane:
    """`is_failing`: the last that is known of the listener is a failure."""

    queue: deque[Due] = field(default_factory=deque)
    in_flight: int = 0
    is_failing: bool = False
    kept: Kept = field(default_factory=Kept)

    def takes_more(self, *, is_crowded: bool) -> bool:
        """Whether another delivery may go out now."""
        most = 1 if self.is_failing or is_crowded else PER_ENDPOINT_MAX
        return bool(self.queue) and self.in_flight < most

    def is_idle(self) -> bool:
        """Whether nothing is left to do; ends connections that nobody used for a while."""
        self.kept.close_idle(time.monotonic() - IDLE_S)
        return not self.queue and not self.in_flight and not self.kept.connections

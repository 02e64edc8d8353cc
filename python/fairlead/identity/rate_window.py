"""Ten attempts a minute for each address at everything that signs in or guards signing in.

A fixed window per address, on the monotonic clock, in a table of bounded size. It counts attempts,
right or wrong; `guess_limit` counts wrong ones over a longer time.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from fairlead.errors import RateLimited
from fairlead.identity.guess_limit import network_of

WINDOW_S = 60.0
ADDRESSES_MAX = 10_000


class RateWindow:
    """At most `limit` attempts of an address in each window of a minute."""

    def __init__(self, limit: int = 10, now: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._now = now
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def spend(self, peer: str) -> None:
        """Counts one attempt; `RateLimited` when there are no more."""
        began, count = self.count_attempt(peer)
        self._refuse_beyond(began, count)

    def count_attempt(self, peer: str) -> tuple[float, int]:
        """Counts one attempt; returns when the window began, and the attempts in it before."""
        now = self._now()
        address = network_of(peer)
        began, count = self._windows.pop(address, (now, 0))
        if now - began >= WINDOW_S:
            began, count = now, 0
        self._windows[address] = (began, count + 1)
        if len(self._windows) > ADDRESSES_MAX:
            self._windows.popitem(last=False)
        return began, count

    def check(self, peer: str) -> None:
        """`RateLimited` when there are no more attempts; counts none."""
        began, count = self._windows.get(network_of(peer), (0.0, 0))
        if self._now() - began < WINDOW_S:
            self._refuse_beyond(began, count)

    def _refuse_beyond(self, began: float, count: int) -> None:
        if count >= self._limit:
            raise RateLimited(
                "Too many attempts. Try again shortly.",
                retry_after_s=max(1, math.ceil(began + WINDOW_S - self._now())),
            )

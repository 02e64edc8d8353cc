"""Ten attempts a minute for an address; the next minute begins afresh."""

from __future__ import annotations

import pytest

from fairlead.errors import RateLimited
from fairlead.identity.rate_window import ADDRESSES_MAX, WINDOW_S, RateWindow

PEER = "192.0.2.1"


class Clock:
    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


def test_the_eleventh_in_a_minute_waits_for_the_next() -> None:
    clock = Clock()
    window = RateWindow(now=clock)
    for _ in range(10):
        window.spend(PEER)
    clock.s += WINDOW_S - 0.5
    with pytest.raises(RateLimited) as caught:
        window.spend(f"::ffff:{PEER}")
    assert caught.value.retry_after_s == 1
    window.spend("192.0.2.2")
    clock.s += 0.5
    for _ in range(10):
        window.spend(PEER)
    with pytest.raises(RateLimited):
        window.spend(PEER)


def test_the_table_is_bounded() -> None:
    window = RateWindow(now=Clock())
    for n in range(ADDRESSES_MAX + 10):
        window.spend(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}")
    assert len(window._windows) == ADDRESSES_MAX

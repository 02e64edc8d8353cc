"""Waiting for something to become true: by asking again until a deadline, never by sleeping and hoping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

WITHIN_S = 20.0
"""How long a test waits if it does not say. Control has the lowest priority of all processes: on a full
machine it may take ten seconds to import a module for its first request."""


def eventually(
    probe: Callable[[], T | None], what: str, *, within_s: float = WITHIN_S, every_s: float = 0.01
) -> T:
    """The first truthy answer of `probe`. Fails the test, saying `what` did not happen, after `within_s`."""
    deadline = time.monotonic() + within_s
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s} s: {what} (last seen: {found!r})")
        time.sleep(every_s)


def holds_for(probe: Callable[[], bool], what: str, *, for_s: float, every_s: float = 0.01) -> None:
    """Asserts that `probe` stays true for `for_s`: the test for things that must not happen."""
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        assert probe(), what
        time.sleep(every_s)

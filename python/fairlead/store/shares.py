"""Fair sharing of slots: an owner may take another slot only while more are free than it holds.

A single owner thus gets half of the slots, and each further owner half of the rest, so that a newcomer always
finds one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


class Shares:
    """The number of slots that each owner holds."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._in_use: Counter[str] = Counter()

    @property
    def free(self) -> int:
        """The number of free slots."""
        return self.slots - self._in_use.total()

    def has_capacity(self, owner: str) -> bool:
        """Whether the owner may take one more."""
        return self._in_use[owner] < self.free

    def take(self, owner: str) -> None:
        """Takes one slot for the owner."""
        self._in_use[owner] += 1

    def give_back(self, owner: str) -> None:
        """Returns one slot of the owner."""
        self._in_use[owner] -= 1
        if not self._in_use[owner]:
            # Owners without slots are dropped, so that the dictionary does not grow.
            del self._in_use[owner]

    def next_of(self, waiting: Iterable[T], owner_of: Callable[[T], str]) -> T | None:
        """The first waiting item of the owner with the fewest slots, or None if no owner may take one."""
        best: T | None = None
        for item in waiting:
            owner = owner_of(item)
            if self.has_capacity(owner) and (
                best is None or self._in_use[owner] < self._in_use[owner_of(best)]
            ):
                best = item
        return best

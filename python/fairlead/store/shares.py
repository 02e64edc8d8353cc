"""Fair shares of a number of places: an owner may take another only while more of them are free than it holds.

One owner alone gets half of the places, so that whoever comes next finds one at once, and the next after that, too:
what is left is halved again for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


class Shares:
    """Who holds how many of the places."""

    def __init__(self, places: int) -> None:
        self.places = places
        self._held: Counter[str] = Counter()

    @property
    def free(self) -> int:
        """Places that nobody holds."""
        return self.places - self._held.total()

    def has_room(self, owner: str) -> bool:
        """Whether the owner may take one more."""
        return self._held[owner] < self.free

    def take(self, owner: str) -> None:
        """The owner holds one more."""
        self._held[owner] += 1

    def give_back(self, owner: str) -> None:
        """The owner holds one less."""
        self._held[owner] -= 1
        if not self._held[owner]:
            # Owners come and go: who holds nothing is not remembered.
            del self._held[owner]

    def next_of(self, waiting: Iterable[T], owner_of: Callable[[T], str]) -> T | None:
        """Whose turn it is: the first of the owner that holds the fewest, if there is a place for it."""
        best: T | None = None
        for item in waiting:
            owner = owner_of(item)
            if self.has_room(owner) and (
                best is None or self._held[owner] < self._held[owner_of(best)]
            ):
                best = item
        return best

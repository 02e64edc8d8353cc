"""The other controls of one database, for whom a change must be in force too. A file has none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Peers(Protocol):
    """The controls of one database; `fairlead.store.postgresql` has the implementation."""

    async def applied(self, version: int, deadline_s: float) -> bool:
        """Waits until every other live control says that its relays have applied a snapshot; False at the deadline."""

    async def alone(self, name: str, run: Callable[[], Awaitable[T]]) -> T:
        """Runs what only one of the controls may do at a time, once it is this one's turn."""

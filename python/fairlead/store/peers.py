"""The other controls of one database, for whom a change must be in force too. A file has none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from fairlead.errors import StorageUnavailable
from fairlead.store.work_leases import Lease

T = TypeVar("T")


class WorkLeases(Protocol):
    """Which control works on which item (`work_leases.py`)."""

    holder: str
    length_ms: int

    async def take(self, kind: str, item_ids: Collection[str]) -> dict[str, Lease]:
        """Leases of those items that nobody else has, by item."""

    def begin(self, kind: str, item_id: str) -> Lease:
        """A lease of an item that is about to be stored with it."""

    async def held_elsewhere(self, kind: str) -> set[str]:
        """The items of a kind that other controls work on."""

    async def release(self, leases: Iterable[Lease]) -> None:
        """Gives leases back."""

    def lease_counts(self) -> dict[str, int]:
        """How many leases of each kind this process has."""


async def take_if_reached(
    leases: WorkLeases, kind: str, item_ids: Collection[str]
) -> dict[str, Lease]:
    """Leases of those items that nobody else has, by item; none while the connection for leases is being made."""
    try:
        return await leases.take(kind, item_ids)
    except StorageUnavailable:
        return {}


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A live control as the database has it. `report` is what it says of itself, as JSON; an older version has none."""

    id: str
    host: str
    fairlead_version: str
    started_at_ms: int
    seen_ms_ago: int
    applied_version: int
    report: str | None


class Peers(Protocol):
    """The controls of one database; `fairlead.store.postgresql` has the implementation."""

    @property
    def leases(self) -> WorkLeases:
        """The leases of work."""

    async def applied(self, version: int, deadline_s: float) -> bool:
        """Waits until every other live control says that its relays have applied a snapshot; False at the deadline."""

    async def stored_responses(self, deadline_s: float) -> bool:
        """Waits until every other live control has stored the responses that its relays answered before the call; False
        at the deadline.
        """

    def is_cut_off(self) -> bool:
        """Whether the other controls have not heard of this one for so long that they may soon forget it."""

    async def live(self) -> list[NodeRow]:
        """The live controls, this one included; `StorageUnavailable` while the database does not answer."""

    async def alone(self, name: str, run: Callable[[], Awaitable[T]]) -> T:
        """Runs what only one of the controls may do at a time, once it is this one's turn."""

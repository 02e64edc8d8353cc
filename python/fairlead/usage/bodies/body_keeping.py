"""Keeping of bodies: those that relay workers wrote are taken in, found, and bounded by age, size and keys.

They are kept in the data directory (`local_bodies.py`), or where there is a store of files, there, for every node
that has the same (`shared_bodies.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from fairlead.records.kept_bodies import BodyName
from fairlead.store.services import Services
from fairlead.usage.bodies.local_bodies import LocalBodyKeeper


class BodyKeeper(Protocol):
    """A process's access to kept bodies. `StorageUnavailable` where they are elsewhere and cannot be reached."""

    @property
    def spool(self) -> Path:
        """The folder in which the relay workers of this machine write."""

    async def run(self) -> None:
        """Takes in and sweeps until it is cancelled."""

    async def find(self, name: BodyName) -> bytes | None:
        """The sealed content, wherever it is."""

    async def has(self, names: Sequence[BodyName]) -> list[bool]:
        """For each, whether its content is found now; False if that cannot be checked."""

    async def take_in(self) -> None:
        """Moves what workers have written to where it is kept."""

    async def sweep(self) -> None:
        """Deletes everything beyond its limits."""

    async def delete_before(self, before_ms: int) -> int:
        """Deletes everything admitted before this time (UTC milliseconds); returns the number."""


def body_keeper_of(services: Services) -> BodyKeeper:
    """The process's keeper of bodies, made when it is first needed."""
    if services.config.files_location is None:
        return services.singleton(LocalBodyKeeper, lambda: LocalBodyKeeper(services))
    # A single node does not use it.
    from fairlead.usage.bodies.shared_bodies import SharedBodyKeeper  # noqa: PLC0415

    return services.singleton(SharedBodyKeeper, lambda: SharedBodyKeeper(services))

"""Notifies waiting tasks that settled requests have arrived in the usage database."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class Arrivals:
    """The events of those who wait. `usage.ingest` announces each round that stored rows."""

    wanted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by who needs what was settled before now: the next round begins at once."""
    _watchers: list[asyncio.Event] = field(default_factory=list)

    def watch(self) -> asyncio.Event:
        """An event that is set after each round; the waiter clears it."""
        watcher = asyncio.Event()
        self._watchers.append(watcher)
        return watcher

    def unwatch(self, watcher: asyncio.Event) -> None:
        """Removes an event returned by `watch`."""
        self._watchers.remove(watcher)

    def announce(self) -> None:
        """Sets every event."""
        for watcher in self._watchers:
            watcher.set()

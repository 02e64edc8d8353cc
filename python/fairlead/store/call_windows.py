"""Counts of calls in windows of a minute, each window from its first call.

One process counts in memory. Nodes that share a database count in the database, so that a limit is the same over all
of them.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.services import Services

WINDOW_MS: Final = 60_000
NAMES_MAX: Final = 20_000

_COUNT: Final = """
INSERT INTO call_windows (name, begun_at_ms, calls) VALUES (?, ?, 1)
ON CONFLICT (name) DO UPDATE SET
    calls = CASE WHEN call_windows.begun_at_ms <= ? THEN 1 ELSE call_windows.calls + 1 END,
    begun_at_ms = CASE WHEN call_windows.begun_at_ms <= ? THEN excluded.begun_at_ms ELSE call_windows.begun_at_ms END
RETURNING begun_at_ms, calls
"""


@dataclass(frozen=True, slots=True)
class Window:
    """A window that a call was counted in. `calls` includes it."""

    calls: int
    ends_at_ms: int

    def ends_in_s(self, at_ms: int) -> int:
        """The whole seconds until the next window, at least 1."""
        return max(1, math.ceil((self.ends_at_ms - at_ms) / 1000))


class CallWindows:
    """The windows of this process, or of all nodes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._is_shared = services.config.database_url is not None
        self._windows: OrderedDict[str, tuple[int, int]] = OrderedDict()

    async def count(self, names: Sequence[str], at_ms: int) -> list[Window]:
        """Counts one call under each name."""
        if self._is_shared:
            # In one order, so that two calls cannot wait for each other.
            found = await self._services.state.database.write(
                lambda con: {name: _count(con, name, at_ms) for name in sorted(set(names))}
            )
        else:
            found = {name: self._count(name, at_ms) for name in names}
        return [Window(found[name][1], found[name][0] + WINDOW_MS) for name in names]

    def _count(self, name: str, at_ms: int) -> tuple[int, int]:
        begun_at_ms, calls = self._windows.pop(name, (at_ms, 0))
        if begun_at_ms <= at_ms - WINDOW_MS:
            begun_at_ms, calls = at_ms, 0
        self._windows[name] = (begun_at_ms, calls + 1)
        while len(self._windows) > NAMES_MAX:
            self._windows.popitem(last=False)
        return begun_at_ms, calls + 1


def call_windows_of(services: Services) -> CallWindows:
    """The process's windows, made when they are first needed."""
    return services.singleton(CallWindows, lambda: CallWindows(services))


def sweep_call_windows(con: Connection) -> None:
    """Deletes windows that are over, in the writer."""
    con.execute("DELETE FROM call_windows WHERE begun_at_ms <= ?", [now_ms() - WINDOW_MS])


def _count(con: Connection, name: str, at_ms: int) -> tuple[int, int]:
    over_ms = at_ms - WINDOW_MS
    row = con.execute(_COUNT, [name, at_ms, over_ms, over_ms]).fetchone()
    return (int(row[0]), int(row[1])) if row is not None else (at_ms, 1)

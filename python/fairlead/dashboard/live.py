"""Parts of an open page that are sent anew, over one stream of server-sent events for each tab.

Tabs that show one page share what is read for it, so ten consoles ask as often as one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import orjson

from fairlead.errors import Overloaded

STREAMS_MAX: Final = 64
# Afterwards the browser comes back, so that the relay asks again who it is.
LASTS_S: Final = 60.0
FRESH_S: Final = 1.5
PAGES_KEPT: Final = 64
DEADLINE_S: Final = 20.0

Parts = dict[str, str]


@dataclass(slots=True)
class LivePages:
    """The parts of open pages, by address and visitor."""

    streams: int = 0
    _parts: dict[tuple[str, ...], tuple[float, Parts]] = field(default_factory=dict)
    _locks: dict[tuple[str, ...], asyncio.Lock] = field(default_factory=dict)

    async def parts(self, key: tuple[str, ...], make: Callable[[], Awaitable[Parts]]) -> Parts:
        """The parts of a page, made anew if they are older than `FRESH_S`."""
        if len(self._locks) > PAGES_KEPT:
            self._locks.clear()
            self._parts.clear()
        async with self._locks.setdefault(key, asyncio.Lock()):
            made_s, parts = self._parts.get(key, (0.0, {}))
            if time.monotonic() - made_s < FRESH_S:
                return parts
            async with asyncio.timeout(DEADLINE_S):
                parts = await make()
            self._parts[key] = (time.monotonic(), parts)
            return parts

    def open(self) -> None:
        """Counts a stream; `Overloaded` when there are too many."""
        if self.streams >= STREAMS_MAX:
            raise Overloaded("Too many consoles are open: close one, or reload later.")
        self.streams += 1


async def stream(
    pages: LivePages, read: Callable[[], Awaitable[Parts]], every_s: float
) -> AsyncIterator[bytes]:
    """Events `part` with the id and the HTML of each part that has changed, and a comment otherwise."""
    shown: Parts = {}
    until_s = time.monotonic() + LASTS_S
    try:
        yield b"retry: 2000\n\n"
        while time.monotonic() < until_s:
            parts = await read()
            changed = [(name, html) for name, html in parts.items() if shown.get(name) != html]
            for name, html in changed:
                yield b"event: part\ndata: " + orjson.dumps({"id": name, "html": html}) + b"\n\n"
            if not changed:
                yield b": still here\n\n"
            shown = parts
            await asyncio.sleep(every_s)
    finally:
        pages.streams -= 1

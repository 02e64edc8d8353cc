"""Parts of an open page that are sent again, over one stream of server-sent events for each tab.

One task waits for what pages show to change: a write to the state (which webhooks wait for too), settled
requests in the usage database, a worker's report of its connections. Tabs that show one page share what is
read for it, so ten consoles ask as often as one, and nobody asks while nothing changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import orjson
from starlette.requests import Request

from fairlead.errors import Overloaded
from fairlead.store.arrivals import Arrivals
from fairlead.store.services import Services, services_of

STREAMS_MAX: Final = 64
# Afterwards the browser comes back, so that the relay asks again who it is.
LASTS_S: Final = 60.0
# Changes that come faster are shown together. Each of them is a read for the page and a chunk for every tab.
SPACING_S: Final = 2.0
# Figures of the last minute move with the clock, too.
BEAT_S: Final = 15.0
PAGES_KEPT: Final = 64
DEADLINE_S: Final = 20.0
# Every tab has a packer, on the event loop.
_LEVEL: Final = 1

Parts = dict[str, str]
Events = dict[str, bytes]


@dataclass(slots=True)
class LivePages:
    """Events of open pages, by address and rights. `version` counts the changes that were seen."""

    streams: int = 0
    version: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _is_open: asyncio.Event = field(default_factory=asyncio.Event)
    _events: dict[tuple[str, ...], tuple[int, Events]] = field(default_factory=dict)
    _locks: dict[tuple[str, ...], asyncio.Lock] = field(default_factory=dict)

    async def events(self, key: tuple[str, ...], make: Callable[[], Awaitable[Parts]]) -> Events:
        """An event for each part of a page, made again if something has changed since.

        All tabs are sent the same bytes: a part is read, drawn and serialised once.
        """
        if len(self._locks) > PAGES_KEPT:
            self._locks.clear()
            self._events.clear()
        async with self._locks.setdefault(key, asyncio.Lock()):
            # Nothing is known of a time without viewers.
            made_at, events = self._events.get(key, (-1, {}))
            if made_at == self.version:
                return events
            version = self.version
            async with asyncio.timeout(DEADLINE_S):
                parts = await make()
            events = {name: _event(name, html) for name, html in parts.items()}
            # Failed reads are repeated, even if nothing changes.
            if events:
                self._events[key] = (version, events)
            return events

    def open(self) -> None:
        """Counts a stream; `Overloaded` when there are too many."""
        if self.streams >= STREAMS_MAX:
            raise Overloaded("Too many consoles are open: close one, or reload later.")
        self.streams += 1
        if not self._is_open.is_set():
            self.announce()
            self._is_open.set()

    def close(self) -> None:
        """Counts a stream that ended."""
        self.streams -= 1
        if not self.streams:
            self._is_open.clear()

    def announce(self) -> None:
        """Wakes every stream: what it shows may have changed."""
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def change(self, since: int, within_s: float) -> int:
        """The version, once it is another than `since`, or after so many seconds."""
        changed = self._changed
        if self.version == since:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await changed.wait()
        return self.version

    async def follow(self, services: Services) -> None:
        """Announces changes for as long as somebody looks; runs until it is cancelled."""
        arrivals = services.singleton(Arrivals, Arrivals)
        stored, arrived = services.state.watch(), arrivals.watch()
        try:
            while True:
                await self._is_open.wait()
                stored.clear()
                arrived.clear()
                self.announce()
                await asyncio.sleep(SPACING_S)
                await _first(stored.wait(), arrived.wait(), services.connections_changed(BEAT_S))
        finally:
            services.state.unwatch(stored)
            arrivals.unwatch(arrived)


async def _first(*waits: Awaitable[object]) -> None:
    """Waits until one of them is done, and ends the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def open_consoles(request: Request) -> int:
    """Streams of open pages, which are requests in flight themselves."""
    return services_of(request).singleton(LivePages, LivePages).streams


def _event(name: str, html: str) -> bytes:
    """An event `part` with the id and the HTML of a part."""
    return b"event: part\ndata: " + orjson.dumps({"id": name, "html": html}) + b"\n\n"


async def compressed(chunks: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    """The chunks as one gzip stream; each can be read as soon as it arrives. Parts that come again repeat most of
    their text.
    """
    packer = zlib.compressobj(_LEVEL, wbits=zlib.MAX_WBITS | 16)
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            yield packer.compress(chunk) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


async def stream(pages: LivePages, read: Callable[[], Awaitable[Events]]) -> AsyncGenerator[bytes]:
    """The events of all parts that have changed, as one chunk; a comment where nothing has for a while."""
    shown: Events = {}
    until_s = time.monotonic() + LASTS_S
    try:
        yield b"retry: 2000\n\n"
        while (left_s := until_s - time.monotonic()) > 0:
            version = pages.version
            events = await read()
            changed = [event for name, event in events.items() if shown.get(name) != event]
            yield b"".join(changed) or b": still here\n\n"
            shown = {**shown, **events}
            await pages.change(version, min(left_s, BEAT_S))
    finally:
        pages.close()

"""Calls of a store of contents, with a deadline for the wait and a maximum of calls at once.

A folder on another machine may not answer at all, and a thread that reads there cannot be interrupted. Its call
keeps its place until it ends, so a store that hangs takes a few threads and no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fairlead.errors import StorageUnavailable

T = TypeVar("T")


class BoundedCalls:
    """Runs calls. `StorageUnavailable` where one has no answer in time, or fails in the operating system."""

    def __init__(self, limit: int, within_s: float) -> None:
        self._limit = asyncio.Semaphore(limit)
        self._within_s = within_s

    async def run(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The call's result."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._within_s
        try:
            async with asyncio.timeout_at(until_s):
                await self._limit.acquire()
        except TimeoutError:
            raise _unavailable("does not answer") from None
        running = asyncio.ensure_future(call())
        running.add_done_callback(self._end)
        try:
            done, _ = await asyncio.wait({running}, timeout=max(0.0, until_s - loop.time()))
        except asyncio.CancelledError:
            running.cancel()
            raise
        if not done:
            raise _unavailable("does not answer")
        try:
            return running.result()
        except OSError as error:
            raise _unavailable(f"fails ({error.strerror})") from None

    def _end(self, call: asyncio.Future[Any]) -> None:
        self._limit.release()
        if not call.cancelled():
            # The waiting caller may have left: then nobody reads the result.
            call.exception()


def _unavailable(fault: str) -> StorageUnavailable:
    return StorageUnavailable(f"The store of files {fault}.", retry_after_s=5)

"""Requests in flight, and the timeouts of their callers.

A sweep every quarter second replaces a task or timer per request: it starts to watch for a disconnect where a
response takes long, and ends requests that their caller stalls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from fairlead._core import MIN_BODY_BYTES_PER_S, SEND_PATIENCE_S, Exchange

Message: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

SWEEP_S = 0.25
# How much of a body that nobody reads is passed over, and how long it may take, before the connection is ended instead.
_SKIPPED_BYTES = 64 * 1024
_SKIPPED_WITHIN_S = 0.5
_BODY_HEADERS = frozenset({b"content-length", b"transfer-encoding"})


class ClientGone(Exception):
    """The caller disconnected."""


def has_body(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether a request's headers announce a body. HTTP/2 may have one without saying so, and loses nothing by it."""
    return any(name in _BODY_HEADERS and value != b"0" for name, value in headers)


class InFlightRequest:
    """A request in flight."""

    __slots__ = (
        "exchange",
        "fed_bytes",
        "is_feeding",
        "is_late",
        "reading_since_s",
        "receive",
        "sending_since_s",
        "started_s",
        "task",
        "waited_s",
        "waiter",
        "watcher",
    )

    def __init__(self, exchange: Exchange, receive: Receive, now_s: float) -> None:
        self.exchange = exchange
        self.receive = receive
        self.started_s = now_s
        self.task = asyncio.current_task()
        # Since when the caller's next chunk, or its reading of ours, is awaited; None: neither.
        self.reading_since_s: float | None = None
        self.sending_since_s: float | None = None
        self.fed_bytes = 0
        # The body is incomplete: received messages belong to the task that feeds it.
        self.is_feeding = False
        # Seconds of the upload in which the engine's buffer was full.
        self.waited_s = 0.0
        # The body came too slowly, and the error is being sent.
        self.is_late = False
        # The future of the request's current wait for the engine.
        self.waiter: asyncio.Future[None] | None = None
        self.watcher: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Resumes the request: the engine has news for it."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def end(self) -> None:
        """Ends the request from outside; its task unwinds."""
        if self.task is not None:
            self.task.cancel()

    async def skip_body(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Passes over a body that nobody reads. `False`: it is not all gone, so nothing can follow on the connection.

        A server that notices an unread body itself may do so after the head of the answer has gone, which then
        promises a connection that it ends.
        """
        announced = dict(headers)
        length = announced.get(b"content-length")
        if b"expect" in announced or (length is not None and not _is_skipped(length)):
            return False
        left = _SKIPPED_BYTES
        self.is_feeding = True
        try:
            async with asyncio.timeout(_SKIPPED_WITHIN_S):
                while left >= 0:
                    message = await self.receive()
                    if message["type"] != "http.request":
                        return False
                    if not message.get("more_body", False):
                        return True
                    left -= len(message.get("body", b""))
        except TimeoutError:
            pass
        finally:
            self.is_feeding = False
        return False

    def check_timeouts(self, now_s: float, body_idle_s: float) -> None:
        """Applies the timeouts to the request; called by the sweep."""
        if self.reading_since_s is not None:
            slowest_s = body_idle_s + self.fed_bytes / MIN_BODY_BYTES_PER_S
            is_silent = now_s - self.reading_since_s > body_idle_s
            taken_s = now_s - self.started_s - self.waited_s
            if not self.is_late and (is_silent or taken_s > slowest_s):
                self.is_late = True
                self.end()
        elif self.is_feeding:
            # The engine's own deadlines cover the recipient of the body.
            pass
        elif self.sending_since_s is not None:
            if now_s - self.sending_since_s > SEND_PATIENCE_S:
                self.end()
        elif self.watcher is None and now_s - self.started_s > SWEEP_S:
            self.watcher = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_exception(ClientGone())
        self.exchange.cancel()


def _is_skipped(length: bytes) -> bool:
    return length.isdigit() and int(length) <= _SKIPPED_BYTES

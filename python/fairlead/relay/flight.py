"""Requests under way, and the patience that the relay has with their callers.

A sweep every quarter second does what would otherwise cost a task or a timer per request: it starts
watching for the caller's departure where an answer takes long, and ends what a caller holds up.
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


class ClientGone(Exception):
    """The caller left; there is nobody to answer."""


class Flight:
    """One request under way."""

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
        # Since when the caller's next piece is waited for, or its taking of ours; None: neither.
        self.reading_since_s: float | None = None
        self.sending_since_s: float | None = None
        self.fed_bytes = 0
        # Its body is not whole yet: what is received belongs to whoever feeds it.
        self.is_feeding = False
        # How long of that the engine had no room for more.
        self.waited_s = 0.0
        # Its body came too slowly, and it is being told so.
        self.is_late = False
        # What the request waits for from the engine.
        self.waiter: asyncio.Future[None] | None = None
        self.watcher: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """The engine has something."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def end(self) -> None:
        """Ends the request from outside; it unwinds by itself."""
        if self.task is not None:
            self.task.cancel()

    def judge(self, now_s: float, body_idle_s: float) -> None:
        """Looks at one request, as the sweep does."""
        if self.reading_since_s is not None:
            slowest_s = body_idle_s + self.fed_bytes / MIN_BODY_BYTES_PER_S
            is_silent = now_s - self.reading_since_s > body_idle_s
            taken_s = now_s - self.started_s - self.waited_s
            if not self.is_late and (is_silent or taken_s > slowest_s):
                self.is_late = True
                self.end()
        elif self.is_feeding:
            # The engine's own deadlines hold for whoever takes what is fed.
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

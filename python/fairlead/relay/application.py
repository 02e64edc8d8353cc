"""ASGI in, engine out.

A request takes this way: ``admit`` the head (no await), feed the body as it is received, wait until the engine has an
answer, send it. One future per wait; the engine rings one descriptor for any number of them.

A sweep every quarter second does what would otherwise cost a task or a timer per request: it starts watching for the
client's departure where an answer takes long, and ends bodies that come too slowly.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from fairlead._core import Engine, Exchange

Message: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

SWEEP_S = 0.25
# A body may be silent for its idle time; over its whole length it must also come at this rate.
MIN_BODY_BYTES_PER_S = 1024


class ClientGone(Exception):
    """The caller left; there is nobody to answer."""


class Flight:
    """A request under way."""

    __slots__ = ("exchange", "fed_bytes", "heard_s", "reader", "receive", "started_s", "watcher")

    def __init__(self, exchange: Exchange, receive: Receive, now_s: float) -> None:
        self.exchange = exchange
        self.receive = receive
        self.started_s = self.heard_s = now_s
        self.fed_bytes = 0
        self.reader: asyncio.Task[Any] | None = None
        self.watcher: asyncio.Task[None] | None = None


class Relay:
    """The application: one per worker process, started by its lifespan, so after any fork."""

    def __init__(self, config: bytes) -> None:
        self._config = config
        self._flights: dict[int, Flight] = {}
        self._waiters: dict[int, asyncio.Future[None]] = {}
        self._is_draining = False

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            exchange = self._engine.admit(scope)
            flight = Flight(exchange, receive, self._loop.time())
            self._flights[exchange.id] = flight
            try:
                if exchange.wants_body:
                    await self._feed(flight)
                await self._answer(exchange, scope["method"] == "HEAD", send)
            except ClientGone:
                exchange.cancel()
            except BaseException:
                exchange.cancel()
                raise
            finally:
                del self._flights[exchange.id]
                if flight.watcher is not None:
                    flight.watcher.cancel()
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:  # No route upgrades.
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _feed(self, flight: Flight) -> None:
        flight.reader = asyncio.current_task()
        try:
            while True:
                message = await flight.receive()
                if message["type"] != "http.request":
                    raise ClientGone
                piece = message.get("body", b"")
                flight.heard_s = self._loop.time()
                flight.fed_bytes += len(piece)
                if not flight.exchange.feed(piece, message.get("more_body", False)):
                    return
        except asyncio.CancelledError:
            if flight.reader is not None:
                raise
            flight.exchange.time_out()
        finally:
            flight.reader = None

    async def _answer(self, exchange: Exchange, is_head: bool, send: Send) -> None:
        while (head := exchange.head()) is None:
            await self._wait(exchange.id)
        await send({"type": "http.response.start", "status": head[0], "headers": head[1]})
        more = True
        while more:
            while (taken := exchange.take()) is None:
                await self._wait(exchange.id)
            body, more = taken
            await send(
                {"type": "http.response.body", "body": b"" if is_head else body, "more_body": more}
            )

    async def _wait(self, identity: int) -> None:
        future = self._waiters[identity] = self._loop.create_future()
        try:
            await future
        finally:
            self._waiters.pop(identity, None)

    def _on_ready(self) -> None:
        for identity in self._engine.ready():
            waiter = self._waiters.get(identity)
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    async def _watch(self, flight: Flight) -> None:
        while (await flight.receive())["type"] != "http.disconnect":
            pass
        waiter = self._waiters.get(flight.exchange.id)
        if waiter is not None and not waiter.done():
            waiter.set_exception(ClientGone())
        flight.exchange.cancel()

    def _sweep(self) -> None:
        self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)
        now_s = self._loop.time()
        body_idle_s = self._engine.body_idle_ms() / 1000
        for flight in self._flights.values():
            age_s = now_s - flight.started_s
            if flight.reader is not None:
                slowest_s = body_idle_s + flight.fed_bytes / MIN_BODY_BYTES_PER_S
                if now_s - flight.heard_s > body_idle_s or age_s > slowest_s:
                    reader, flight.reader = flight.reader, None
                    reader.cancel()
            elif flight.watcher is None and age_s > SWEEP_S:
                flight.watcher = self._loop.create_task(self._watch(flight))
        if self._is_draining and not self._flights:
            # granian's own handler for this signal ends the worker.
            signal.raise_signal(signal.SIGINT)

    def _drain(self) -> None:
        self._is_draining = True
        self._engine.begin_drain()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._loop = asyncio.get_running_loop()
        try:
            self._engine = Engine(self._config)
        except (OSError, ValueError) as error:
            # Said in ASGI's way: an exception would be taken for an application without a lifespan.
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        self._loop.add_reader(self._engine.ready_descriptor(), self._on_ready)
        self._loop.add_signal_handler(signal.SIGTERM, self._drain)
        self._sweep()
        gc.freeze()  # What lives until the end need not be looked at by every collection.
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._sweeper.cancel()
        self._loop.remove_reader(self._engine.ready_descriptor())
        self._engine.stop()
        await send({"type": "lifespan.shutdown.complete"})


def create() -> Relay:
    """The application of this process, configured by ``FAIRLEAD_RELAY_CONFIG``."""
    return Relay(os.environ["FAIRLEAD_RELAY_CONFIG"].encode())

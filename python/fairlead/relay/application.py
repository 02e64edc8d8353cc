"""The ASGI adapter of the engine.

A request is processed in four steps: ``admit`` the head (no await), feed the body as it is received, wait until
the engine has a response, send it. There is one future per wait; the engine signals one descriptor for all of
them.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal

from fairlead._core import Engine, Socket
from fairlead.relay.in_flight import (
    SWEEP_S,
    ClientGone,
    InFlightRequest,
    Message,
    Receive,
    Send,
    has_body,
)
from fairlead.relay.socket import InFlightSocket, refuse

# How long after the drain's deadline requests may be held open by slow callers.
DRAIN_GRACE_S = 0.5
_CLOSE = (b"connection", b"close")
# In HTTP/2 there is no such header.
_CLOSED_BY_HEADER = frozenset({"1", "1.0", "1.1"})


class Relay:
    """The application, one per worker process; the lifespan starts it, after any fork."""

    def __init__(self, config: bytes) -> None:
        self._config = config
        self._flights: dict[int, InFlightRequest | InFlightSocket] = {}
        # A stop was announced: callers are asked to reconnect over another connection.
        self._is_leaving = False
        self._drained_at_s: float | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            exchange = self._engine.admit(scope)
            flight = InFlightRequest(exchange, receive, self._loop.time())
            self._flights[exchange.id] = flight
            try:
                ends_connection = False
                if exchange.wants_body:
                    await self._feed(flight)
                elif has_body(scope["headers"]) and not await flight.skip_body(scope["headers"]):
                    ends_connection = True
                await self._answer(flight, scope, send, ends_connection)
            except ClientGone:
                exchange.cancel()
            except BaseException:
                exchange.cancel()
                raise
            finally:
                del self._flights[exchange.id]
                if flight.watcher is not None:
                    flight.watcher.cancel()
        elif scope["type"] == "websocket":
            await self._serve_socket(scope, receive, send)
        else:
            await self._live(receive, send)

    async def _serve_socket(self, scope: Message, receive: Receive, send: Send) -> None:
        admitted = self._engine.admit_socket(scope)
        if not isinstance(admitted, Socket):
            await receive()
            await refuse(admitted, scope, send)
            return
        flight = InFlightSocket(admitted, scope, receive, send, self._loop.time())
        self._flights[admitted.id] = flight
        try:
            await flight.run()
        finally:
            del self._flights[admitted.id]
            admitted.close()

    async def _feed(self, flight: InFlightRequest) -> None:
        more = True
        flight.is_feeding = True
        try:
            while more:
                flight.reading_since_s = self._loop.time()
                message = await flight.receive()
                if message["type"] != "http.request":
                    # The caller left, or its chunks are malformed; granian reports both alike. An error is sent
                    # in case the caller is still there.
                    flight.exchange.end_early()
                    break
                flight.reading_since_s = None
                piece = message.get("body", b"")
                flight.fed_bytes += len(piece)
                more = flight.exchange.feed(piece, message.get("more_body", False))
                if more and flight.exchange.is_upload:
                    since_s = self._loop.time()
                    while not flight.exchange.has_capacity():
                        await self._wait(flight)
                    # A slow recipient of the upload is not counted against the caller.
                    flight.waited_s += self._loop.time() - since_s
        except asyncio.CancelledError:
            if not flight.is_late:
                raise
            flight.exchange.time_out()
        flight.is_feeding = False
        flight.reading_since_s = None

    async def _answer(
        self, flight: InFlightRequest, scope: Message, send: Send, ends_connection: bool
    ) -> None:
        exchange, is_head = flight.exchange, scope["method"] == "HEAD"
        while (head := exchange.head()) is None:
            await self._wait(flight)
        status, headers = head
        ends_connection = ends_connection or self._is_leaving
        if ends_connection and scope["http_version"] in _CLOSED_BY_HEADER and _CLOSE not in headers:
            headers.append(_CLOSE)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        more = True
        while more:
            while (taken := exchange.take()) is None:
                await self._wait(flight)
            body, more = taken
            flight.sending_since_s = self._loop.time()
            body = b"" if is_head else body
            await send({"type": "http.response.body", "body": body, "more_body": more})
            flight.sending_since_s = None

    async def _wait(self, flight: InFlightRequest) -> None:
        flight.waiter = self._loop.create_future()
        await flight.waiter

    def _on_ready(self) -> None:
        for identity in self._engine.ready():
            flight = self._flights.get(identity)
            if flight is not None:
                flight.wake()

    def _sweep(self) -> None:
        self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)
        now_s = self._loop.time()
        for flight in self._flights.values():
            flight.check_timeouts(now_s, self._body_idle_s)
        if self._drained_at_s is not None:
            if not self._flights:
                # granian's own handler for this signal ends the worker.
                signal.raise_signal(signal.SIGINT)
            elif now_s > self._drained_at_s + DRAIN_GRACE_S:
                for flight in self._flights.values():
                    flight.end()
            if now_s > self._drained_at_s + 2 * DRAIN_GRACE_S:
                # granian would wait for as long as a stalled caller keeps its connection.
                self._engine.stop()
                os._exit(0)

    def _announce_drain(self) -> None:
        if not self._is_leaving:
            self._is_leaving = True
            self._loop.call_later(self._engine.announce_drain() / 1000, self._drain)

    def _drain(self) -> None:
        if self._drained_at_s is None:
            self._drained_at_s = self._loop.time() + self._engine.drain_ms() / 1000
            self._engine.begin_drain()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._loop = asyncio.get_running_loop()
        try:
            self._engine = Engine(self._config)
        except (OSError, ValueError) as error:
            # Reported by an ASGI message, since an exception would mean an application without a lifespan.
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        self._body_idle_s = self._engine.body_idle_ms() / 1000
        self._loop.add_reader(self._engine.ready_descriptor(), self._on_ready)
        self._loop.add_signal_handler(signal.SIGTERM, self._announce_drain)
        self._sweep()
        # Objects that live until the end need no garbage collection, and requests leave no cycles.
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._sweeper.cancel()
        self._loop.remove_reader(self._engine.ready_descriptor())
        self._engine.stop()
        await send({"type": "lifespan.shutdown.complete"})


def create() -> Relay:
    """The application of this process, configured by ``FAIRLEAD_RELAY_CONFIG``."""
    return Relay(os.environ["FAIRLEAD_RELAY_CONFIG"].encode())

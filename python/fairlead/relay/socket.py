"""The ASGI adapter of WebSockets: passes texts to the engine as they arrive and sends the engine's messages."""

from __future__ import annotations

import asyncio
import contextlib

from fairlead._core import SEND_PATIENCE_S, Exchange, Socket
from fairlead.relay.in_flight import Message, Receive, Send

# Seconds of silence, with no call in progress, after which a caller counts as gone.
IDLE_S = 600.0
GOING_AWAY = 1001
PROTOCOL_ERROR = 1002


class InFlightSocket:
    """A WebSocket in flight, as the sweep and the engine's signal see it."""

    def __init__(
        self, socket: Socket, scope: Message, receive: Receive, send: Send, now_s: float
    ) -> None:
        self._socket = socket
        self._scope = scope
        self._receive = receive
        self._send = send
        self._heard_s = now_s
        self._sending_since_s: float | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._task = asyncio.current_task()
        self.watcher: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Resumes the connection: the engine has news for it."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def end(self) -> None:
        """Ends the connection from outside; its task unwinds."""
        if self._task is not None:
            self._task.cancel()

    def check_timeouts(self, now_s: float, _: float) -> None:
        """Applies the timeouts to the connection; called by the sweep."""
        is_stuck = (
            self._sending_since_s is not None and now_s - self._sending_since_s > SEND_PATIENCE_S
        )
        if is_stuck or (now_s - self._heard_s > IDLE_S and self._socket.is_idle()):
            self.end()

    async def run(self) -> None:
        """Relays messages until either side closes."""
        loop = asyncio.get_running_loop()
        if (await self._receive())["type"] != "websocket.connect":
            return
        while (is_accepted := self._socket.is_accepted()) is None:
            self._waiter = loop.create_future()
            await self._waiter
        if not is_accepted:
            await refuse(self._socket.refusal(), self._scope, self._send)
            return
        await self._send({"type": "websocket.accept"})
        hearing = loop.create_task(self._receive_messages())
        hearing.add_done_callback(lambda _: self.wake())
        try:
            while not hearing.done():
                taken = self._socket.take()
                if taken is None:
                    self._waiter = loop.create_future()
                    await self._waiter
                    continue
                texts, close = taken
                for text in texts:
                    self._sending_since_s = loop.time()
                    await self._send({"type": "websocket.send", "text": text})
                self._sending_since_s = None
                if close is not None:
                    await self._close(hearing, *close)
                    return
            # granian reports a caller that violates the protocol like one that closed or left. Nothing else is sent to
            # either.
            with contextlib.suppress(OSError, RuntimeError):
                await self._close(hearing, PROTOCOL_ERROR, "")
        except asyncio.CancelledError:
            with contextlib.suppress(OSError, RuntimeError):
                await self._close(hearing, GOING_AWAY, "")
            raise
        finally:
            hearing.cancel()

    async def _close(self, hearing: asyncio.Task[None], code: int, reason: str) -> None:
        # granian reports a close only while `receive` is awaited.
        hearing.cancel()
        await asyncio.wait([hearing])
        await self._send({"type": "websocket.close", "code": code, "reason": reason})

    async def _receive_messages(self) -> None:
        loop = asyncio.get_running_loop()
        while (message := await self._receive())["type"] == "websocket.receive":
            self._heard_s = loop.time()
            self._socket.receive(message.get("text"))


async def refuse(exchange: Exchange | None, scope: Message, send: Send) -> None:
    """Refuses the connection, with an HTTP error response where the server supports one."""
    head = exchange.head() if exchange else None
    taken = exchange.take() if exchange else None
    if "websocket.http.response" not in scope.get("extensions", {}) or head is None:
        await send({"type": "websocket.close", "code": 1008})
        return
    status, headers = head
    # granian raises for a caller that left meanwhile.
    with contextlib.suppress(RuntimeError):
        await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": taken[0] if taken else b""})

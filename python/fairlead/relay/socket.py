"""WebSockets in, engine out: texts are handed over as they come, and what the engine has is sent."""

from __future__ import annotations

import asyncio
import contextlib

from fairlead._core import SEND_PATIENCE_S, Exchange, Socket
from fairlead.relay.flight import Message, Receive, Send

# A caller that says nothing for this long, with nothing under way, has left.
IDLE_S = 600.0
GOING_AWAY = 1001


class SocketFlight:
    """One connection under way; what the sweep and the engine's bell see of it."""

    def __init__(self, socket: Socket, receive: Receive, send: Send, now_s: float) -> None:
        self._socket = socket
        self._receive = receive
        self._send = send
        self._heard_s = now_s
        self._sending_since_s: float | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._task = asyncio.current_task()
        self.watcher: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """The engine has something."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def end(self) -> None:
        """Ends the connection from outside; it unwinds by itself."""
        if self._task is not None:
            self._task.cancel()

    def judge(self, now_s: float, _: float) -> None:
        """Looks at it, as the sweep does."""
        is_stuck = (
            self._sending_since_s is not None and now_s - self._sending_since_s > SEND_PATIENCE_S
        )
        if is_stuck or (now_s - self._heard_s > IDLE_S and self._socket.is_idle()):
            self.end()

    async def run(self) -> None:
        """Until either side closes."""
        loop = asyncio.get_running_loop()
        if (await self._receive())["type"] != "websocket.connect":
            return
        await self._send({"type": "websocket.accept"})
        hearing = loop.create_task(self._hear())
        hearing.add_done_callback(lambda _: self.wake())
        try:
            while not hearing.done():
                taken = self._socket.take()
                if taken is None:
                    self._waiter = loop.create_future()
                    await self._waiter
                    continue
                texts, code = taken
                for text in texts:
                    self._sending_since_s = loop.time()
                    await self._send({"type": "websocket.send", "text": text})
                self._sending_since_s = None
                if code is not None:
                    await self._close(hearing, code)
                    return
        except asyncio.CancelledError:
            with contextlib.suppress(OSError, RuntimeError):
                await self._close(hearing, GOING_AWAY)
            raise
        finally:
            hearing.cancel()

    async def _close(self, hearing: asyncio.Task[None], code: int) -> None:
        # While a message is waited for, granian sends no close.
        hearing.cancel()
        await asyncio.wait([hearing])
        await self._send({"type": "websocket.close", "code": code})

    async def _hear(self) -> None:
        loop = asyncio.get_running_loop()
        while (message := await self._receive())["type"] == "websocket.receive":
            self._heard_s = loop.time()
            self._socket.receive(message.get("text"))


async def refuse(exchange: Exchange, scope: Message, receive: Receive, send: Send) -> None:
    """Says why there is no connection, in HTTP where the server can."""
    await receive()
    head, taken = exchange.head(), exchange.take()
    if "websocket.http.response" not in scope.get("extensions", {}) or head is None:
        await send({"type": "websocket.close", "code": 1008})
        return
    status, headers = head
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": taken[0] if taken else b""})

"""A connection to a listener, for one request after another.

Its address was checked when it was dialled, and it leads nowhere else. It stays open for its receiver for a few
seconds after the last answer; a receiver that closes it meanwhile costs a new connection, not a failure.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import dataclass, field
from typing import Final

import h11

from fairlead.net.egress import Egress

# Bytes of an answer's body that are read and thrown away, so that the listener can finish sending.
ANSWER_MAX_BYTES: Final = 16 * 1024
ANSWER_DEADLINE_S: Final = 1.0
ANSWER_HEAD_MAX_BYTES: Final = 64 * 1024
READ_BYTES: Final = 16 * 1024
IDLE_S: Final = 10.0


class ConnectionLost(Exception):
    """The connection ended before there was an answer. `is_stale`: it was a kept connection and
    nothing of an answer came, as when the listener had closed it.
    """

    def __init__(self, *, is_stale: bool = False) -> None:
        super().__init__("the connection ended before there was an answer")
        self.is_stale = is_stale


@dataclass(slots=True)
class Connection:
    """One stream to the listener of a URL."""

    origin: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    http: h11.Connection
    is_kept: bool = False
    idle_since_s: float = 0.0

    async def exchange(self, request: h11.Request, body: bytes) -> tuple[int, str | None]:
        """Sends a request; returns status and `Retry-After` of the answer. `ConnectionLost`, or an
        error of TLS.
        """
        try:
            return await self._exchange(request, body)
        except ssl.SSLError:
            # The handshake had succeeded, so the stream was cut.
            raise ConnectionLost(is_stale=self.is_kept) from None
        except h11.RemoteProtocolError:
            # A stale connection ends where an answer should begin.
            raise ConnectionLost(is_stale=self.is_kept and self.reader.at_eof()) from None
        except OSError as error:
            # `TimeoutError` is an `OSError`, but belongs to the deadline.
            if isinstance(error, TimeoutError):
                raise
            raise ConnectionLost(is_stale=self.is_kept) from None

    async def _exchange(self, request: h11.Request, body: bytes) -> tuple[int, str | None]:
        http = self.http
        head = http.send(request) or b""
        self.writer.write(head + (http.send(h11.Data(data=body)) or b""))
        http.send(h11.EndOfMessage())
        await self.writer.drain()
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Response):
                break
            if not isinstance(event, h11.InformationalResponse):
                raise ConnectionLost(is_stale=self.is_kept)
            # The answer had begun, so the connection was not stale.
            self.is_kept = False
        self.is_kept = False
        retry_after = next((value for name, value in event.headers if name == b"retry-after"), None)
        await self._let_finish()
        return event.status_code, None if retry_after is None else retry_after.decode("latin-1")

    def is_reusable(self) -> bool:
        """Whether the exchange is complete, nothing came behind the answer, and neither side wants to close."""
        if self.http.our_state is not h11.DONE or self.http.their_state is not h11.DONE:
            return False
        if self.http.trailing_data[0]:
            return False
        self.http.start_next_cycle()
        return not self._is_ended()

    async def is_open(self) -> bool:
        """Whether the listener has not closed it, as far as is known, nor sent anything since the last answer.

        Proxies end an idle connection with a 408, which would be taken for the answer to the next request.
        """
        if self._is_ended():
            return False
        try:
            async with asyncio.timeout(0):
                await self.reader.read(1)
        except TimeoutError:
            return True
        except OSError:
            # It was reset, so it is not open.
            return False
        self.close()
        return False

    def _is_ended(self) -> bool:
        return self.reader.at_eof() or self.writer.transport.is_closing()

    def close(self) -> None:
        """Closes at once; no data is outstanding."""
        self.writer.transport.abort()

    async def _next_event(self) -> h11.Event:
        while (event := self.http.next_event()) is h11.NEED_DATA:
            self.http.receive_data(await self.reader.read(READ_BYTES))
        if not isinstance(event, h11.Event):
            raise ConnectionLost(is_stale=self.is_kept)
        return event

    async def _let_finish(self) -> None:
        taken = 0
        try:
            async with asyncio.timeout(ANSWER_DEADLINE_S):
                while isinstance(event := await self._next_event(), h11.Data):
                    taken += len(event.data)
                    if taken > ANSWER_MAX_BYTES:
                        return
        except (ConnectionLost, h11.RemoteProtocolError, OSError):
            # The status is known, which is enough. `TimeoutError` is an `OSError`.
            return


@dataclass(slots=True)
class ConnectionPool:
    """Kept connections to one listener; the one used last is taken first."""

    connections: list[Connection] = field(default_factory=list)

    async def take(self, egress: Egress, url: str, *, fresh: bool = False) -> Connection:
        """A connection for this URL's host; raises as `Egress.connect` does."""
        origin = origin_of(url)
        while self.connections and not fresh:
            connection = self.connections.pop()
            if connection.origin == origin and await connection.is_open():
                connection.is_kept = True
                return connection
            connection.close()
        reader, writer = await egress.connect(url)
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=ANSWER_HEAD_MAX_BYTES)
        return Connection(origin, reader, writer, http)

    def give_back(self, connection: Connection) -> None:
        """Keeps a connection that can be used for another request, and closes any other."""
        if connection.is_reusable():
            connection.idle_since_s = time.monotonic()
            self.connections.append(connection)
        else:
            connection.close()

    def close_idle(self, before_s: float) -> None:
        """Closes connections that were last used before a moment of the monotonic clock."""
        for connection in [c for c in self.connections if c.idle_since_s < before_s]:
            connection.close()
            self.connections.remove(connection)

    def close(self) -> None:
        """Closes all connections."""
        for connection in self.connections:
            connection.close()
        self.connections.clear()


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL in its normal spelling."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"

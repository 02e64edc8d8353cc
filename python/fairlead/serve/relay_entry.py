"""The door of a control for relays of other machines: who may connect, before anything is known of a caller.

A connection waits outside until its first request is there, for `FIRST_REQUEST_S` at most with its TLS
handshake. A waiting connection takes no slot of the relays, and each address has a share. If too many wait, the
oldest is closed, so that a caller that sends at once gets in. A first request with the node token takes a slot
of the relays. Any other is forwarded too, since control answers it 403, but over a small number of separate
slots.
"""

from __future__ import annotations

import asyncio
import hmac
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from fairlead.serve.tunnel import CONNECTIONS_MAX, Tunnel

FIRST_REQUEST_S: Final = 5.0
WAITING_MAX: Final = 1024
WAITING_PER_ADDRESS: Final = 64
STRANGERS_MAX: Final = 64
STRANGERS_PER_ADDRESS: Final = 8
RELAYS_MAX: Final = CONNECTIONS_MAX - STRANGERS_MAX
RELAYS_PER_ADDRESS: Final = 1024
_TOKEN_HEADER: Final = b"x-fairlead-link"

log = structlog.get_logger("fairlead.tunnel")


class ConnectionLimit:
    """Limits concurrent connections, in total and for each address."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._taken: Counter[str] = Counter()

    @contextmanager
    def admit(self, address: str) -> Iterator[bool]:
        """Takes a slot while the block runs; False if none is free."""
        taken = self._taken
        if taken.total() >= self._most or taken[address] >= self._most_per_address:
            yield False
            return
        taken[address] += 1
        try:
            yield True
        finally:
            taken[address] -= 1
            if not taken[address]:
                del taken[address]


class FirstRequestQueue:
    """Connections whose first request has not arrived, oldest first."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._waiting: dict[asyncio.StreamWriter, str] = {}
        self._of_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._waiting)

    @contextmanager
    def wait(self, address: str, writer: asyncio.StreamWriter) -> Iterator[None]:
        """Counts a connection while the block runs. At the limit, the oldest connection is closed."""
        if self._of_address[address] >= self._most_per_address:
            self._end(next(each for each, of in self._waiting.items() if of == address))
        elif len(self._waiting) >= self._most:
            self._end(next(iter(self._waiting)))
        self._waiting[writer] = address
        self._of_address[address] += 1
        try:
            yield
        finally:
            self._forget(writer)

    def _end(self, writer: asyncio.StreamWriter) -> None:
        self._forget(writer)
        writer.transport.abort()

    def _forget(self, writer: asyncio.StreamWriter) -> None:
        address = self._waiting.pop(writer, None)
        if address is None:
            return
        self._of_address[address] -= 1
        if not self._of_address[address]:
            del self._of_address[address]


class RelayEntry:
    """Takes connections of relays and hands them to the tunnel."""

    def __init__(self, tunnel: Tunnel, context: ssl.SSLContext, token: str) -> None:
        self._tunnel = tunnel
        self._context = context
        self._token = token.encode()
        self._waiting = FirstRequestQueue(WAITING_MAX, WAITING_PER_ADDRESS)
        self._relays = ConnectionLimit(RELAYS_MAX, RELAYS_PER_ADDRESS)
        self._strangers = ConnectionLimit(STRANGERS_MAX, STRANGERS_PER_ADDRESS)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one accepted connection, which has not begun its TLS, until either side ends it."""
        peer = writer.get_extra_info("peername")
        address = str(peer[0]) if peer else ""
        with self._waiting.wait(address, writer):
            head = await self._first_head(reader, writer)
        if head is None:
            writer.transport.abort()
            return
        room = self._relays if self._has_token(head) else self._strangers
        with room.admit(address) as has_place:
            if not has_place:
                log.warning("too many connections to control; one was ended", address=address)
                writer.transport.abort()
                return
            await self._tunnel.serve(reader, writer, head)

    async def _first_head(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes | None:
        """The head of the first request, or None for a connection that did not send one in time."""
        try:
            async with asyncio.timeout(FIRST_REQUEST_S):
                await writer.start_tls(self._context, ssl_handshake_timeout=FIRST_REQUEST_S)
                return await reader.readuntil(b"\r\n\r\n")
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # A stranger, or a relay that ended; an `ssl.SSLError` is an `OSError`.
            return None

    def _has_token(self, head: bytes) -> bool:
        lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
        shown = next((value for name, _, value in lines if name.lower() == _TOKEN_HEADER), b"")
        return hmac.compare_digest(shown.strip(), self._token)

"""A forward proxy on loopback that dials through the egress guard: the browser's only way out."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import structlog

from fairlead.net.egress import AddressForbidden, Egress
from fairlead.net.url import split_url
from fairlead.scrape.address import BAD_PORTS

HEAD_MAX_BYTES: Final = 64 * 1024
HEAD_DEADLINE_S: Final = 15.0
DIAL_DEADLINE_S: Final = 10.0
IDLE_S: Final = 60.0
PIECE_BYTES: Final = 64 * 1024
CONNECTIONS_MAX: Final = 256
# The maximum transfer of one connection: it ends an endless stream, and a file that would fill the disk.
CONNECTION_MAX_BYTES: Final = 64 * 1024 * 1024


log = structlog.get_logger("fairlead.scrape")


class GuardedProxy:
    """`CONNECT host:port`, and plain requests with an absolute address, one for each connection."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.address = ""

    async def start(self) -> None:
        """Begins to listen on a free port, at `address`."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=HEAD_MAX_BYTES)
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"

    async def close(self) -> None:
        """Stops listening and closes open connections."""
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._open) >= CONNECTIONS_MAX:
            writer.close()
            return
        self._open.add(task)
        try:
            await self._forward(reader, writer)
        except (
            OSError,
            TimeoutError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            ValueError,
        ) as error:
            # The browser sees a closed connection and reports it to the page.
            log.debug("proxied connection ended", error=type(error).__name__)
        finally:
            self._open.discard(task)
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_DEADLINE_S):
            head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        method, target, _ = line.decode("latin-1").split(" ", 2)
        is_tunnel = method == "CONNECT"
        try:
            parts = split_url(f"//{target}" if is_tunnel else target)
            port = parts.port or 80
        except ValueError:
            await _refuse(writer, 403)
            return
        if not parts.hostname or (not is_tunnel and parts.scheme != "http") or port in BAD_PORTS:
            await _refuse(writer, 403)
            return
        try:
            async with asyncio.timeout(DIAL_DEADLINE_S):
                addresses = await self._egress.resolve(parts.hostname, port)
                far_reader, far_writer = await asyncio.open_connection(addresses[0], port)
        except AddressForbidden:
            await _refuse(writer, 403)
            return
        except (OSError, TimeoutError):
            await _refuse(writer, 502)
            return
        up = asyncio.ensure_future(_nothing())
        try:
            if is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                up = asyncio.create_task(_copy(reader, far_writer))
            else:
                path = parts.path or "/"
                if parts.query:
                    path += f"?{parts.query}"
                # One request for each connection: what follows might name another host.
                headers = [
                    each
                    for each in rest.split(b"\r\n")
                    if each and not each.lower().startswith((b"proxy-", b"connection:"))
                ]
                request = f"{method} {path} HTTP/1.1\r\n".encode("latin-1")
                far_writer.write(
                    request + b"\r\n".join([*headers, b"Connection: close"]) + b"\r\n\r\n"
                )
                # A form's body goes up before the answer comes down.
                up = asyncio.create_task(_copy(reader, far_writer))
                # `Connection: close` also informs the browser that the connection ends here.
                async with asyncio.timeout(IDLE_S):
                    answer = await far_reader.readuntil(b"\r\n\r\n")
                writer.write(answer[:-2] + b"Connection: close\r\n\r\n")
            # The end of the answer ends the connection; a browser would keep its side open.
            await _copy(far_reader, writer)
        finally:
            up.cancel()
            await asyncio.gather(up, return_exceptions=True)
            far_writer.close()


async def _nothing() -> None:
    """An upload that has not begun."""


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    remaining = CONNECTION_MAX_BYTES
    while remaining > 0:
        async with asyncio.timeout(IDLE_S):
            piece = await reader.read(PIECE_BYTES)
        remaining -= len(piece)
        if not piece:
            with contextlib.suppress(OSError):
                if writer.can_write_eof():
                    writer.write_eof()
            return
        writer.write(piece)
        async with asyncio.timeout(IDLE_S):
            await writer.drain()


async def _refuse(writer: asyncio.StreamWriter, status: int) -> None:
    writer.write(
        f"HTTP/1.1 {status} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
    )
    async with asyncio.timeout(5.0):
        await writer.drain()

"""Connections of relays at a control: silent ones and those without the token take no room of theirs."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fairlead.net.node_link import control_context
from fairlead.serve import relay_entry
from fairlead.serve.relay_entry import ConnectionLimit, RelayEntry
from fairlead.serve.tunnel import Tunnel, Upstream
from tests.support.authority import Authority

pytestmark = pytest.mark.anyio

TOKEN = "t" * 40
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


@dataclass
class Site:
    port: int
    context: ssl.SSLContext
    asked: list[bytes]
    writers: list[asyncio.StreamWriter]

    async def dial(self, *, tls: bool = True) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        secured = {"ssl": self.context, "server_hostname": "127.0.0.1"} if tls else {}
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, **secured)  # type: ignore[arg-type]
        self.writers.append(writer)
        return reader, writer

    async def ask(self, token: str) -> bytes:
        """The first line of the answer; empty for a connection that was ended."""
        reader, writer = await self.dial()
        try:
            writer.write(f"GET /a HTTP/1.1\r\nX-Fairlead-Link: {token}\r\n\r\n".encode())
            async with asyncio.timeout(10):
                return await reader.readline()
        except OSError:
            return b""

    async def leave(self) -> None:
        for writer in self.writers:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    """A control that answers every request, behind its entry."""
    authority = Authority(folder / "authority")
    issued = authority.issue("control", "IP:127.0.0.1")
    asked: list[bytes] = []
    tasks: set[asyncio.Task[None]] = set()

    async def control(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(ANSWER)
            await writer.drain()
            await reader.read()
        writer.close()
        await writer.wait_closed()

    path = folder / "control.sock"

    async def dial() -> Upstream:
        return Upstream(*await asyncio.open_unix_connection(path))

    entry = RelayEntry(Tunnel(dial), control_context(issued.certificate, issued.key, None), TOKEN)

    def accept(
        serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]],
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        """Serves in a task that the test can wait for."""
        return lambda reader, writer: tasks.add(asyncio.ensure_future(serve(reader, writer)))

    async with (
        await asyncio.start_unix_server(accept(control), path),
        await asyncio.start_server(accept(entry.serve), "127.0.0.1", 0) as server,
    ):
        trusting = ssl.create_default_context(cafile=authority.certificate)
        at = Site(server.sockets[0].getsockname()[1], trusting, asked, [])
        try:
            yield at
        finally:
            await at.leave()
            async with asyncio.timeout(10):
                await asyncio.gather(*tasks)


async def test_a_request_passes_whole(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        assert await at.ask(TOKEN) == b"HTTP/1.1 200 OK\r\n"
        assert at.asked == [f"GET /a HTTP/1.1\r\nX-Fairlead-Link: {TOKEN}\r\n\r\n".encode()]


async def test_silent_connections_are_ended_and_take_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_entry, "FIRST_REQUEST_S", 1.0)
    async with site(tmp_path) as at:
        silent = [await at.dial() for _ in range(80)]
        plain = await at.dial(tls=False)
        assert await at.ask(TOKEN) == b"HTTP/1.1 200 OK\r\n"
        async with asyncio.timeout(15):
            for reader, _ in (*silent, plain):
                with contextlib.suppress(OSError):
                    assert await reader.read() == b""
        assert len(at.asked) == 1


async def test_the_oldest_that_waits_gives_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the patience as it is, a flood of silence from one address ends its own oldest."""
    monkeypatch.setattr(relay_entry, "WAITING_PER_ADDRESS", 8)
    async with site(tmp_path) as at:
        silent = [await at.dial() for _ in range(12)]
        async with asyncio.timeout(4):
            for reader, _ in silent[:4]:
                with contextlib.suppress(OSError):
                    assert await reader.read() == b""
        assert not silent[-1][0].at_eof()
        assert await at.ask(TOKEN) == b"HTTP/1.1 200 OK\r\n"


async def test_strangers_have_a_small_room_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_entry, "STRANGERS_PER_ADDRESS", 2)
    async with site(tmp_path) as at:
        for _ in range(2):
            reader, writer = await at.dial()
            writer.write(b"GET /b HTTP/1.1\r\nx-fairlead-link: wrong\r\n\r\n")
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        assert await at.ask("wrong") == b""
        assert await at.ask(TOKEN) == b"HTTP/1.1 200 OK\r\n"


def test_places_are_given_back() -> None:
    room = ConnectionLimit(2, 1)
    with room.admit("a") as first, room.admit("a") as second, room.admit("b") as third:
        assert (first, second, third) == (True, False, True)
        with room.admit("c") as fourth:
            assert not fourth
    with room.admit("a") as again:
        assert again

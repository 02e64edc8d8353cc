"""The demo of an instance that does not answer: the start ends with a sentence."""

from __future__ import annotations

import asyncio
import io
import socket
from collections.abc import Iterator

import pytest

from fairlead.serve import demo
from fairlead.serve.demo import Demo
from fairlead.serve.failure import StartFailed
from fairlead.serve.log import LogSink

pytestmark = pytest.mark.anyio

HEALTHY = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of an instance that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


async def set_up(url: str) -> str:
    """Sets up the demo of that instance; the stand-in is healthy."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEALTHY)
        await writer.drain()
        writer.close()

    made = Demo(url, "token", False, LogSink(io.BytesIO()))
    port = int(made._standin.rpartition(":")[2])
    async with await asyncio.start_server(serve, "127.0.0.1", port):
        return await made.set_up()


async def test_a_call_that_takes_too_long_ends_the_start_with_a_sentence(
    silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "CALL_WITHIN_S", 0.2)
    with pytest.raises(StartFailed) as failed:
        await set_up(silent)
    assert "GET /api/provider-nodes was not answered within 0.2 s" in failed.value.sentence


async def test_an_instance_that_is_gone_ends_the_start_with_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with pytest.raises(StartFailed) as failed:
        await set_up(url)
    assert "GET /api/provider-nodes was not answered (ConnectError)" in failed.value.sentence

"""Connections to a listener: kept between requests, and no failure when the listener ends them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from fairlead import _core
from fairlead.moment import now_ms
from fairlead.net.egress import Egress
from fairlead.webhooks.attempt import DEADLINE_S, Answer, OutgoingMessage, attempt
from fairlead.webhooks.connection import ConnectionPool

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass
class Peer:
    """A listener that answers by script: for each request of a connection what it writes, None
    where it ends the connection instead.
    """

    url: str = ""
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)


@asynccontextmanager
async def peer(
    script: Callable[[int, int], bytes | None], *, ends: bool = False
) -> AsyncIterator[Peer]:
    """`script` takes the number of the connection and of the request in it, from 0; with `ends` it
    goes after each answer without a word.
    """
    here = Peer()
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        number, count = here.connections, 0
        here.connections += 1
        here.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                here.requests.append(head + await reader.readexactly(length))
                said = script(number, count)
                count += 1
                if said is None:
                    break
                writer.write(said)
                await writer.drain()
                if ends:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    here.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    try:
        yield here
    finally:
        server.close()
        # Whoever kept a connection has let go of it by now.
        await asyncio.wait_for(asyncio.gather(*serving), 5)


@pytest.fixture
def egress():
    egress = Egress("127.0.0.0/8")
    yield egress
    egress.close()


@asynccontextmanager
async def keeping() -> AsyncIterator[ConnectionPool]:
    kept = ConnectionPool()
    try:
        yield kept
    finally:
        kept.close()
        await asyncio.sleep(0)


SECRET = _core.new_webhook_secret()


async def send(egress: Egress, url: str, kept: ConnectionPool | None) -> Answer:
    outgoing = OutgoingMessage("msg_1", b'{"a":1}', url, (SECRET,))
    return await attempt(outgoing, egress, now_ms(), kept)


async def test_one_connection_serves_many_requests(egress) -> None:
    async with peer(lambda _connection, _request: OK) as here, keeping() as kept:
        for _ in range(5):
            assert (await send(egress, here.url, kept)).status == 204
        assert (here.connections, len(here.requests)) == (1, 5)
        # Without a place to keep it, it is for one request, and says so.
        await send(egress, here.url, None)
        assert here.connections == 2
        assert b"connection: close" in here.requests[-1].lower()


async def test_one_that_the_listener_ended_costs_a_fresh_one_and_no_failure(egress) -> None:
    async with peer(lambda _connection, _request: OK, ends=True) as here, keeping() as kept:
        for _ in range(5):
            assert (await send(egress, here.url, kept)).error is None
        assert (here.connections, len(here.requests)) == (5, 5)


async def test_one_that_is_ended_as_it_is_used_is_tried_once_more(egress) -> None:
    script = [OK, None]
    async with peer(lambda _connection, request: script[request]) as here, keeping() as kept:
        assert (await send(egress, here.url, kept)).error is None
        assert (await send(egress, here.url, kept)).error is None
        assert (here.connections, len(here.requests)) == (2, 3)
        # The same message, byte for byte, under the same id.
        assert here.requests[1].split(b"webhook-id")[1] == here.requests[2].split(b"webhook-id")[1]


async def test_a_fresh_one_that_ends_without_an_answer_is_a_failure(egress) -> None:
    async with peer(lambda _connection, _request: None) as here, keeping() as kept:
        assert (await send(egress, here.url, kept)).error == "connection_broken"
        assert len(here.requests) == 1


async def test_a_kept_one_that_answers_nonsense_is_a_failure(egress) -> None:
    script = [OK, b"SMTP ready\r\n\r\n"]
    async with peer(lambda _connection, request: script[request]) as here, keeping() as kept:
        await send(egress, here.url, kept)
        assert (await send(egress, here.url, kept)).error == "connection_broken"
        assert (here.connections, kept.connections) == (1, [])


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n" + b"x" * 50_000,
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n" + OK,
    ],
)
async def test_one_that_is_not_done_or_wants_an_end_is_not_kept(egress, answer: bytes) -> None:
    async with peer(lambda _connection, _request: answer) as here, keeping() as kept:
        assert (await send(egress, here.url, kept)).status == 200
        assert kept.connections == []


async def test_what_comes_while_it_is_idle_is_no_answer_to_the_next_request(egress) -> None:
    """Proxies end an idle connection with a 408 that nobody asked for."""
    async with peer(lambda _connection, _request: OK) as here, keeping() as kept:
        assert (await send(egress, here.url, kept)).status == 204
        here.writers[0].write(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
        async with asyncio.timeout(5):
            while await kept.connections[0].is_open():
                pass
        assert (await send(egress, here.url, kept)).status == 204
        assert (here.connections, len(here.requests)) == (2, 2)


async def test_a_connection_is_for_the_listener_that_it_was_made_for(egress) -> None:
    async with (
        peer(lambda _connection, _request: OK) as one,
        peer(lambda _connection, _request: OK) as other,
        keeping() as kept,
    ):
        await send(egress, one.url, kept)
        assert (await send(egress, other.url, kept)).status == 204
        assert (one.connections, other.connections) == (1, 1)
        kept.close_idle(0)
        assert len(kept.connections) == 1
        kept.close_idle(float("inf"))
        assert kept.connections == []


async def test_silence_for_fifteen_seconds_is_a_failure(egress, monkeypatch) -> None:
    assert DEADLINE_S == 15
    monkeypatch.setattr("fairlead.webhooks.attempt.DEADLINE_S", 0.2)
    async with peer(lambda _connection, _request: b"") as here, keeping() as kept:
        answer = await send(egress, here.url, kept)
        assert (answer.status, answer.error, kept.connections) == (None, "timeout", [])
        # Not even words that are no answer yet change that.
    async with peer(lambda _connection, _request: b"HTTP/1.1 200 OK\r\n") as here:
        assert (await send(egress, here.url, None)).error == "timeout"

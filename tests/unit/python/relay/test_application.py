"""The adapter between a server and the engine, without a server."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any, cast

from fairlead import _core
from fairlead.relay.application import Relay
from fairlead.relay.in_flight import InFlightRequest

PATIENCE_S = 10


def config(data_dir: Path) -> bytes:
    """A relay that nobody gave a snapshot: it takes requests and answers that it cannot serve them yet."""
    return json.dumps(
        {
            "data_dir": str(data_dir),
            "control_socket": str(data_dir / "control.sock"),
            "link_token": "0" * 64,
            "secret_key": base64.b64encode(bytes(32)).decode(),
            "require_api_key": False,
            "loopback_only": True,
            "version": _core.version(),
        }
    ).encode()


def chat(length: int) -> dict[str, Any]:
    """The head of a chat request whose body has `length` bytes."""
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/chat/completions",
        "raw_path": b"/v1/chat/completions",
        "query_string": b"",
        "client": ("127.0.0.1", 40000),
        "headers": [
            (b"host", b"127.0.0.1:20128"),
            (b"content-type", b"application/json"),
            (b"content-length", str(length).encode()),
        ],
    }


class Server:
    """The server's side of one request: hands over the messages given and keeps those it gets."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.received = 0
        self.sent: list[dict[str, Any]] = []
        self._messages = list(messages)

    async def receive(self) -> dict[str, Any]:
        self.received += 1
        if not self._messages:
            await asyncio.Event().wait()
        return self._messages.pop(0)

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)


async def ask(data_dir: Path, server: Server, length: int) -> None:
    """Starts the relay, asks once, stops it."""
    relay = Relay(config(data_dir))
    stop = asyncio.Event()
    started = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if started.is_set():
            await stop.wait()
        return {"type": "lifespan"}

    async def send(message: dict[str, Any]) -> None:
        assert message["type"] in {"lifespan.startup.complete", "lifespan.shutdown.complete"}
        started.set()

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(relay({"type": "lifespan"}, receive, send))
        await started.wait()
        try:
            await relay(chat(length), server.receive, server.send)
        finally:
            stop.set()


def test_a_body_is_whole_with_its_last_announced_byte(tmp_path: Path) -> None:
    """A server that tells of the end separately, as granian does, is not asked for it."""
    body = b'{"model":"up/m","messages":[{"role":"user","content":"hi"}]}'
    server = Server(
        {"type": "http.request", "body": body[:10], "more_body": True},
        {"type": "http.request", "body": body[10:], "more_body": True},
    )
    asyncio.run(ask(tmp_path, server, len(body)))
    assert server.received == 2
    assert [message["type"] for message in server.sent] == [
        "http.response.start",
        "http.response.body",
    ]
    assert json.loads(server.sent[1]["body"])["error"]["code"]
    assert server.sent[1]["more_body"] is False


def test_a_body_that_ends_early_is_judged_as_it_came(tmp_path: Path) -> None:
    server = Server({"type": "http.request", "body": b'{"model":', "more_body": False})
    asyncio.run(ask(tmp_path, server, 100))
    assert server.received == 1
    assert server.sent[0]["status"] >= 400


class Upload:
    """An exchange whose engine has no room until it is told to have some."""

    id = 1
    is_upload = True

    def __init__(self) -> None:
        self.room = False
        self.timed_out = False

    def feed(self, _piece: bytes, more: bool) -> bool:
        return more

    def has_capacity(self) -> bool:
        return self.room

    def time_out(self) -> None:
        self.timed_out = True


def test_who_takes_an_upload_slowly_makes_no_slow_caller(tmp_path: Path) -> None:
    """While the engine has no room its own deadlines hold, and what it took is not counted against the caller."""

    async def feed() -> tuple[InFlightRequest, Upload]:
        loop = asyncio.get_running_loop()
        relay = Relay(config(tmp_path))
        relay._loop = loop
        exchange = Upload()
        server = Server(
            {"type": "http.request", "body": b"a", "more_body": True},
            {"type": "http.request", "body": b"b", "more_body": False},
        )
        flight = InFlightRequest(cast("Any", exchange), server.receive, loop.time())
        feeding = loop.create_task(relay._feed(flight))
        flight.task = feeding
        while flight.waiter is None:
            await asyncio.sleep(0)
        flight.check_timeouts(loop.time() + 3_600, 30)
        assert flight.watcher is None, "the body's next piece would be taken for a departure"
        exchange.room = True
        flight.wake()
        async with asyncio.timeout(PATIENCE_S):
            await feeding
        return flight, exchange

    flight, exchange = asyncio.run(feed())
    assert not flight.is_late
    assert not exchange.timed_out


def test_the_time_without_room_is_not_the_callers(tmp_path: Path) -> None:
    async def check_timeouts(waited_s: float) -> bool:
        loop = asyncio.get_running_loop()
        flight = InFlightRequest(cast("Any", Upload()), Server().receive, loop.time() - 100)
        flight.task = None
        flight.waited_s, flight.reading_since_s = waited_s, loop.time()
        flight.check_timeouts(loop.time(), 30)
        return flight.is_late

    assert asyncio.run(check_timeouts(90)) is False
    assert asyncio.run(check_timeouts(0)) is True


def test_a_body_that_breaks_off_is_answered(tmp_path: Path) -> None:
    """granian tells malformed chunks as a departure; a caller who is still there gets an answer in our form."""
    server = Server(
        {"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}
    )
    asyncio.run(ask(tmp_path, server, 100))
    assert server.sent[0]["status"] == 400
    assert (b"connection", b"close") in server.sent[0]["headers"]
    assert json.loads(server.sent[1]["body"])["error"]["code"] == "invalid_request"

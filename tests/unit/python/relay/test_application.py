"""The adapter between a server and the engine, without a server."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

from fairlead import _core
from fairlead.relay.application import Relay

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

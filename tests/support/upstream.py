"""A scripted provider on a raw socket: says exactly what a test tells it to, and remembers what it was asked.

It speaks HTTP/1.1 with kept connections, in a thread of its own. How a request is answered is a *script*, a
sequence of steps; bytes in it are sent as they are:

    up.script(reply({"ok": 1}))                          # every request
    up.script([head(429), ...], reply(...))              # the first, then every further one
    up.script([RESET], key="sk-upstream-2")              # requests that carry this credential
    up.script([head(200), b"half", gate, CLOSE], model="m")

A script that ends without `CLOSE` or `RESET` leaves the connection open for the next request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, Self

Headers = Iterable[tuple[str, str]]

# ------------------------------------------------------------------------------------------- steps


@dataclass(frozen=True)
class Wait:
    """Does nothing for a while: a slow provider."""

    seconds: float


@dataclass(frozen=True)
class Flood:
    """Sends `piece` again and again until `total_bytes` went out, as fast as they are taken."""

    piece: bytes
    total_bytes: int


class Gate:
    """Holds a script until the test opens it; `reached` tells that the script is there."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._opened: Future[None] = Future()

    def open(self) -> None:
        """Lets the script go on. Opening twice is the same as once."""
        if not self._opened.done():
            self._opened.set_result(None)

    async def passed(self) -> None:
        self.reached.set()
        await asyncio.shield(asyncio.wrap_future(self._opened))


class _Mark:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


CLOSE: Final = _Mark("CLOSE")
"""Ends the connection in good order (FIN) after what was sent."""
RESET: Final = _Mark("RESET")
"""Breaks the connection (RST); what the other side has not read yet may be lost."""
STALL: Final = _Mark("STALL")
"""Says nothing more and waits until the other side goes away."""

Step = bytes | Wait | Flood | Gate | _Mark
Script = Sequence[Step]


# ------------------------------------------------------------------------------- parts of an answer


def head(status: int = 200, headers: Headers = (), *, reason: str = "Scripted") -> bytes:
    """A status line and headers, and no framing of its own."""
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def reply(
    body: bytes | Mapping[str, Any],
    status: int = 200,
    headers: Headers = (),
    *,
    content_type: str | None = "application/json",
) -> list[Step]:
    """A whole answer of known length."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = [("Content-Type", content_type)] if content_type else []
    return [head(status, [*kind, ("Content-Length", str(len(data))), *headers]) + data]


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK: Final = b"0\r\n\r\n"
SSE_HEADERS: Final = (("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked"))
SSE_HEAD: Final = head(200, SSE_HEADERS)
DONE: Final = b"data: [DONE]\n\n"


def event(data: Mapping[str, Any] | str) -> bytes:
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
    return b"data: " + text.encode() + b"\n\n"


def delta(text: str, *, index: int = 0) -> bytes:
    """An event with a piece of an answer, as OpenAI's streams have it."""
    choice = {"index": index, "delta": {"content": text}, "finish_reason": None}
    return event({**_CHUNK, "choices": [choice]})


def finish(reason: str = "stop") -> bytes:
    """The event that ends a choice."""
    return event({**_CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})


def usage_event(tokens_in: int = 7, tokens_out: int = 3) -> bytes:
    """The extra event with which a stream reports its usage when asked to."""
    return event({**_CHUNK, "choices": [], "usage": usage(tokens_in, tokens_out)})


def usage(tokens_in: int = 7, tokens_out: int = 3) -> dict[str, int]:
    return {
        "prompt_tokens": tokens_in,
        "completion_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
    }


def stream(*events: bytes, ended: bool = True) -> list[Step]:
    """A stream of these events, a chunk each; `ended` sends the last chunk of the framing."""
    return [SSE_HEAD, *(chunk(one) for one in events), *([LAST_CHUNK] if ended else [])]


def completion(text: str = "hello", *, tokens_in: int = 7, tokens_out: int = 3) -> dict[str, Any]:
    """A plain chat completion."""
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage(tokens_in, tokens_out),
    }


_CHUNK: Final = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}


# --------------------------------------------------------------------------------- what was asked


@dataclass
class Seen:
    """One request as it arrived. Times are `time.monotonic()`."""

    connection: int
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    at: float
    sent_bytes: int = 0
    answered_at: float | None = None
    """When the script came to its end."""
    gone_at: float | None = None
    """When the connection that carried it ended, whoever ended it."""
    aborted: bool = False
    """The connection ended before the script did."""

    def header(self, name: str) -> str | None:
        """The header's value, or None. Fails when it was sent twice."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        assert len(values) < 2, f"{name} was sent {len(values)} times"
        return values[0] if values else None

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def bearer(self) -> str | None:
        value = self.header("authorization")
        return value.removeprefix("Bearer ") if value else None


@dataclass
class _Queue:
    scripts: list[Script] = field(default_factory=list)

    def take(self) -> Script:
        return self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]


class Upstream:
    """See the module's page. A context manager; everything it started ends with it."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Seen] = []
        self.connections = 0
        self.open_connections = 0
        self._tls = tls
        self._queues: dict[tuple[str, str] | None, _Queue] = {None: _Queue([reply(completion())])}
        self._tasks: set[asyncio.Task[None]] = set()
        self._protocols: set[_Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="upstream", daemon=True)
        self.port = 0

    def script(self, *scripts: Script, model: str | None = None, key: str | None = None) -> None:
        """Answers requests by these scripts in turn, the last one for all that follow."""
        assert scripts
        name = ("key", key) if key is not None else ("model", model) if model is not None else None
        self._queues[name] = _Queue(list(scripts))

    @property
    def url(self) -> str:
        """The base URL as an operator would write it for an OpenAI-compatible provider."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/v1"

    @property
    def last(self) -> Seen:
        return self.requests[-1]

    def bytes_seen(self) -> bytes:
        """Everything that was asked, for looking for what must not be in it."""
        return b"\n".join(
            f"{seen.target} {seen.headers}".encode("latin-1") + seen.body for seen in self.requests
        )

    # --- its life

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._on_loop(self._listen())
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *exc: object) -> None:
        self._on_loop(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _on_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> asyncio.Server:
        return await self._loop.create_server(
            lambda: _Connection(self), "127.0.0.1", 0, ssl=self._tls, backlog=1024
        )

    async def _end(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        for protocol in list(self._protocols):
            protocol.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # lets the aborted transports close their sockets

    def choose(self, seen: Seen) -> Script:
        """The script for a request: by credential, by model, or the general one."""
        names: list[tuple[str, str] | None] = []
        if seen.bearer is not None:
            names.append(("key", seen.bearer))
        with contextlib.suppress(ValueError, KeyError, TypeError):  # not every request has a model
            names.append(("model", str(json.loads(seen.body)["model"])))
        for name in [*names, None]:
            if name in self._queues:
                return self._queues[name].take()
        raise AssertionError("the general script is always there")


class _Connection(asyncio.Protocol):
    """One connection: reads requests, runs their scripts one after another."""

    transport: asyncio.Transport

    def __init__(self, up: Upstream) -> None:
        self._up = up
        self._input = bytearray()
        self._arrived = asyncio.Event()
        self._gone = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._current: Seen | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=64 * 1024)
        raw: socket.socket = transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._up.connections += 1
        self._up.open_connections += 1
        self._number = self._up.connections
        self._up._protocols.add(self)
        task = asyncio.get_running_loop().create_task(self._serve())
        self._up._tasks.add(task)
        task.add_done_callback(self._up._tasks.discard)

    def data_received(self, data: bytes) -> None:
        self._input += data
        self._arrived.set()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._up.open_connections -= 1
        self._up._protocols.discard(self)
        now = time.monotonic()
        for seen in self._up.requests:
            if seen.connection == self._number and seen.gone_at is None:
                seen.gone_at = now
                seen.aborted = seen.answered_at is None
        self._gone.set()
        self._arrived.set()
        self._room.set()

    async def _serve(self) -> None:
        while (seen := await self._read_request()) is not None:
            self._up.requests.append(seen)
            self._current = seen
            script = self._up.choose(seen)
            for step in script:
                if self._gone.is_set():
                    return
                if not await self._run(step, seen):
                    return
            seen.answered_at = time.monotonic()

    async def _run(self, step: Step, seen: Seen) -> bool:
        """Whether the script goes on."""
        if isinstance(step, bytes):
            await self._send(step, seen)
        elif isinstance(step, Wait):
            await self._unless_gone(asyncio.sleep(step.seconds))
        elif isinstance(step, Gate):
            await self._unless_gone(step.passed())
        elif isinstance(step, Flood):
            for _ in range(-(-step.total_bytes // len(step.piece))):
                await self._send(step.piece, seen)
                if self.transport.is_closing():
                    return False
        elif step is STALL:
            await self._gone.wait()
            return False
        elif step is CLOSE:
            seen.answered_at = time.monotonic()
            self.transport.close()
            return False
        elif step is RESET:
            seen.answered_at = time.monotonic()
            raw: socket.socket = self.transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()
            return False
        return not self._gone.is_set()

    async def _send(self, data: bytes, seen: Seen) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)
            seen.sent_bytes += len(data)
            await self._room.wait()

    async def _unless_gone(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._gone.wait())
        try:
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()
            gone.cancel()

    async def _read_request(self) -> Seen | None:
        block = await self._read_until(b"\r\n\r\n")
        if block is None:
            return None
        start, *lines = block.decode("latin-1").split("\r\n")
        method, target, _ = start.split(" ", 2)
        headers = [
            (name, value.strip()) for name, _, value in (line.partition(":") for line in lines)
        ]
        named = {name.lower(): value for name, value in headers}
        if "chunked" in named.get("transfer-encoding", ""):
            body = await self._read_chunks()
        else:
            body = await self._read_exactly(int(named.get("content-length", "0")))
        if body is None:
            return None
        return Seen(self._number, method, target, headers, body, time.monotonic())

    async def _read_chunks(self) -> bytes | None:
        body = bytearray()
        while (line := await self._read_until(b"\r\n")) is not None:
            size = int(line.split(b";")[0], 16)
            data = await self._read_exactly(size + 2)
            if data is None:
                return None
            if size == 0:
                return bytes(body)
            body += data[:-2]
        return None

    async def _read_until(self, mark: bytes) -> bytes | None:
        while (at := self._input.find(mark)) < 0:
            if not await self._more():
                return None
        found = bytes(self._input[:at])
        del self._input[: at + len(mark)]
        return found

    async def _read_exactly(self, size: int) -> bytes | None:
        while len(self._input) < size:
            if not await self._more():
                return None
        found = bytes(self._input[:size])
        del self._input[:size]
        return found

    async def _more(self) -> bool:
        if self._gone.is_set():
            return False
        self._arrived.clear()
        await self._arrived.wait()
        return not self._gone.is_set()


class Plain(Upstream):
    """Answers streams with a stream, and everything else at once."""

    def choose(self, seen: Seen) -> Script:
        if seen.json().get("stream"):
            return stream(delta("hel"), delta("lo"), finish())
        return reply(completion("hello"))


class ClosedPort:
    """A port of loopback where nobody listens, and nobody else can start to while it is held."""

    def __enter__(self) -> Self:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        return self

    def __exit__(self, *exc: object) -> None:
        self._socket.close()

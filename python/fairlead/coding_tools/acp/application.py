"""The HTTP surface on loopback: chat completions in OpenAI's dialect, for the relay alone.

Plain ASGI. Callers without the token of this start are refused. If the caller leaves, the call is cancelled,
and with it the tool's process.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, Final

from fairlead.coding_tools.acp.answer import Ending, Piece, Writer
from fairlead.coding_tools.acp.chat import ChatRequest, read_request
from fairlead.coding_tools.acp.config import AcpConfig
from fairlead.coding_tools.acp.fault import AcpFault
from fairlead.coding_tools.acp.sessions import Sessions
from fairlead.coding_tools.catalogue import catalogue
from fairlead.coding_tools.entry import ToolEntry

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

CHAT: Final = "/v1/chat/completions"
HEALTH: Final = "/health"
SESSION: Final = b"x-fairlead-session"
BODY_BYTES: Final = 32 * 1024 * 1024
ANSWER_CHARS: Final = 16 * 1024 * 1024
_SILENCE_S: Final = 5.0
_COMMENT: Final = b": at work\n\n"
_END: Final = {"type": "http.response.body", "body": b"", "more_body": False}


def create() -> Application:
    """The server's factory: the application configured by the environment."""
    os.umask(0o077)
    # Removed, so that no tool inherits it.
    document = os.environ.pop("FAIRLEAD_ACP_CONFIG")
    return Application(AcpConfig.model_validate_json(document))


class Application:
    """The ASGI application."""

    def __init__(self, config: AcpConfig) -> None:
        self._token = b"Bearer " + config.token.get_secret_value().encode()
        self._tools = {name: catalogue()[name] for name in config.tools}
        self._sessions = Sessions(config)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        watching = asyncio.create_task(self._sessions.watch())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        watching.cancel()
        await self._sessions.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if scope["path"] == HEALTH:
            await _send_whole(send, 200, b"{}")
            return
        try:
            if not hmac.compare_digest(headers.get(b"authorization", b""), self._token):
                raise AcpFault(401, "unauthenticated", "This address is for the gateway itself.")
            if (scope["method"], scope["path"]) != ("POST", CHAT):
                raise AcpFault(404, "not_found", f"Only POST {CHAT} is answered here.")
            request = await asyncio.to_thread(read_request, await _read(receive))
            call = _Call(self._tool(request.model), request, headers.get(SESSION), send)
            await _unless_gone(receive, call.run(self._sessions))
        except AcpFault as fault:
            await _send_fault(send, fault)

    def _tool(self, model: str) -> ToolEntry:
        if model not in self._tools:
            raise AcpFault(
                404, "model_not_found", f"There is no coding tool `{model}`.", param="model"
            )
        return self._tools[model]


class _Call:
    """One request on its way: to a session, and back as a stream or as a whole."""

    def __init__(
        self, entry: ToolEntry, request: ChatRequest, session: bytes | None, send: Send
    ) -> None:
        self._entry = entry
        self._request = request
        self._name = None if session is None else session.decode("latin-1")
        self._send = send
        self._writer = Writer(request.model)

    async def run(self, sessions: Sessions) -> None:
        """Answers. `AcpFault` only where nothing was sent yet."""
        async with (
            sessions.hold(self._entry, self._name) as tool,
            aclosing(tool.prompt(self._request.turns)) as pieces,
        ):
            if self._request.is_stream:
                await self._stream(pieces)
            else:
                await self._whole(pieces)

    async def _whole(self, pieces: AsyncGenerator[Piece | Ending, None]) -> None:
        found: list[Piece] = []
        ending, chars = Ending("length"), 0
        async for piece in pieces:
            if isinstance(piece, Ending):
                ending = piece
                break
            found.append(piece)
            chars += len(piece.text)
            if chars > ANSWER_CHARS:
                raise AcpFault(
                    424, "answer_too_long", f"The answer has more than {ANSWER_CHARS} characters."
                )
        await _send_whole(self._send, 200, self._writer.whole(found, ending))

    async def _stream(self, pieces: AsyncGenerator[Piece | Ending, None]) -> None:
        async with aclosing(_with_silence(pieces)) as parts:
            # An early fault can still set the HTTP status.
            first = await anext(parts)
            await self._send(_head(200, b"text/event-stream"))
            await self._part(self._writer.first())
            try:
                await self._part(self._event(first))
                async for part in parts:
                    await self._part(self._event(part))
            except AcpFault as fault:
                await self._part(b"data: " + fault.body() + b"\n\n")
                raise _StreamFault from fault
            finally:
                await self._send(_END)

    def _event(self, part: Piece | Ending | None) -> bytes:
        if part is None:
            return _COMMENT
        if isinstance(part, Ending):
            return self._writer.last(part, wants_usage=self._request.wants_usage)
        return self._writer.part(part)

    async def _part(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})


class _StreamFault(Exception):
    """The fault was reported to the caller inside the stream; the session ends anyway."""


async def _with_silence(
    pieces: AsyncGenerator[Piece | Ending, None],
) -> AsyncGenerator[Piece | Ending | None, None]:
    """The pieces, and None whenever the tool was silent for a while."""
    waiting = asyncio.ensure_future(anext(pieces))
    try:
        while True:
            await asyncio.wait({waiting}, timeout=_SILENCE_S)
            if not waiting.done():
                yield None
                continue
            piece = waiting.result()
            yield piece
            if isinstance(piece, Ending):
                return
            waiting = asyncio.ensure_future(anext(pieces))
    finally:
        waiting.cancel()
        await asyncio.wait({waiting})


async def _unless_gone(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Does the work, and cancels it when the caller has left."""
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_until_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait({working})
    if not working.cancelled():
        with contextlib.suppress(_StreamFault):
            working.result()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise AcpFault(400, "invalid_request", "The body ended early.")
        body += message.get("body", b"")
        if len(body) > BODY_BYTES:
            raise AcpFault(413, "too_large", f"The body has more than {BODY_BYTES} bytes.")
        if not message.get("more_body"):
            return bytes(body)


async def _send_fault(send: Send, fault: AcpFault) -> None:
    more = (
        {} if fault.retry_after_s is None else {b"retry-after": str(fault.retry_after_s).encode()}
    )
    await _send_whole(send, fault.status, fault.body(), more)


async def _send_whole(
    send: Send, status: int, body: bytes, more: Mapping[bytes, bytes] = MappingProxyType({})
) -> None:
    await send(_head(status, b"application/json", more))
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _head(
    status: int, kind: bytes, more: Mapping[bytes, bytes] = MappingProxyType({})
) -> dict[str, Any]:
    headers = [(b"content-type", kind), *more.items()]
    return {"type": "http.response.start", "status": status, "headers": headers}

"""JSON-RPC 2.0 with a tool, one message a line, in both directions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson

Object = dict[str, Any]
OnRequest = Callable[[str, Object], Object | None]
"""Answers a request of the tool by its method and parameters; None for a method that is not offered."""
OnNotice = Callable[[str, Object], Awaitable[None]]

_WRITE_S: Final = 30.0
_NO_METHOD: Final = {"code": -32601, "message": "Method not found"}


class ToolGone(Exception):
    """The tool closed its output, or wrote what is no message."""


class _NoMessage(ValueError):
    """A line that is no message of the protocol."""


class ToolError(Exception):
    """The tool answered a request with an error. `message` is its own."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Peer:
    """The two streams of one tool. `run` reads until the tool is gone; everything else waits for what it reads."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_request: OnRequest,
        on_notice: OnNotice,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._on_request = on_request
        self._on_notice = on_notice
        self._waiting: dict[int, asyncio.Future[Object]] = {}
        self._count = 0
        self._is_gone = False

    async def run(self) -> None:
        """Reads messages until there are no more, then fails every request that waits."""
        try:
            while line := await self._reader.readline():
                if line.strip():
                    await self._take(orjson.loads(line))
        except (ValueError, OSError, TimeoutError):
            # A message that is too long or no JSON: what follows cannot be trusted.
            pass
        finally:
            self._is_gone = True
            for each in self._waiting.values():
                if not each.done():
                    each.set_exception(ToolGone())
                    # Nobody may be waiting any more.
                    each.exception()

    async def ask(self, method: str, params: Object) -> Object:
        """The result of a request. `ToolError`, `ToolGone`; the caller sets the deadline."""
        if self._is_gone:
            raise ToolGone
        self._count += 1
        number = self._count
        answer: asyncio.Future[Object] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            await self._write({"id": number, "method": method, "params": params})
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def notify(self, method: str, params: Object) -> None:
        """Sends a notification; nothing where the tool is gone."""
        with contextlib.suppress(ToolGone):
            await self._write({"method": method, "params": params})

    async def _take(self, message: Any) -> None:
        if not isinstance(message, dict):
            raise _NoMessage
        method, number = message.get("method"), message.get("id")
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if isinstance(method, str) and number is None:
            await self._on_notice(method, params)
        elif isinstance(method, str):
            result = self._on_request(method, params)
            outcome: Object = {"error": _NO_METHOD} if result is None else {"result": result}
            with contextlib.suppress(ToolGone):
                await self._write({"id": number, **outcome})
        elif isinstance(number, int) and (waiting := self._waiting.get(number)) is not None:
            _settle(waiting, message)

    async def _write(self, message: Object) -> None:
        try:
            async with asyncio.timeout(_WRITE_S):
                self._writer.write(orjson.dumps({"jsonrpc": "2.0", **message}) + b"\n")
                await self._writer.drain()
        except (OSError, TimeoutError, RuntimeError):
            raise ToolGone from None


def _settle(waiting: asyncio.Future[Object], message: Object) -> None:
    if waiting.done():
        return
    error = message.get("error")
    if isinstance(error, dict):
        code = error.get("code")
        text = str(error.get("message") or "It gave no reason.")
        waiting.set_exception(ToolError(code if isinstance(code, int) else 0, text))
        return
    result = message.get("result")
    waiting.set_result(result if isinstance(result, dict) else {})

"""Handles MCP messages independent of their transport: lists and calls tools.

An invalid message is answered with an `error`; a failed tool call with a result that has `isError`, which the
calling model can read and correct.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import BaseModel, ValidationError

from fairlead import __version__
from fairlead.errors import FairleadError, Internal, InvalidRequest
from fairlead.mcp.message import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Request,
    RpcError,
)
from fairlead.mcp.revision import HANDSHAKE, META_SERVER, STATELESS, SUPPORTED
from fairlead.mcp.tool import Call, Tool, Toolbox

PAGE = 100
# How long a client may keep the list of tools; it differs by person.
LIST_TTL_MS = 300_000


@dataclass(frozen=True, slots=True)
class Server:
    """A set of tools under a name. `instructions` tells a model what they are for."""

    name: str
    title: str
    instructions: str
    toolbox: Toolbox

    async def answer(self, request: Request, revision: str, call: Call) -> dict[str, Any]:
        """The `result`; `RpcError` is an `error`."""
        if revision == STATELESS:
            return await self._stateless(request, call)
        match request.method:
            case "initialize":
                return self._initialize(request.params)
            case "ping":
                return {}
            case "tools/list":
                return self._list(request.params, call)
            case "tools/call":
                return await self._call(request.params, call)
        raise _unknown(request.method)

    async def _stateless(self, request: Request, call: Call) -> dict[str, Any]:
        match request.method:
            case "server/discover":
                result = {
                    "supportedVersions": list(SUPPORTED),
                    "capabilities": _CAPABILITIES,
                    "instructions": self.instructions,
                    "_meta": {META_SERVER: self._info()},
                }
            case "tools/list":
                result = self._list(request.params, call)
            case "tools/call":
                result = await self._call(request.params, call)
                return {"resultType": "complete", **result}
            case _:
                raise _unknown(request.method)
        return {
            "resultType": "complete",
            "ttlMs": LIST_TTL_MS,
            "cacheScope": "private",
            **result,
        }

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        about = params.get("clientInfo")
        client = about if isinstance(about, dict) else {}
        for name in ("name", "version"):
            if not isinstance(client.get(name), str) or not client[name]:
                raise RpcError(
                    INVALID_PARAMS, f"clientInfo.{name} must be a text that is not empty."
                )
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, str):
            raise RpcError(INVALID_PARAMS, "protocolVersion must be a text such as 2025-11-25.")
        return {
            "protocolVersion": wanted if wanted in HANDSHAKE else HANDSHAKE[-1],
            "capabilities": _CAPABILITIES,
            "serverInfo": self._info(),
            "instructions": self.instructions,
        }

    def _info(self) -> dict[str, Any]:
        return {"name": self.name, "title": self.title, "version": __version__}

    def _list(self, params: dict[str, Any], call: Call) -> dict[str, Any]:
        tools = self.toolbox.for_person(call.person)
        start = read_cursor(params.get("cursor"), len(tools))
        result: dict[str, Any] = {"tools": [each.listing for each in tools[start : start + PAGE]]}
        if start + PAGE < len(tools):
            result["nextCursor"] = make_cursor(start + PAGE)
        return result

    async def _call(self, params: dict[str, Any], call: Call) -> dict[str, Any]:
        name = params.get("name")
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "name must be the name of a tool.")
        tool = self.toolbox.find(name, call.person)
        if tool is None:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name[:64]}")
        arguments = params.get("arguments")
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "arguments must be an object.")
        try:
            given = await run_tool(tool, arguments, call)
        except ToolFailed as failed:
            return {
                "content": [{"type": "text", "text": failed.error.message}],
                "structuredContent": failed.document(),
                "isError": True,
            }
        return {
            "content": [{"type": "text", "text": orjson.dumps(given).decode()}],
            "structuredContent": given,
            "isError": False,
        }


class ToolFailed(Exception):
    """A call that came to nothing, and why."""

    def __init__(self, error: FairleadError) -> None:
        super().__init__(error.message)
        self.error = error

    def document(self) -> dict[str, Any]:
        """The failure as the tool tells it: `{code, message, details}`."""
        details = {} if self.error.param is None else {"param": self.error.param}
        return {"code": CODES[self.error.status], "message": self.error.message, "details": details}


# The name of a failed call's error, as in the tool endpoints.
CODES = {
    400: "VALIDATION_ERROR",
    401: "AUTH_REQUIRED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    409: "CONFLICT",
    429: "RATE_LIMITED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


async def run_tool(tool: Tool[Any], arguments: dict[str, Any], call: Call) -> dict[str, Any]:
    """Runs a tool and returns its result as JSON; `ToolFailed` for an error whose status has a code."""
    try:
        given: BaseModel = await tool.run(call, tool.takes.model_validate(arguments))
    except ValidationError as error:
        if tool.refuse is None:
            raise ToolFailed(bad_input(error)) from None
        given = tool.refuse(arguments, bad_input(error).message)
    except FairleadError as error:
        if error.status not in CODES:
            raise ToolFailed(Internal("The tool failed.")) from error
        raise ToolFailed(error) from None
    shown: dict[str, Any] = given.model_dump(mode="json", by_alias=True)
    return shown


def bad_input(error: ValidationError) -> FairleadError:
    """The first thing that is wrong with a tool's input: field, rule and fix."""
    first = error.errors(include_url=False, include_input=False)[0]
    name = ""
    for step in first["loc"]:
        name += f"[{step}]" if isinstance(step, int) else f".{step}" if name else str(step)
    name = name[:200]
    if first["type"] == "missing":
        return InvalidRequest(f"{name} is required: add it to the arguments.", param=name)
    if first["type"] == "extra_forbidden":
        return InvalidRequest(
            f"{name} is no argument of this tool: remove it or correct its name.", param=name
        )
    message = str(first["msg"]).removeprefix("Value error, ")
    rule = re.sub(r"^\w+ should ", "must ", message)
    return InvalidRequest(f"{name or 'arguments'} {rule}.", param=name or None)


def make_cursor(offset: int) -> str:
    """The position of the next page; opaque to clients."""
    return base64.urlsafe_b64encode(f"o{offset}".encode()).decode().rstrip("=")


def read_cursor(cursor: object, end: int) -> int:
    """The offset of a cursor of ours that lies within the list; 0 for none."""
    if cursor is None:
        return 0
    try:
        text = str(cursor)[:64]
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii")
        offset = int(raw[1:]) if raw[:1] == "o" else -1
    except (binascii.Error, ValueError):
        offset = -1
    if not 0 <= offset <= end:
        raise RpcError(INVALID_PARAMS, "cursor must be one that a list of this server gave.")
    return offset


def _unknown(method: str) -> RpcError:
    return RpcError(METHOD_NOT_FOUND, f"Method not found: {method[:64]}")


_CAPABILITIES: dict[str, Any] = {"tools": {"listChanged": False}}

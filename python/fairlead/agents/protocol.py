"""JSON-RPC 2.0 as A2A uses it: requests, responses and error codes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import orjson
from starlette.responses import Response

from fairlead.agents.task import Message
from fairlead.moment import now_ms

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
BUSY: Final = -32000
TASK_NOT_FOUND: Final = -32001
TASK_NOT_CANCELABLE: Final = -32002
PUSH_NOT_SUPPORTED: Final = -32003
UNSUPPORTED_OPERATION: Final = -32004
CONTENT_TYPE_NOT_SUPPORTED: Final = -32005
# A2A 1.0 has this code for its versions, and fairlead for callers without a token: the HTTP status tells them apart.
VERSION_NOT_SUPPORTED: Final = -32009
AUTHENTICATION_REQUIRED: Final = -32009
INVALID_TOKEN: Final = -32010
TOKEN_EXPIRED: Final = -32011
INSUFFICIENT_SCOPE: Final = -32013
CLIENT_NOT_ALLOWED: Final = -32014

DEPTH_MAX: Final = 64
PARTS_MAX: Final = 100
TEXT_MAX_CHARS: Final = 200_000
ID_MAX_CHARS: Final = 128

Id = str | int | None


class RpcFault(Exception):
    """An error response: JSON-RPC's `code` and the HTTP status. `data` are details."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
        data: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(message)
        self.data = data
        self.code = code
        self.message = message
        self.status = status
        self.headers = headers or {}


@dataclass(frozen=True, slots=True)
class Call:
    """A request. Its `id` is a string or a number."""

    id: Id
    method: str
    params: dict[str, Any]


def answer(call_id: Id, result: Any) -> Response:
    """The response for a result."""
    return _response({"jsonrpc": "2.0", "id": call_id, "result": result}, 200, {})


def fault_answer(call_id: Id, fault: RpcFault) -> Response:
    """The response for an error; its id is null where the call could not be parsed."""
    error: dict[str, Any] = {"code": fault.code, "message": fault.message}
    if fault.data:
        error["data"] = fault.data
    return _response({"jsonrpc": "2.0", "id": call_id, "error": error}, fault.status, fault.headers)


def read_call(body: bytes, content_type: str) -> Call:
    """Parses the request in a body, or raises `RpcFault`.

    The content type must be JSON, which a foreign page cannot send without a CORS preflight.
    """
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise RpcFault(
            INVALID_REQUEST, "Send JSON with `Content-Type: application/json`.", status=415
        )
    try:
        orjson.loads(body)
        document = json.loads(body, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise RpcFault(PARSE_ERROR, "The body is not well-formed JSON.") from None
    if not isinstance(document, dict) or _depth(document) > DEPTH_MAX:
        raise RpcFault(INVALID_REQUEST, "Send one JSON-RPC request, no batch.")
    call_id = document.get("id")
    if isinstance(call_id, bool) or not isinstance(call_id, str | int) or "id" not in document:
        raise RpcFault(INVALID_REQUEST, "The request needs an id: a text or a whole number.")
    method, params = document.get("method"), document.get("params", {})
    if document.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise CallFault(call_id, INVALID_REQUEST, "The request is not JSON-RPC 2.0.")
    if not isinstance(params, dict):
        raise CallFault(call_id, INVALID_PARAMS, "params must be an object.")
    return Call(call_id, method, params)


class CallFault(RpcFault):
    """An `RpcFault` of a request whose id could be parsed."""

    def __init__(self, call_id: Id, code: int, message: str) -> None:
        super().__init__(code, message)
        self.call_id = call_id


def read_message(params: dict[str, Any]) -> tuple[Message, str | None, str | None]:
    """The message of `message/send`, with its task id and context id where it names them."""
    message = params.get("message")
    if not isinstance(message, dict):
        raise invalid_params("message", "is required: an object")
    if message.get("role") != "user":
        raise invalid_params("message.role", "must be `user`")
    if message.get("kind", "message") != "message":
        raise invalid_params("message.kind", "must be `message`")
    message_id = read_id(message, "messageId", "message.")
    if message_id is None:
        raise invalid_params(
            "message.messageId", "is required: a text that is new for each message"
        )
    parts = message.get("parts")
    if not isinstance(parts, list) or not 1 <= len(parts) <= PARTS_MAX:
        raise invalid_params("message.parts", f"must be a list of 1 to {PARTS_MAX} parts")
    read = tuple(_part(part, f"message.parts[{number}]") for number, part in enumerate(parts))
    if len(orjson.dumps(read)) > TEXT_MAX_CHARS:
        raise invalid_params("message.parts", f"are larger than {TEXT_MAX_CHARS} bytes")
    return (
        Message(message_id, "user", read, now_ms()),
        read_id(message, "taskId", "message."),
        read_id(message, "contextId", "message."),
    )


def read_id(values: dict[str, Any], name: str, before: str = "") -> str | None:
    """An optional id."""
    value = values.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= ID_MAX_CHARS or not value.isprintable():
        raise invalid_params(before + name, f"must be a text of 1 to {ID_MAX_CHARS} characters")
    return value


def read_length(values: dict[str, Any], before: str = "") -> int | None:
    """`historyLength`: the number of messages to return."""
    value = values.get("historyLength")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise invalid_params(f"{before}historyLength", "must be a whole number, 0 or more")
    return value


def invalid_params(name: str, rule: str) -> RpcFault:
    """The error for a parameter that breaks a rule."""
    return RpcFault(INVALID_PARAMS, f"{name} {rule}.")


def _part(part: Any, name: str) -> dict[str, Any]:
    if not isinstance(part, dict):
        raise invalid_params(name, "must be an object")
    match part.get("kind"):
        case "text":
            if not isinstance(part.get("text"), str):
                raise invalid_params(f"{name}.text", "must be a text")
            return {"kind": "text", "text": part["text"]}
        case "data":
            if not isinstance(part.get("data"), dict):
                raise invalid_params(f"{name}.data", "must be an object")
            return {"kind": "data", "data": part["data"]}
        case "file":
            raise RpcFault(
                CONTENT_TYPE_NOT_SUPPORTED, f"{name}: this agent takes text and data only."
            )
    raise invalid_params(f"{name}.kind", "must be `text` or `data`")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("an object has a name twice")
    return names


def _depth(value: Any) -> int:
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        each, depth = waiting.pop()
        deepest = max(deepest, depth)
        if depth > DEPTH_MAX:
            return depth
        if isinstance(each, dict):
            waiting.extend((inner, depth + 1) for inner in each.values())
        elif isinstance(each, list):
            waiting.extend((inner, depth + 1) for inner in each)
    return deepest


def _response(document: dict[str, Any], status: int, headers: dict[str, str]) -> Response:
    headers = {"cache-control": "no-store", **headers}
    return Response(orjson.dumps(document), status, headers, "application/json")

"""JSON-RPC 2.0 messages: one for each body."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import orjson

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
UNSUPPORTED_PROTOCOL_VERSION = -32022

DEPTH_MAX = 64
METHOD_MAX_CHARS = 128
LARGEST_ID = 2**63 - 1

MessageId = str | int | None


class RpcError(Exception):
    """An answer with `error`."""

    def __init__(
        self, code: int, message: str, data: Any = None, *, message_id: MessageId = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.message_id = message_id


@dataclass(frozen=True, slots=True)
class Request:
    """Is owed an answer with its id."""

    id: str | int
    method: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Notification:
    """Is owed none."""

    method: str
    params: dict[str, Any] = field(default_factory=dict)


def read_message(body: bytes) -> Request | Notification:
    """The one message of a body; `RpcError` says what is wrong, with its id where it has a usable
    one.
    """
    document = read_object(body)
    has_id = "id" in document
    given = document.get("id")
    usable = isinstance(given, str) or (
        isinstance(given, int) and not isinstance(given, bool) and abs(given) <= LARGEST_ID
    )
    message_id: MessageId = given if usable else None

    def invalid(message: str, code: int = INVALID_REQUEST) -> RpcError:
        return RpcError(code, message, message_id=message_id)

    if has_id and not usable:
        raise invalid("id must be a string or an integer.")
    if document.get("jsonrpc") != "2.0":
        raise invalid('jsonrpc must be "2.0".')
    method = document.get("method")
    if not isinstance(method, str) or not 0 < len(method) <= METHOD_MAX_CHARS:
        raise invalid("method must be a text: only requests and notifications are served.")
    params = document.get("params", {})
    if not isinstance(params, dict | list):
        raise invalid("params must be an object.")
    if isinstance(params, list):
        if params:
            raise invalid("params must be an object: no method takes a list.", INVALID_PARAMS)
        params = {}
    if _is_deeper(params, DEPTH_MAX):
        raise invalid(f"params is nested more than {DEPTH_MAX} deep.")
    if has_id and message_id is not None:
        return Request(message_id, method, params)
    return Notification(method, params)


def read_object(body: bytes) -> dict[str, Any]:
    """The one JSON object of a body, no name in it twice; `RpcError` says why it is none."""
    try:
        # The strict reader finds all but the repeated names.
        orjson.loads(body)
        document = json.loads(body, object_pairs_hook=_refuse_repeats)
    except (ValueError, RecursionError):
        raise RpcError(PARSE_ERROR, "The body is not well-formed JSON.") from None
    if isinstance(document, list):
        raise RpcError(INVALID_REQUEST, "Batches are not served: send one message for each POST.")
    if not isinstance(document, dict):
        raise RpcError(INVALID_REQUEST, "The body must be a JSON object.")
    return document


def result_body(message_id: str | int, result: dict[str, Any]) -> bytes:
    """The answer to a request."""
    return orjson.dumps({"jsonrpc": "2.0", "id": message_id, "result": result})


def error_body(error: RpcError, message_id: MessageId = None) -> bytes:
    """The answer that an error is."""
    document: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        document["data"] = error.data
    shown = error.message_id if message_id is None else message_id
    return orjson.dumps({"jsonrpc": "2.0", "id": shown, "error": document})


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("an object has a name twice")
    return names


def _is_deeper(value: Any, levels: int) -> bool:
    stack = [(value, 1)]
    while stack:
        each, level = stack.pop()
        if level > levels:
            return True
        if isinstance(each, dict):
            stack.extend((inner, level + 1) for inner in each.values())
        elif isinstance(each, list):
            stack.extend((inner, level + 1) for inner in each)
    return False

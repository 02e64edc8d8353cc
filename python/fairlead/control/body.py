"""Validation of management request bodies as strict JSON.

Python's parser accepts NaN, repeated names (the last wins) and lone surrogates. Such bodies are refused,
because different parsers would read them differently.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import orjson
from starlette.types import Message, Receive

from fairlead.errors import (
    ClientGone,
    InvalidRequest,
    RequestTimeout,
    TooLarge,
    UnsupportedMediaType,
)
from fairlead.text.json_values import VALUES_MAX, has_too_many_values

BODY_MAX_BYTES = 1024 * 1024
BODY_DEADLINE_S = 30.0
# Larger bodies are checked in a thread, so that the event loop is not blocked.
LONG_BODY_BYTES = 64 * 1024


async def read_body(receive: Receive, limit_bytes: int = BODY_MAX_BYTES) -> bytes:
    """Reads the whole body. Raises `TooLarge`, `RequestTimeout` or `ClientGone`."""
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_DEADLINE_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone("The caller left before the body was complete.")
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > limit_bytes:
                    raise TooLarge(f"The body is larger than {limit_bytes} bytes.")
                chunks.append(chunk)
                if not message.get("more_body", False):
                    return b"".join(chunks)
    except TimeoutError:
        raise RequestTimeout(f"The body was not complete within {BODY_DEADLINE_S:g} s.") from None


def check_json(body: bytes, content_type: str) -> None:
    """Raises `UnsupportedMediaType`, `TooLarge` or `InvalidRequest` unless the body is strict JSON."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "application/json" and not (
        kind.startswith("application/") and kind.endswith("+json")
    ):
        raise UnsupportedMediaType(
            "The body must be JSON: send it with `Content-Type: application/json`."
        )
    if has_too_many_values(body):
        raise TooLarge(f"The body holds more than {VALUES_MAX} values.")
    try:
        # The strict parser finds everything but repeated names.
        orjson.loads(body)
        json.loads(body, object_pairs_hook=_refuse_repeats, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, _BadJSON) else "it is not well-formed JSON"
        raise InvalidRequest(f"The body cannot be read: {reason}.") from None


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that yields the body again, then the messages that follow."""
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


class _BadJSON(ValueError):
    """A defect of the JSON, as a sentence for the caller."""


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise _BadJSON("an object has a name twice")
    return names


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise _BadJSON("a number is out of range")
    return number

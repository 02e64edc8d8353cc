"""The body of a management request: JSON that says one thing, or an error that says what is wrong.

Python's own reader takes NaN, the last of two equal names, and half a surrogate pair. Whoever
checks a body must not see another one than whoever acts on it, so such bodies are refused.
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
from fairlead.json_values import VALUES_MAX, has_too_many_values

BODY_MAX_BYTES = 1024 * 1024
BODY_DEADLINE_S = 30.0
# What is checked beside the event loop: others would notice.
LONG_BODY_BYTES = 64 * 1024


async def read_body(receive: Receive, limit_bytes: int = BODY_MAX_BYTES) -> bytes:
    """The whole body. `TooLarge`, `RequestTimeout`, `ClientGone`."""
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
    """Nothing, or `UnsupportedMediaType`, `TooLarge` or `InvalidRequest`."""
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
        # The strict reader finds all but the repeated names.
        orjson.loads(body)
        json.loads(body, object_pairs_hook=_refuse_repeats, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, _BadJSON) else "it is not well-formed JSON"
        raise InvalidRequest(f"The body cannot be read: {reason}.") from None


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body again, then what comes after it."""
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


class _BadJSON(ValueError):
    """What is wrong, in words of ours."""


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

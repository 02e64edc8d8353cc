"""A request for a background response: the fields that control needs, and the body as bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson

from fairlead.errors import TooLarge
from fairlead.gateway.files.contents import new_id
from fairlead.moment import now_ms

ENVELOPE_MAX_BYTES: Final = 8 * 1024 * 1024
"""The largest `instructions`, `tools` and `metadata`, which every event with the whole response repeats."""


@dataclass(frozen=True, slots=True)
class BackgroundRequest:
    """A parsed request. `body` is the request as it came, `input` its items as JSON, `response` the
    object that its caller is answered with at once, `envelope` that object as JSON.
    """

    body: bytes
    model: str
    previous_id: str | None
    input: str
    streams: bool
    response: dict[str, Any]
    envelope: str


def background_request(body: dict[str, Any], raw: bytes | None = None) -> BackgroundRequest:
    """The parts of a valid request. `TooLarge`. Slow for a long request: not to be called on the
    event loop.
    """
    response = {
        "id": new_id("resp_"),
        "object": "response",
        "created_at": now_ms() // 1000,
        "status": "queued",
        "background": True,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": body.get("metadata") or {},
        "model": body["model"],
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "store": True,
        "temperature": body.get("temperature"),
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p"),
        "usage": None,
    }
    if (conversation := body.get("conversation")) is not None:
        # A request names it by its id or in an object.
        is_id = isinstance(conversation, str)
        response["conversation"] = {"id": conversation} if is_id else conversation
    envelope = orjson.dumps(response)
    if len(envelope) > ENVELOPE_MAX_BYTES:
        raise TooLarge(
            "`instructions`, `tools` and `metadata` of a background response hold more than "
            f"{ENVELOPE_MAX_BYTES} bytes: shorten them."
        )
    input_ = body["input"]
    items = input_ if isinstance(input_, list) else [{"role": "user", "content": input_}]
    return BackgroundRequest(
        body=raw if raw is not None else orjson.dumps(body),
        model=body["model"],
        previous_id=body.get("previous_response_id"),
        input=orjson.dumps(items).decode(),
        streams=bool(body.get("stream")),
        response=response,
        envelope=envelope.decode(),
    )


def relay_body(body: bytes) -> bytes:
    """The body that the relay is sent: streamed, and not stored a second time."""
    request: dict[str, Any] = orjson.loads(body)
    request.pop("background", None)
    return orjson.dumps({**request, "stream": True, "store": False})

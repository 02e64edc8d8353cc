"""The items of a conversation, in the form of requests and in the form that callers read."""

from __future__ import annotations

from typing import Any

import orjson

from fairlead.gateway.responses.table import StoredResponse

_OUTPUT_ONLY = frozenset({"status", "logprobs", "annotations"})


def context(turns: list[StoredResponse]) -> list[dict[str, Any]]:
    """The items of both sides, in order, as the input of the next request."""
    items: list[dict[str, Any]] = []
    for turn in turns:
        items += orjson.loads(turn.input)
        items += (as_input(item) for item in orjson.loads(turn.response).get("output") or [])
    return items


def input_items(response: StoredResponse) -> list[dict[str, Any]]:
    """The items of the request itself, each with an id and its type."""
    suffix = response.id.removeprefix("resp_")
    return [
        {"id": f"msg_{suffix}_in{at}", "type": "message", **_parts(item)}
        for at, item in enumerate(orjson.loads(response.input))
    ]


def as_input(item: dict[str, Any]) -> dict[str, Any]:
    """An item of an output as the input of a later request."""
    return {name: value for name, value in item.items() if name not in _OUTPUT_ONLY}


def _parts(item: dict[str, Any]) -> dict[str, Any]:
    """An item whose content is a list of parts; a plain text becomes one part."""
    content = item.get("content")
    if not isinstance(content, str):
        return item
    kind = "output_text" if item.get("role") == "assistant" else "input_text"
    return item | {"content": [{"type": kind, "text": content}]}

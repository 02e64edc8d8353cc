"""The items of a conversation, as a request sends them and as a caller reads them."""

from __future__ import annotations

from typing import Any

import orjson

from fairlead.gateway.responses.table import Kept

_TOLD = frozenset({"status", "logprobs", "annotations"})


def context(turns: list[Kept]) -> list[dict[str, Any]]:
    """What was said on both sides, in order, as the input of the next request."""
    items: list[dict[str, Any]] = []
    for kept in turns:
        items += orjson.loads(kept.input)
        items += (_said(item) for item in orjson.loads(kept.response).get("output") or [])
    return items


def input_items(kept: Kept) -> list[dict[str, Any]]:
    """What the request itself said, each item with an id and its type."""
    suffix = kept.id.removeprefix("resp_")
    return [
        {"id": f"msg_{suffix}_in{at}", "type": "message", **_parts(item)}
        for at, item in enumerate(orjson.loads(kept.input))
    ]


def _said(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in _TOLD}


def _parts(item: dict[str, Any]) -> dict[str, Any]:
    """A text as the list of parts that it stands for."""
    content = item.get("content")
    if not isinstance(content, str):
        return item
    kind = "output_text" if item.get("role") == "assistant" else "input_text"
    return item | {"content": [{"type": kind, "text": content}]}

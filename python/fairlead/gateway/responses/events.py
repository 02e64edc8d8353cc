"""The server-sent events of a response, numbered from 0, also for one that was not streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

Event = dict[str, Any]

# Event names and text member of each kind of part.
_PARTS = {
    "output_text": ("response.output_text", "text"),
    "refusal": ("response.refusal", "refusal"),
}
# Event names and text member of each kind of call that has pieces.
_CALLS = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
}
_ENDS = frozenset({"completed", "incomplete", "failed", "cancelled"})


def frame(event: Event) -> bytes:
    """The bytes of an event in a stream."""
    return frame_of(str(event["type"]), orjson.dumps(event))


def frame_of(kind: str, text: bytes) -> bytes:
    """The bytes of an event that is serialised already."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), text)


def stored_events(response: str, events: str | None) -> list[Event]:
    """The events of a stored response, from their JSON where they are stored, or as it would have been streamed."""
    found: list[Event] = orjson.loads(events) if events else events_of_whole(orjson.loads(response))
    return found


def events_of_whole(response: Event) -> list[Event]:
    """The events with which a finished response would have been streamed."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    events: list[Event] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for at, item in enumerate(response.get("output") or []):
        events += _item(at, item)
    status = response.get("status")
    end = status if status in _ENDS else "completed"
    events.append({"type": f"response.{end}", "response": response})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _item(at: int, item: Event) -> Iterator[Event]:
    place = {"output_index": at, "item_id": item.get("id", "")}
    call, member = _CALLS.get(item.get("type", ""), ("", ""))
    empty = {
        **item,
        **{name: [] for name in ("content", "summary") if isinstance(item.get(name), list)},
        **({member: ""} if member else {}),
    }
    if "status" in item:
        empty["status"] = "in_progress"
    yield {"type": "response.output_item.added", "output_index": at, "item": empty}
    content = item.get("content") if isinstance(item.get("content"), list) else []
    for number, part in enumerate(content or []):
        inside = {**place, "content_index": number}
        yield {"type": "response.content_part.added", **inside, "part": _emptied(part)}
        yield from _part(inside, part)
        yield {"type": "response.content_part.done", **inside, "part": part}
    summary = item.get("summary") if isinstance(item.get("summary"), list) else []
    for number, part in enumerate(summary or []):
        inside = {**place, "summary_index": number}
        text = part.get("text", "")
        kind = "response.reasoning_summary"
        yield {"type": f"{kind}_part.added", **inside, "part": {**part, "text": ""}}
        yield {"type": f"{kind}_text.delta", **inside, "delta": text}
        yield {"type": f"{kind}_text.done", **inside, "text": text}
        yield {"type": f"{kind}_part.done", **inside, "part": part}
    if member:
        text = item.get(member, "")
        name = {"name": item.get("name")} if member == "arguments" else {}
        yield {"type": f"{call}.delta", **place, "delta": text}
        yield {"type": f"{call}.done", **place, **name, member: text}
    yield {"type": "response.output_item.done", "output_index": at, "item": item}


def _emptied(part: Event) -> Event:
    _, member = _PARTS.get(part.get("type", ""), ("", ""))
    return {**part, member: ""} if member else part


def _part(inside: Event, part: Event) -> Iterator[Event]:
    kind, member = _PARTS.get(part.get("type", ""), ("", ""))
    if not kind:
        return
    logs: Event = {"logprobs": []} if member == "text" else {}
    yield {"type": f"{kind}.delta", **inside, "delta": part.get(member, ""), **logs}
    yield {"type": f"{kind}.done", **inside, member: part.get(member, ""), **logs}

"""The events of a response as the events of Google's interaction.

Each event of a response is translated separately, so that a stream can be resumed after any of them: `event_id` is the
number of the event that it comes from.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Final

import orjson

from fairlead.errors import InvalidRequest
from fairlead.gateway.interactions.view import interaction_view, step_of
from fairlead.gateway.responses.background_response import KEEP_ALIVE, BackgroundResponse
from fairlead.gateway.responses.events import Event, frame_of

DONE: Final = b"event: done\ndata: [DONE]\n\n"
# The member of a step's delta for each kind of text that comes in pieces.
_DELTAS: Final = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.function_call_arguments.delta": "arguments_delta",
    "response.reasoning_summary_text.delta": "thought_summary",
}
_ENDS: Final = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}
)


def number_of(event_id: str | None) -> int:
    """The number of the event that a stream is resumed after; -1 for a stream from its beginning."""
    if event_id is None:
        return -1
    if not event_id.isascii() or not event_id.isdigit() or len(event_id) > 9:
        raise InvalidRequest(
            "last_event_id must be the event_id of an event of this interaction.",
            param="last_event_id",
        )
    return int(event_id)


async def live_frames(job: BackgroundResponse, after: int) -> AsyncIterator[bytes]:
    """The events of a response above this number, as they come."""
    async for found in job.numbered(after):
        if found is None:
            yield KEEP_ALIVE
            continue
        for frame in _frames(orjson.loads(found[1]), job.model):
            yield frame
    yield DONE


def stored_frames(events: Iterable[Event], model: str, after: int) -> bytes:
    """The events of a response that has ended, above this number."""
    frames = [
        frame
        for event in events
        if event["sequence_number"] > after
        for frame in _frames(event, model)
    ]
    return b"".join([*frames, DONE])


def _frames(event: Event, model: str) -> Iterator[bytes]:
    translated = list(_translated(event, model))
    for place, (kind, members) in enumerate(translated, 1):
        shown = {"event_type": kind, **members}
        # A resumed stream has all events of one response event, or none.
        if place == len(translated):
            shown["event_id"] = str(event["sequence_number"])
        yield frame_of(kind, orjson.dumps(shown))


def _translated(event: Event, model: str) -> Iterator[tuple[str, dict[str, Any]]]:
    kind = event["type"]
    index = {"index": event.get("output_index", 0)}
    if kind == "response.created":
        yield "interaction.created", {"interaction": interaction_view(event["response"], model)}
    elif kind == "response.in_progress":
        interaction_id = event["response"]["id"]
        status = {"interaction_id": interaction_id, "status": "in_progress"}
        yield "interaction.status_update", status
    elif kind == "response.output_item.added" and (step := step_of(event["item"])) is not None:
        yield "step.start", {**index, "step": step}
    elif kind in _DELTAS:
        yield "step.delta", {**index, "delta": _delta(_DELTAS[kind], str(event["delta"]))}
    elif kind == "response.output_item.done" and step_of(event["item"]) is not None:
        yield "step.stop", index
    elif kind in _ENDS:
        interaction = interaction_view(event["response"], model)
        for error in interaction.get("errors", [])[:1]:
            yield "error", {"error": error}
        yield "interaction.completed", {"interaction": interaction}


def _delta(kind: str, text: str) -> dict[str, Any]:
    if kind == "thought_summary":
        return {"type": kind, "content": {"type": "text", "text": text}}
    return {"type": kind, "arguments" if kind == "arguments_delta" else "text": text}

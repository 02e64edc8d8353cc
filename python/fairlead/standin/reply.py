"""Robyn's responses: JSON in one piece, or a stream, with the status and headers that the knobs ask for."""

import asyncio
from typing import Any, Final

import orjson

from fairlead.standin.failure import InvalidRequest
from fairlead.standin.framework import Headers, Response, StreamingResponse
from fairlead.standin.knobs import Knobs
from fairlead.standin.stream import STALL_S, Frames, paced

Reply = Response | StreamingResponse

DEFAULT_KNOBS: Final = Knobs()


def json_reply(payload: dict[str, Any], knobs: Knobs = DEFAULT_KNOBS) -> Reply:
    """A JSON body, cut in the middle where the knobs ask for a malformed one."""
    text = orjson.dumps(payload)
    headers = {"content-type": knobs.content_type or "application/json"}
    if knobs.retry_after is not None:
        headers["retry-after"] = str(knobs.retry_after)
    return Response(
        status_code=knobs.status,
        headers=Headers(headers),
        description=text[: len(text) // 2] if knobs.malformed else text,
    )


async def unary_reply(payload: dict[str, Any], knobs: Knobs) -> Reply:
    """An answer in one piece. Raises `InvalidRequest` for a knob that only a stream can obey."""
    for name in ("cut_after", "error_after"):
        if getattr(knobs, name) is not None:
            raise InvalidRequest(f"the knob '{name}' needs \"stream\": true.", "stream")
    if knobs.stall_after is not None:
        await asyncio.sleep(STALL_S)
    return json_reply(payload, knobs)


def stream_reply(frames: Frames, knobs: Knobs) -> Reply:
    """An answer that leaves frame by frame, as server-sent events unless the knobs name another type."""
    media_type = knobs.content_type or "text/event-stream"
    headers = Headers({"content-type": media_type})
    return StreamingResponse(paced(frames, knobs), knobs.status, headers, media_type)

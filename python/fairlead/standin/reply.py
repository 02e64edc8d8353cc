"""Robyn's responses: JSON in one piece, or a stream, with the status and headers that the directives ask for."""

import asyncio
from typing import Any, Final

import orjson

from fairlead.standin.directives import Directives
from fairlead.standin.failure import InvalidRequest
from fairlead.standin.framework import Headers, Response, StreamingResponse
from fairlead.standin.stream import STALL_S, Frames, paced

Reply = Response | StreamingResponse

DEFAULT_DIRECTIVES: Final = Directives()


def json_reply(payload: dict[str, Any], directives: Directives = DEFAULT_DIRECTIVES) -> Reply:
    """A JSON body, cut in the middle where the directives ask for a malformed one."""
    text = orjson.dumps(payload)
    headers = {"content-type": directives.content_type or "application/json"}
    if directives.retry_after is not None:
        headers["retry-after"] = str(directives.retry_after)
    return Response(
        status_code=directives.status,
        headers=Headers(headers),
        description=text[: len(text) // 2] if directives.malformed else text,
    )


async def unary_reply(payload: dict[str, Any], directives: Directives) -> Reply:
    """An answer in one piece. Raises `InvalidRequest` for a directive that only a stream can obey."""
    for name in ("cut_after", "error_after"):
        if getattr(directives, name) is not None:
            raise InvalidRequest(f"the directive '{name}' needs \"stream\": true.", "stream")
    if directives.stall_after is not None:
        await asyncio.sleep(STALL_S)
    return json_reply(payload, directives)


def stream_reply(frames: Frames, directives: Directives) -> Reply:
    """An answer that leaves frame by frame, as server-sent events unless the directives name another type."""
    media_type = directives.content_type or "text/event-stream"
    headers = Headers({"content-type": media_type})
    return StreamingResponse(paced(frames, directives), directives.status, headers, media_type)

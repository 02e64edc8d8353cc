"""A file's content as an answer: from this machine, or read through from a store that is elsewhere.

No address of that store leaves the gateway.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from starlette.responses import Response, StreamingResponse

from fairlead.errors import NotFound
from fairlead.gateway.files.contents import Contents
from fairlead.process.file_answer import FileAnswer

_RANGE: Final = re.compile(r"bytes=(?P<first>[0-9]{0,18})-(?P<last>[0-9]{0,18})", re.IGNORECASE)


async def content_answer(
    contents: Contents, file_id: str, headers: Mapping[str, str], asked_range: str | None
) -> Response:
    """The content, or the requested part of it. Raises `NotFound`."""
    # It is a caller's upload, so browsers must not show it as a page.
    kind = "application/octet-stream"
    size = await contents.size(file_id)
    if size is None:
        raise NotFound(f"The content of {file_id} is not there.", param="id")
    if (path := contents.path(file_id)) is not None:
        return FileAnswer(path, headers=headers, media_type=kind)
    own = {**headers, "accept-ranges": "bytes"}
    part = part_of(asked_range, size)
    if part is None:
        chunks = contents.read(file_id)
        own["content-length"] = str(size)
        return StreamingResponse(chunks, headers=own, media_type=kind)
    first, last = part
    if first > last:
        return Response(status_code=416, headers={**own, "content-range": f"bytes */{size}"})
    own |= {
        "content-length": str(last - first + 1),
        "content-range": f"bytes {first}-{last}/{size}",
    }
    return StreamingResponse(contents.read(file_id, first, last), 206, own, kind)


def part_of(asked_range: str | None, size: int) -> tuple[int, int] | None:
    """The first and the last byte that a header requests; None for all of it. The first is after the last if the
    range is empty. Several ranges are ignored, which a server may do (RFC 9110, 14.2).
    """
    found = _RANGE.fullmatch(asked_range or "")
    if found is None or not (found["first"] or found["last"]):
        return None
    if not found["first"]:
        last_bytes = int(found["last"])
        return (max(0, size - last_bytes), size - 1) if last_bytes else (size, size - 1)
    first, last = int(found["first"]), int(found["last"] or size)
    if found["last"] and last < first:
        # No range at all.
        return None
    return (first, min(last, size - 1)) if first < size else (size, size - 1)

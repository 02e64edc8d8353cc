"""File responses that this process reads itself.

A server that is handed a path (`http.response.pathsend` of ASGI) may open it after the application has
returned. A temporary file that is removed with its response is gone by then, and the caller gets 404.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final

from starlette.responses import FileResponse
from starlette.types import Receive, Scope, Send

_BY_PATH = "http.response.pathsend"
_RANGE: Final = re.compile(r"\s*(?P<first>[0-9]{0,18})-(?P<last>[0-9]{0,18})\s*", re.ASCII)


class FileAnswer(FileResponse):
    """A `FileResponse` that never hands its path to the server. Its background task runs however the answer ends:
    whole, in part, refused, or broken off by the caller. A `Range` that is none is ignored (RFC 9110, 14.2).
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        extensions = {
            name: value for name, value in scope.get("extensions", {}).items() if name != _BY_PATH
        }
        headers = [
            (name, value)
            for name, value in scope["headers"]
            if name != b"range" or is_range(value.decode("latin-1"))
        ]
        background, self.background = self.background, None
        try:
            await super().__call__(
                {**scope, "headers": headers, "extensions": extensions}, receive, send
            )
        finally:
            if background is not None:
                # In a separate task, which continues if this one is cancelled.
                await asyncio.shield(background())


def is_range(text: str) -> bool:
    """Whether a header's value is a range of bytes, or several."""
    unit, _, ranges = text.partition("=")
    found = [_RANGE.fullmatch(each) for each in ranges.split(",")]
    return unit.strip().lower() == "bytes" and all(
        each is not None
        and (each["first"] or each["last"])
        and int(each["first"] or 0) <= int(each["last"] or 10**18)
        for each in found
    )

"""File responses that this process reads itself.

A server that is handed a path (`http.response.pathsend` of ASGI) may open it after the application has
returned. A temporary file that is removed with its response is gone by then, and the caller gets 404.
"""

from __future__ import annotations

from starlette.responses import FileResponse
from starlette.types import Receive, Scope, Send

_BY_PATH = "http.response.pathsend"


class FileAnswer(FileResponse):
    """A `FileResponse` that never hands its path to the server."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        extensions = {
            name: value for name, value in scope.get("extensions", {}).items() if name != _BY_PATH
        }
        await super().__call__({**scope, "extensions": extensions}, receive, send)

"""A file as an answer, read by this process.

A server that is handed a path instead (`http.response.pathsend` of ASGI) opens it when it comes to
that, which may be after the application has ended: a file that lasts as long as its answer is gone
by then, and the caller is told 404.
"""

from __future__ import annotations

from starlette.responses import FileResponse
from starlette.types import Receive, Scope, Send

_BY_PATH = "http.response.pathsend"


class FileAnswer(FileResponse):
    """A `FileResponse` that never leaves its file to the server."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        extensions = {
            name: value for name, value in scope.get("extensions", {}).items() if name != _BY_PATH
        }
        await super().__call__({**scope, "extensions": extensions}, receive, send)

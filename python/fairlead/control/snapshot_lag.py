"""The header of answers to changes that were not in force everywhere within a second.

`X-Gateway-Snapshot: pending` says that the change is stored, and that a relay (or another node) had not yet said that
it has applied it. It is sent to a caller that must know, such as one that revokes a key.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER: Final = "x-gateway-snapshot"
PENDING: Final = "pending"

# Set for each request: whether a change of it is not in force yet.
_lag: ContextVar[list[bool] | None] = ContextVar("snapshot_lag", default=None)


def note_lag() -> None:
    """Notes it for the answer to the current request, if there is one."""
    noted = _lag.get()
    if noted is not None and not noted:
        noted.append(True)


class SnapshotLag:
    """The middleware that adds the header."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        noted: list[bool] = []
        token = _lag.set(noted)

        async def send_with_header(message: Message) -> None:
            if noted and message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = PENDING
            await send(message)

        try:
            await self._app(scope, receive, send_with_header)
        finally:
            _lag.reset(token)

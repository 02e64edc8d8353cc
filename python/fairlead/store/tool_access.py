"""What identity offers to the room that serves tools: who a tool client acts for, or the refusal in
the words of the standards.

Control brings the two together (`services.tool_access`). The doors are of the tier `delegated`: the relay
resolves no credential there and hands `Authorization` on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request

from fairlead.caller import Caller


@dataclass(frozen=True, slots=True)
class ToolUser:
    """The person on whose behalf a tool client or a page acts.

    `manages` says that the person may manage the gateway. `client_id` is the tool client's, None
    for a session's cookie; `grant_id` the approval that its token came from.
    """

    user_id: str
    email: str
    name: str
    manages: bool
    client_id: str | None = None
    grant_id: str | None = None
    expires_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ToolRefusal:
    """An answer with an empty body: 401 with the challenge of RFC 9728 and RFC 6750 in `headers`, or
    503 where nothing trustworthy says under which address the gateway is reached.
    """

    status: int
    headers: Mapping[str, str]


class ToolAccess(Protocol):
    """Asked once for each request; answers from memory."""

    def origin(self, request: Request, caller: Caller) -> str | None:
        """The gateway's own origin, `scheme://host[:port]`, as people reach it; None when nothing
        trustworthy says it. The canonical resource is this with `/mcp/rpc` behind it.
        """

    async def resolve(self, request: Request, caller: Caller) -> ToolUser | ToolRefusal:
        """Who the access token in `Authorization` acts for at the canonical resource. Without one
        (no `Authorization` at all) the challenge has no `error`; any other failure is
        `invalid_token`. A cookie or a token in the query never counts.
        """

    async def signed_in(self, request: Request) -> ToolUser | None:
        """Whose session the cookie is. Whoever asks also holds the request to its origin."""

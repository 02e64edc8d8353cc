"""Authentication of MCP clients: the person that a client acts for, or the refusal in the form of the
standards.

Identity implements `ToolAccess`, control wires it in (`services.tool_access`). The tool routes have the tier
`delegated`: the relay resolves no credential there and passes `Authorization` on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request

from fairlead.calls.caller import Caller


@dataclass(frozen=True, slots=True)
class ToolUser:
    """The person on whose behalf an MCP client or a page acts.

    `manages` says whether the person may manage the gateway. `client_id` is None for a session cookie;
    `grant_id` is the approval that the token came from.
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
    """A response with an empty body: 401 with the challenge of RFC 9728 and RFC 6750 in `headers`, or 503 when
    the gateway's own address is unknown.
    """

    status: int
    headers: Mapping[str, str]


class ToolAccess(Protocol):
    """Resolves the user of each request, from memory."""

    def origin(self, request: Request, caller: Caller) -> str | None:
        """The gateway's public origin, `scheme://host[:port]`, or None when no trustworthy source names it.

        The canonical resource is this origin followed by `/mcp/rpc`.
        """

    async def resolve(self, request: Request, caller: Caller) -> ToolUser | ToolRefusal:
        """The user of the access token in `Authorization` at the canonical resource.

        Without an `Authorization` header the challenge has no `error`; any other failure is `invalid_token`.
        Cookies and tokens in the query are ignored.
        """

    async def signed_in(self, request: Request) -> ToolUser | None:
        """The user of the session cookie. The caller must check the request's origin as well."""

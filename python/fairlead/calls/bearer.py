"""Bearer tokens of agents' callers: the introspected token, and the interface that admits a request.

`identity/introspection` implements `Bearers`; control wires it into `Services.bearers`, where other packages find
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from starlette.requests import Request

Reason = Literal["missing", "invalid", "expired", "unavailable", "closed"]


@dataclass(frozen=True, slots=True)
class Bearer:
    """An active token (RFC 7662 section 2.2). `document` is the issuer's whole introspection response."""

    client_id: str
    sub: str
    scopes: frozenset[str]
    expires_at_s: int
    issued_at_s: int | None
    audience: tuple[str, ...]
    token_type: str
    document: dict[str, Any]


class BearerRefused(Exception):
    """Raised when a request has no active token.

    `reason` is `missing`, `invalid` (unknown, revoked, malformed), `expired`, `unavailable` (the issuer could
    not be asked) or `closed` (introspection is off, and the caller is not exempt from it).
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Bearers(Protocol):
    """Checks the `Authorization` header of requests to agents."""

    async def admit(self, request: Request) -> Bearer | None:
        """The caller's token, also stored in `request.state.bearer`; None while no token is required. Raises
        `BearerRefused`.
        """

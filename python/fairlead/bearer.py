"""Who an agent's caller is: what introspection says of a bearer token, and how a room asks for it.

Identity answers (`identity/introspection`), control brings the two together, and whoever protects
something asks through `Services.bearers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from starlette.requests import Request

Reason = Literal["missing", "invalid", "expired", "unavailable", "closed"]


@dataclass(frozen=True, slots=True)
class Bearer:
    """An active token (RFC 7662 section 2.2). `document` is all that the issuer said."""

    client_id: str
    sub: str
    scopes: frozenset[str]
    expires_at_s: int
    issued_at_s: int | None
    audience: tuple[str, ...]
    token_type: str
    document: dict[str, Any]


class BearerRefused(Exception):
    """No request without an active token: `missing`, `invalid` (unknown, revoked, malformed),
    `expired`, `unavailable` when nobody could say, or `closed` while no tokens are asked for and the
    caller is not one that needs none.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Bearers(Protocol):
    """Judges the `Authorization` of a request to an agent."""

    async def admit(self, request: Request) -> Bearer | None:
        """Who calls, put into `request.state.bearer` as well; None while nobody is asked.
        `BearerRefused`.
        """

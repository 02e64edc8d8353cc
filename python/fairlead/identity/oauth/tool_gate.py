"""Identity's implementation of `fairlead.store.tool_access`: people from tokens and sessions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.requests import Request

from fairlead import _core
from fairlead.calls.caller import Caller
from fairlead.identity.oauth.issuer import Issuer
from fairlead.identity.oauth.ledger import Ledger
from fairlead.identity.sessions import COOKIE, find_session
from fairlead.identity.users import MANAGING_ROLES, User
from fairlead.moment import now_ms
from fairlead.settings import ServeFields
from fairlead.store.state import State
from fairlead.store.tool_access import ToolRefusal, ToolUser

_BEARER = re.compile(r"Bearer +([A-Za-z0-9._~+/-]+=*) *", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ToolGate:
    """`fairlead.store.tool_access.ToolAccess`, over the ledger."""

    config: ServeFields
    state: State
    ledger: Ledger

    def origin(self, request: Request, caller: Caller) -> str | None:
        """The gateway's origin for a request, for `ToolAccess`."""
        issuer = Issuer.of(request, caller, self.config)
        return None if issuer is None else issuer.origin

    async def resolve(self, request: Request, caller: Caller) -> ToolUser | ToolRefusal:
        """The person and grant behind a token, for `ToolAccess`."""
        issuer = Issuer.of(request, caller, self.config)
        if issuer is None:
            return ToolRefusal(503, {"retry-after": "60"})
        shown = request.headers.getlist("authorization")
        if not shown:
            return _refusal(issuer, None)
        found = _BEARER.fullmatch(shown[0])
        if len(shown) > 1 or found is None:
            return _refusal(issuer, "invalid_token")
        granted = await self.ledger.granted(found[1], issuer.resource)
        user = None if granted is None else await self.ledger.people.find(granted[0].user_id)
        if granted is None or user is None:
            return _refusal(issuer, "invalid_token")
        grant, token = granted
        return _tool_user(user, grant.client_id, grant.id, token.expires_at_ms)

    async def signed_in(self, request: Request) -> ToolUser | None:
        """The signed-in person of a request, for `ToolAccess`."""
        user = await self.person(request)
        return None if user is None else _tool_user(user)

    async def person(self, request: Request) -> User | None:
        """The user of the session cookie."""
        cookie = request.cookies.get(COOKIE)
        if not cookie:
            return None
        digest = _core.hash_secret(cookie)
        session = await self.state.read(lambda con: find_session(con, digest, now_ms()))
        return None if session is None else await self.ledger.people.find(session.user_id)


def _refusal(issuer: Issuer, error: str | None) -> ToolRefusal:
    return ToolRefusal(401, {"www-authenticate": issuer.challenge(error)})


def _tool_user(
    user: User,
    client_id: str | None = None,
    grant_id: str | None = None,
    expires_at_ms: int | None = None,
) -> ToolUser:
    manages = user.role in MANAGING_ROLES
    return ToolUser(user.id, user.email, user.name, manages, client_id, grant_id, expires_at_ms)

"""What stands before agents: a bearer header, read strictly, and its introspection."""

from __future__ import annotations

import re
import time
from typing import Final, Protocol

from fairlead.bearer import Bearer, BearerRefused
from fairlead.identity.introspection.answer import read_answer
from fairlead.identity.introspection.remote import RemoteIntrospection
from fairlead.identity.issuer.issuer import Issuer
from fairlead.settings import ServeFields

TOKEN_MAX_CHARS: Final = 4096
# RFC 6750 section 2.1.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")


class Introspection(Protocol):
    """Who says what a token is."""

    async def introspect(self, text: str) -> Bearer:
        """The active token with this text. `BearerRefused`."""

    async def close(self) -> None:
        """Lets go of what it holds."""


class OwnIntrospection:
    """The issuer of this process: a look into its memory, so an end is seen at once."""

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer

    async def introspect(self, text: str) -> Bearer:
        return read_answer(self._issuer.introspect(text) or {"active": False}, time.time())

    async def close(self) -> None:
        """Nothing: the issuer is closed by who opened it."""


class BearerMiddleware:
    """`fairlead.bearer.Bearers` over an introspection."""

    def __init__(self, introspection: Introspection) -> None:
        self._introspection = introspection

    async def admit(self, authorization: str | None) -> Bearer:
        """Exactly two parts, the scheme in any case. A token in a query or a cookie is none."""
        if not authorization:
            raise BearerRefused("missing", "Authentication required: send a bearer access token.")
        parts = authorization.split()
        if len(parts) != 2 or parts[0].lower() != "bearer":
            raise BearerRefused("missing", "Authorization must be `Bearer <access token>`.")
        text = parts[1]
        if len(text) > TOKEN_MAX_CHARS or _TOKEN.fullmatch(text) is None:
            raise BearerRefused("invalid", "The token is malformed.")
        return await self._introspection.introspect(text)

    async def close(self) -> None:
        """Lets go of what it holds."""
        await self._introspection.close()


def bearer_middleware(settings: ServeFields, issuer: Issuer | None) -> BearerMiddleware | None:
    """What `AUTH__*` and `ISSUER__*` ask for; None while agents need no token. The issuer of this
    process is asked directly unless another admin address is named.
    """
    if not settings.auth_enabled:
        return None
    if issuer is not None and settings.issuer_admin_url is None:
        return BearerMiddleware(OwnIntrospection(issuer))
    if settings.issuer_admin_url is None:
        raise ValueError("AUTH__ENABLED without an issuer")
    token = settings.issuer_admin_token
    return BearerMiddleware(
        RemoteIntrospection(
            settings.issuer_admin_url,
            token=token.get_secret_value() if token else None,
            timeout_s=settings.auth_timeout_ms / 1000,
            cache_s=settings.auth_cache_s,
        )
    )

"""Authentication of calls to agents: the bearer header, read strictly, and its introspection."""

from __future__ import annotations

import re
import time
from typing import Final, Protocol

from starlette.requests import Request

from fairlead.calls.bearer import Bearer, BearerRefused
from fairlead.calls.caller import caller_of
from fairlead.calls.origin import is_for_others, is_on_this_machine, is_own_page
from fairlead.identity.introspection.answer import read_answer
from fairlead.identity.issuer.issuer import Issuer
from fairlead.settings import ServeFields

TOKEN_MAX_CHARS: Final = 4096
# RFC 6750 section 2.1.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")


class Introspection(Protocol):
    """A way to find out what a token is."""

    async def introspect(self, text: str) -> Bearer:
        """The active token with this text. `BearerRefused`."""

    async def close(self) -> None:
        """Closes connections."""


class OwnIntrospection:
    """Introspection by the issuer in this process. It reads memory, so a revocation is seen at
    once.
    """

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer

    async def introspect(self, text: str) -> Bearer:
        return read_answer(self._issuer.introspect(text) or {"active": False}, time.time())

    async def close(self) -> None:
        """Does nothing: whoever opened the issuer closes it."""


class BearerMiddleware:
    """`fairlead.calls.bearer.Bearers` over an introspection."""

    def __init__(self, introspection: Introspection) -> None:
        self._introspection = introspection

    async def admit(self, request: Request) -> Bearer:
        """The result of the introspection is in `request.state.bearer` from then on."""
        bearer = await self._introspection.introspect(read_bearer(request))
        request.state.bearer = bearer
        return bearer

    async def close(self) -> None:
        """Closes the introspection."""
        await self._introspection.close()


class OpenMiddleware:
    """Admission while no tokens are required: agents answer programs and pages of this machine, and
    nobody else unless the operator allows anybody to call.
    """

    def __init__(self, settings: ServeFields) -> None:
        self._settings = settings

    async def admit(self, request: Request) -> None:
        settings, caller = self._settings, caller_of(request)
        if settings.allow_unauthenticated_bind:
            if not is_own_page(request, caller, settings):
                raise BearerRefused(
                    "closed",
                    "Without AUTH__ENABLED, agents answer the gateway's own pages and programs.",
                )
        elif is_for_others(settings):
            raise BearerRefused(
                "closed",
                "Agents are closed: others can reach this gateway, and AUTH__ENABLED is off. "
                "Set AUTH__ENABLED=true.",
            )
        elif not is_on_this_machine(request, caller, settings):
            raise BearerRefused(
                "closed",
                "Without AUTH__ENABLED, agents answer this machine only: its own programs and pages, "
                "called by `localhost` or a loopback address and through no proxy.",
            )
        request.state.bearer = None

    async def close(self) -> None:
        """Does nothing: there is nothing to close."""


def read_bearer(request: Request) -> str:
    """The token of `Authorization: Bearer <token>`: exactly two parts, the scheme in any case.
    Tokens in queries and cookies are not read.
    """
    shown = request.headers.getlist("authorization")
    if not shown:
        raise BearerRefused("missing", "Authentication required: send a bearer access token.")
    parts = shown[0].split()
    if len(shown) != 1 or len(parts) != 2 or parts[0].lower() != "bearer":
        raise BearerRefused("missing", "Authorization must be `Bearer <access token>`, once.")
    if len(parts[1]) > TOKEN_MAX_CHARS or _TOKEN.fullmatch(parts[1]) is None:
        raise BearerRefused("invalid", "The token is malformed.")
    return parts[1]


def bearer_middleware(
    settings: ServeFields, issuer: Issuer | None
) -> BearerMiddleware | OpenMiddleware:
    """The middleware that the settings `AUTH__*` and `ISSUER__*` ask for. The issuer of this
    process is used directly unless another admin address is set.
    """
    if not settings.auth_enabled:
        return OpenMiddleware(settings)
    if issuer is not None and settings.issuer_admin_url is None:
        return BearerMiddleware(OwnIntrospection(issuer))
    if settings.issuer_admin_url is None:
        raise ValueError("AUTH__ENABLED without an issuer")
    # Imported here because it brings an HTTP client.
    from fairlead.identity.introspection.remote import RemoteIntrospection  # noqa: PLC0415

    token = settings.issuer_admin_token
    return BearerMiddleware(
        RemoteIntrospection(
            settings.issuer_admin_url,
            token=token.get_secret_value() if token else None,
            timeout_s=settings.auth_timeout_ms / 1000,
            cache_s=settings.auth_cache_s,
            ca_file=settings.issuer_ca_file,
        )
    )

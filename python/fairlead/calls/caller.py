"""The caller of a request, as the relay resolved it and reported it to control.

Routers take it as a parameter: `caller: CallerDep`. The gate (`control/gate.py`) puts it into the ASGI scope.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from fastapi import Depends
from starlette.requests import HTTPConnection

from fairlead.errors import Forbidden, Internal

PrincipalKind = Literal["anonymous", "key", "token", "session", "local"]
PRINCIPAL_KINDS: tuple[str, ...] = get_args(PrincipalKind)

SCOPE_KEY = "fairlead.calls.caller"

# Scopes of a key that open the management API.
MANAGING_SCOPES = frozenset({"manage", "admin"})


@dataclass(frozen=True, slots=True)
class Principal:
    """The authenticated identity.

    `id` is the id of the key, of the management access token or of the session's user; None for the local
    command line and for anonymous callers. A session has the scope `manage` if its user may manage the gateway.
    """

    kind: PrincipalKind
    id: str | None = None
    scopes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Caller:
    """The origin of one forwarded request.

    `peer` is the address that the relay's socket saw, `scheme` is `http` or `https`, `host` is the caller's
    `Host` header.
    """

    principal: Principal
    peer: str
    request_id: str
    scheme: str
    host: str | None = None


def caller_of(request: HTTPConnection) -> Caller:
    """The caller of a request that passed the gate; `Internal` if it did not pass there."""
    caller = request.scope.get(SCOPE_KEY)
    if not isinstance(caller, Caller):
        raise Internal("The request did not come through the gate.")
    return caller


def refuse_over_managing_keys(principal: Principal, *scopes: Iterable[str]) -> None:
    """Raises `Forbidden` when a key or an access token acts on a key whose scopes may manage.

    Only people and the local command line may create, change, limit or revoke such keys, so that a leaked key
    cannot make others like it.
    """
    is_program = principal.kind in ("key", "token")
    if is_program and any(MANAGING_SCOPES.intersection(each) for each in scopes):
        raise Forbidden(
            "An API key or access token cannot grant the scope `manage` or `admin`, nor change, limit or "
            "revoke a key that has it: sign in, or use the local command line.",
            param="scopes",
        )


def confined_to(principal: Principal, wide_scope: str) -> str | None:
    """The id of a key that has access only through a scope for its own rows, so that it sees only those; None for
    callers who may see every row: people and keys with management rights, and keys with `wide_scope`.
    """
    if principal.kind != "key" or MANAGING_SCOPES.union([wide_scope]) & principal.scopes:
        return None
    return principal.id or ""


def own_key_id(principal: Principal, wide_scope: str, key_id: str | None) -> str | None:
    """The key whose rows are shown: the requested one, None for all. Raises `Forbidden` if the caller is confined
    to its own rows and requests another key.
    """
    own = confined_to(principal, wide_scope)
    if own is None:
        return key_id
    if key_id not in (None, own):
        raise Forbidden(
            f"This key may see its own rows only: leave keyId out, or give it the scope `{wide_scope}`.",
            param="keyId",
        )
    return own


async def _caller(request: HTTPConnection) -> Caller:
    # Async, because FastAPI runs a plain function in a thread.
    return caller_of(request)


CallerDep = Annotated[Caller, Depends(_caller)]

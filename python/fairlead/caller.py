"""Who is calling, as the relay found out and control was told.

Routers take it as a parameter: `caller: CallerDep`. The gate (`control/gate.py`) puts it into the
ASGI scope.
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

SCOPE_KEY = "fairlead.caller"

# Scopes of a key that open the management API.
MANAGING_SCOPES = frozenset({"manage", "admin"})


@dataclass(frozen=True, slots=True)
class Principal:
    """Who acts: a key (`id` is the key's id), a management access token (the token's id), a session
    (the user's id; the scope `manage` if the user may manage the gateway), the local command line,
    or nobody.
    """

    kind: PrincipalKind
    id: str | None = None
    scopes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Caller:
    """One forwarded request's origin.

    `peer` is the address as the relay's socket saw it, `scheme` is `http` or `https` as the caller
    used it, `host` what the caller sent as `Host`.
    """

    principal: Principal
    peer: str
    request_id: str
    scheme: str
    host: str | None = None


def caller_of(request: HTTPConnection) -> Caller:
    """The caller of a request that came through the gate."""
    caller = request.scope.get(SCOPE_KEY)
    if not isinstance(caller, Caller):
        raise Internal("The request did not come through the gate.")
    return caller


def refuse_over_managing_keys(principal: Principal, *scopes: Iterable[str]) -> None:
    """`Forbidden` for a key or an access token, where one of these sets of scopes makes a key that may
    manage. A program that manages neither makes, changes, limits nor removes its like: that takes a
    person, who may have made it.
    """
    is_program = principal.kind in ("key", "token")
    if is_program and any(MANAGING_SCOPES.intersection(each) for each in scopes):
        raise Forbidden(
            "An API key or access token cannot grant the scope `manage` or `admin`, nor change, limit or "
            "revoke a key that has it: sign in, or use the local command line.",
            param="scopes",
        )


async def _caller(request: HTTPConnection) -> Caller:
    # FastAPI hands a plain function to a thread.
    return caller_of(request)


CallerDep = Annotated[Caller, Depends(_caller)]

"""Who is calling, as the relay found out and control was told.

Routers take it as a parameter: `caller: CallerDep`. The gate (`control/gate.py`) puts it into the
ASGI scope.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from fastapi import Depends
from starlette.requests import HTTPConnection

from fairlead.errors import Internal

PrincipalKind = Literal["anonymous", "key", "token", "session", "local"]
PRINCIPAL_KINDS: tuple[str, ...] = get_args(PrincipalKind)

SCOPE_KEY = "fairlead.caller"


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


async def _caller(request: HTTPConnection) -> Caller:
    # FastAPI hands a plain function to a thread.
    return caller_of(request)


CallerDep = Annotated[Caller, Depends(_caller)]

"""`POST /v1/session-leases`: a connection for one session alone."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Final

import structlog
from fastapi import APIRouter, Header

from fairlead.calls.caller import MANAGING_SCOPES, CallerDep
from fairlead.errors import Forbidden, InvalidRequest, LeaseUnavailable, ModelNotFound, NoRoute
from fairlead.gateway.owner import OwnerDep
from fairlead.gateway.session_leases import table
from fairlead.gateway.session_leases.fields import RENEW_AFTER_S, TTL_S, LeaseRequest, LeaseView
from fairlead.gateway.session_leases.table import Owner, StoredLease
from fairlead.moment import moment_of, now_ms
from fairlead.store.services import Services, ServicesDep

SCOPE: Final = "lease:exclusive"
OWNER_HEADER: Final = "x-gateway-lease-owner"
_REFUSALS: Final = {"forbidden": Forbidden, "model_not_found": ModelNotFound}

router = APIRouter(prefix="/v1/session-leases", tags=["chat"])
log = structlog.get_logger("fairlead.gateway")


@router.post("", summary="Have a connection for one session alone")
async def lease(
    body: LeaseRequest,
    services: ServicesDep,
    caller: CallerDep,
    key_id: OwnerDep,
    owner_name: Annotated[str | None, Header(alias=OWNER_HEADER)] = None,
) -> LeaseView:
    """For a key with the scope `lease:exclusive`. A lease lasts 120 seconds and should be renewed
    every 30; meanwhile no other caller's requests go over the connection.
    """
    if not caller.principal.scopes & {SCOPE, *MANAGING_SCOPES}:
        raise Forbidden(
            f"This key may not lease connections: give it the scope `{SCOPE}`.", param="scopes"
        )
    if owner_name is None:
        raise InvalidRequest(
            "X-Gateway-Lease-Owner is missing: make up `vlo_` and 43 characters of base64url, and keep "
            "them secret.",
            param=OWNER_HEADER,
        )
    # The relay has held the name to its form.
    owner = Owner(key_id, hashlib.sha256(owner_name.encode()).hexdigest())
    if body.action == "status":
        at_ms = now_ms()
        found = await services.state.read(lambda con: table.find_lease(con, owner, at_ms))
        return LeaseView.model_construct(state="NONE") if found is None else _active(found)
    if body.action == "acquire":
        return _active(await _acquire(services, owner, body))
    return await _renew_or_release(services, owner, body)


async def _acquire(services: Services, owner: Owner, body: LeaseRequest) -> StoredLease:
    if body.model is None:
        raise InvalidRequest(
            "model is missing: name what the connection is to serve.", param="model"
        )
    model = body.model
    args = {"model": model, "key_id": owner.key_id}
    replies: list[dict[str, Any]] = await services.command("leases.candidates", args)
    first = replies[0]
    if "fault" in first:
        _refuse(first)
    at_ms = now_ms()
    found = await services.state.commit(
        lambda con: table.acquire(con, owner, model, first["connections"], at_ms)
    )
    _log("session lease acquired", found, body.reason)
    return found


def _refuse(reply: dict[str, Any]) -> None:
    """Raises the error by which the relay refuses the model."""
    wait_s = reply.get("retry_after_s")
    if reply.get("kind") == "no_route":
        raise NoRoute(reply["fault"], retry_after_s=wait_s)
    if wait_s is not None:
        extra = {"state": "WAITING_FOR_CAPACITY", "retryAfter": wait_s}
        raise LeaseUnavailable(reply["fault"], retry_after_s=wait_s, extra=extra)
    refusal = _REFUSALS.get(reply.get("kind", ""), InvalidRequest)
    raise refusal(reply["fault"], param=reply.get("param"))


async def _renew_or_release(services: Services, owner: Owner, body: LeaseRequest) -> LeaseView:
    generation, at_ms = body.generation, now_ms()
    if generation is None:
        raise InvalidRequest(
            "generation is missing: send the one that `acquire` told.", param="generation"
        )
    if body.action == "renew":
        found = await services.state.commit(lambda con: table.renew(con, owner, generation, at_ms))
        return _active(found)
    found = await services.state.commit(lambda con: table.release(con, owner, generation, at_ms))
    _log("session lease released", found, body.reason)
    return LeaseView.model_construct(state="RELEASED", generation=generation, model=found.model)


def _active(lease: StoredLease) -> LeaseView:
    return LeaseView.model_construct(
        state="ACTIVE",
        generation=lease.generation,
        model=lease.model,
        expires_at=moment_of(lease.expires_at_ms),
        ttl_seconds=TTL_S,
        renew_after_seconds=RENEW_AFTER_S,
    )


def _log(event: str, lease: StoredLease, reason: str | None) -> None:
    log.info(
        event,
        connection_id=lease.connection_id,
        key_id=lease.key_id,
        generation=lease.generation,
        reason=reason,
    )

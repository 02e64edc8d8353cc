"""`/oauth/token` and `/oauth/revoke`, for programs of clients (RFC 6749, RFC 7009)."""

from __future__ import annotations

import re
import time
from typing import Any

from fastapi import APIRouter, Request, Response

from fairlead.calls.caller import caller_of
from fairlead.identity.oauth.device_codes import (
    CLIENT_ID,
    GRANT_TYPE,
    TOKEN_LIFETIME_S,
    find_by_device_code,
    take_token,
)
from fairlead.identity.oauth.fault import OAuthFault, json_answer
from fairlead.identity.oauth.issuer import Issuer
from fairlead.identity.oauth.ledger import IssuedTokens
from fairlead.identity.oauth.metadata_router import no_issuer
from fairlead.identity.oauth.parameters import Parameters, is_form, read_form
from fairlead.identity.oauth.records import ACCESS_LIFETIME_MS
from fairlead.identity.oauth.registration_router import spend
from fairlead.identity.oauth.service import OAuthDep, OAuthService, oauth_service
from fairlead.moment import now_ms
from fairlead.store.services import services_of

router = APIRouter(tags=["oauth"])

VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")

_TOKEN = frozenset(
    {
        "grant_type",
        "code",
        "redirect_uri",
        "client_id",
        "client_secret",
        "code_verifier",
        "refresh_token",
        "device_code",
        "resource",
        "scope",
    }
)
_REVOKE = frozenset({"token", "token_type_hint", "client_id"})
_NOT_A_FORM = "Content-Type must be application/x-www-form-urlencoded"


@router.post("/oauth/token", summary="Exchange a code, or refresh")
async def token(request: Request) -> Response:
    """`access_token`, `token_type`, `expires_in`, and `refresh_token` if there is a new one."""
    # Read directly: the framework's injection would cost as much as the remaining work of the request.
    oauth = oauth_service(services_of(request))
    try:
        if not is_form(request):
            raise OAuthFault("invalid_request", _NOT_A_FORM)
        spend(oauth, request, "token_requests")
        form = await read_form(request, _TOKEN, once=_TOKEN - {"resource"})
        if form.get("grant_type") == GRANT_TYPE:
            return json_answer(await _device_token(form, oauth))
        issued = await _token(form, oauth.issuer(request, caller_of(request)), oauth)
    except OAuthFault as fault:
        return fault.answer()
    body = {
        "access_token": issued.access_token,
        "token_type": "Bearer",
        "expires_in": ACCESS_LIFETIME_MS // 1000,
    }
    if issued.refresh_token is not None:
        body["refresh_token"] = issued.refresh_token
    return json_answer(body)


async def _device_token(form: Parameters, oauth: OAuthService) -> dict[str, Any]:
    """The answer to a program that waits for a person (RFC 8628, 3.4): no token of a tool client, but one that
    manages.
    """
    if _needed(form, "client_id") != CLIENT_ID:
        raise OAuthFault("invalid_client", f"client_id must be {CLIENT_ID}", status=401)
    device, at_ms = _needed(form, "device_code"), now_ms()
    state = oauth.services.state
    row = await state.read(lambda con: find_by_device_code(con, device))
    if row is None:
        raise OAuthFault("invalid_grant", "the device_code is unknown or used")
    if row.expires_at_ms <= at_ms:
        raise OAuthFault("expired_token", "nobody approved in time: start again")
    if row.is_approved is None:
        if oauth.poll_pace.is_early(row.hash, time.monotonic()):
            raise OAuthFault("slow_down", "wait five seconds longer between two requests")
        raise OAuthFault("authorization_pending", "nobody has approved yet")
    text = None
    if row.is_approved:
        text = await state.commit(lambda con: take_token(con, row, at_ms))
    if text is None:
        raise OAuthFault("access_denied", "the sign-in was denied")
    return {
        "access_token": text,
        "token_type": "Bearer",
        "expires_in": TOKEN_LIFETIME_S,
        "scope": row.scope,
    }


async def _token(form: Parameters, issuer: Issuer | None, oauth: OAuthService) -> IssuedTokens:
    grant_type = _needed(form, "grant_type")
    if grant_type == "authorization_code":
        names: tuple[str, ...] = ("code", "client_id", "redirect_uri", "code_verifier")
    elif grant_type == "refresh_token":
        names = ("refresh_token", "client_id")
    else:
        raise OAuthFault(
            "unsupported_grant_type",
            f"grant_type must be authorization_code, refresh_token or {GRANT_TYPE}",
        )
    values = [_needed(form, name) for name in names]
    if issuer is None:
        raise no_issuer()
    resource = the_resource(form, issuer)
    if grant_type == "refresh_token":
        issued = await oauth.ledger.refresh(values[0], values[1], resource)
        if issued is None:
            raise OAuthFault("invalid_grant", "the refresh token is not valid, or no longer")
        return issued
    code, client_id, redirect_uri, verifier = values
    issued = None
    if VERIFIER.fullmatch(verifier):
        issued = await oauth.ledger.exchange(code, client_id, redirect_uri, verifier, resource)
    if issued is None:
        raise OAuthFault(
            "invalid_grant",
            "the code is unknown, expired or used, or is not of this client, redirect_uri, "
            "code_verifier and resource",
        )
    return issued


@router.post("/oauth/revoke", summary="Revoke a token (RFC 7009)")
async def revoke(request: Request, oauth: OAuthDep) -> Response:
    """200 for a token that was known and for one that was not."""
    try:
        if not is_form(request):
            raise OAuthFault("invalid_request", _NOT_A_FORM)
        spend(oauth, request, "revocations")
        form = await read_form(request, _REVOKE, once=_REVOKE)
        await oauth.ledger.revoke(_needed(form, "token"), form.get("client_id"))
    except OAuthFault as fault:
        return fault.answer()
    return json_answer({})


def the_resource(form: Parameters, issuer: Issuer) -> str:
    """The canonical resource, if the request names it, once; else `invalid_target`."""
    named = form.all("resource")
    if len(named) != 1 or not issuer.is_resource(named[0]):
        raise OAuthFault("invalid_target", f"resource must be {issuer.resource}, once")
    return issuer.resource


def _needed(form: Parameters, name: str) -> str:
    value = form.get(name)
    if value is None:
        raise OAuthFault("invalid_request", f"{name} is required")
    return value

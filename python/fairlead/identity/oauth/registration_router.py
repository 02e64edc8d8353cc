"""`/oauth/register`: dynamic registration of public clients (RFC 7591).

One redirect URI for each client, no secret. Members that are not read here are ignored, addresses
among them are never fetched, and the answer says what was registered in their place.
"""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from fairlead.errors import RateLimited
from fairlead.identity.oauth.fault import TOO_MANY, OAuthFault, json_answer
from fairlead.identity.oauth.records import Client
from fairlead.identity.oauth.redirect import redirect_fault
from fairlead.identity.oauth.service import OAuthDep, OAuthService

router = APIRouter(tags=["oauth"])

NAME_MAX_CODE_POINTS = 128


@router.post("/oauth/register", status_code=201, summary="Register a tool client (RFC 7591)")
async def register(request: Request, oauth: OAuthDep) -> Response:
    """201 with the client's id."""
    try:
        name, redirect_uri = await _read(request, oauth)
        client = await oauth.ledger.register(name, redirect_uri)
    except OAuthFault as fault:
        return fault.answer()
    return json_answer(_describe(client), 201)


async def _read(request: Request, oauth: OAuthService) -> tuple[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise _bad_metadata("Content-Type must be application/json")
    spend(oauth, request, "registrations")
    try:
        metadata = orjson.loads(await request.body())
    except ValueError:
        raise _bad_metadata("the body is not JSON") from None
    if not isinstance(metadata, dict):
        raise _bad_metadata("the body is not a JSON object")
    name = metadata.get("client_name", "")
    if not isinstance(name, str):
        raise _bad_metadata("client_name must be text")
    # PostgreSQL has no NUL in texts, and no page shows one.
    name = name.replace("\0", "").strip()
    if len(name) > NAME_MAX_CODE_POINTS:
        raise _bad_metadata(f"client_name is longer than {NAME_MAX_CODE_POINTS} characters")
    return name, _redirect_uri(metadata.get("redirect_uris"))


def _redirect_uri(redirect_uris: Any) -> str:
    if not isinstance(redirect_uris, list) or len(redirect_uris) != 1:
        raise _bad_redirect("exactly one redirect URI can be registered; register once for each")
    [uri] = redirect_uris
    if not isinstance(uri, str) or not uri.strip():
        raise _bad_redirect("the redirect URI is blank")
    if (fault := redirect_fault(uri)) is not None:
        raise _bad_redirect(fault)
    return uri


def _describe(client: Client) -> dict[str, Any]:
    return {
        "client_id": client.id,
        "client_id_issued_at": client.created_at_ms // 1000,
        "client_name": client.name,
        "redirect_uris": [client.redirect_uri],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
    }


def spend(oauth: OAuthService, request: Request, window: str) -> None:
    """Counts a request of this address; `invalid_request` with 429 when it has none left."""
    try:
        getattr(oauth, window).spend(oauth.address(request))
    except RateLimited as limited:
        raise OAuthFault(
            "invalid_request", TOO_MANY, status=429, retry_after_s=limited.retry_after_s
        ) from None


def _bad_metadata(description: str) -> OAuthFault:
    return OAuthFault("invalid_client_metadata", description)


def _bad_redirect(description: str) -> OAuthFault:
    return OAuthFault("invalid_redirect_uri", description)

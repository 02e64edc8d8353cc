"""Discovery: who grants access to the tool endpoint (RFC 9728), and how (RFC 8414)."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from fairlead.calls.caller import CallerDep
from fairlead.identity.oauth.device_codes import GRANT_TYPE
from fairlead.identity.oauth.fault import OAuthFault, json_answer
from fairlead.identity.oauth.issuer import NO_ISSUER, RESOURCE_METADATA, RESOURCE_PATH, Issuer
from fairlead.identity.oauth.service import OAuthDep

router = APIRouter(tags=["oauth"])


@router.get(RESOURCE_METADATA + RESOURCE_PATH, summary="The protected resource (RFC 9728)")
@router.get(RESOURCE_METADATA, summary="The same, for clients that look at the root")
async def protected_resource(request: Request, caller: CallerDep, oauth: OAuthDep) -> Response:
    """The canonical tool endpoint and its authorization server, which is this gateway."""
    issuer = oauth.issuer(request, caller)
    if issuer is None:
        return no_issuer().answer()
    return json_answer({"resource": issuer.resource, "authorization_servers": [issuer.origin]})


@router.get(
    "/.well-known/oauth-authorization-server", summary="The authorization server (RFC 8414)"
)
async def authorization_server(request: Request, caller: CallerDep, oauth: OAuthDep) -> Response:
    """Endpoints and capabilities."""
    issuer = oauth.issuer(request, caller)
    if issuer is None:
        return no_issuer().answer()
    return json_answer(describe(issuer, client_documents=oauth.documents.is_on))


def describe(issuer: Issuer, *, client_documents: bool) -> dict[str, Any]:
    """The metadata document of RFC 8414. Standard defaults that do not apply here (client secrets)
    are stated.
    """
    origin = issuer.origin
    known_by_document = {"client_id_metadata_document_supported": True} if client_documents else {}
    return {
        "issuer": origin,
        "authorization_endpoint": f"{origin}/oauth/authorize",
        "token_endpoint": f"{origin}/oauth/token",
        "registration_endpoint": f"{origin}/oauth/register",
        "device_authorization_endpoint": f"{origin}/oauth/device_authorization",
        "revocation_endpoint": f"{origin}/oauth/revoke",
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token", GRANT_TYPE],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": True,
        **known_by_document,
        "protected_resources": [issuer.resource],
    }


def no_issuer() -> OAuthFault:
    """The answer while the gateway's own address is not known."""
    return OAuthFault("server_error", NO_ISSUER, status=503)

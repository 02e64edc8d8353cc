"""The public listener: tokens, their revocation, and the metadata by which clients find both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from starlette.types import ASGIApp

from fairlead.calls.origin import forwarded_address
from fairlead.identity.issuer.client import AUTH_METHODS, CLIENT_CREDENTIALS, Client, scope_of
from fairlead.identity.issuer.fault import IssuerFault, invalid_request
from fairlead.identity.issuer.guesses import SecretGuesses
from fairlead.identity.issuer.http import (
    IssuerAnswer,
    IssuerRequest,
    application,
    not_found,
    other_method,
)
from fairlead.identity.issuer.issuer import Issuer

_HEALTH: Final = ("/health/alive", "/health/ready")
# There is no OpenID document: nobody signs in here, and there are no keys and no users to describe.
_METADATA: Final = "/.well-known/oauth-authorization-server"


@dataclass(frozen=True, slots=True)
class _PublicEndpoint:
    """The handlers of the public listener, with their counts of wrong secrets."""

    issuer: Issuer
    guesses: SecretGuesses
    trusted_proxies: int


def public_app(
    issuer: Issuer, *, trusted_proxies: int = 0, guesses: SecretGuesses | None = None
) -> ASGIApp:
    """`POST /oauth2/token`, `POST /oauth2/revoke`, metadata (RFC 8414) and health. With trusted proxies
    before it, callers' addresses are what those say.
    """
    endpoint = _PublicEndpoint(issuer, guesses or SecretGuesses(), trusted_proxies)

    async def answer(request: IssuerRequest) -> IssuerAnswer:
        if request.path == "/oauth2/token":
            return await _token(endpoint, _posted(request))
        if request.path == "/oauth2/revoke":
            return await _revoke(endpoint, _posted(request))
        if request.path not in (*_HEALTH, _METADATA):
            raise not_found()
        if request.method != "GET":
            raise other_method("GET")
        if request.path in _HEALTH:
            return IssuerAnswer(200, {"status": "ok"})
        return IssuerAnswer(200, _metadata(issuer.url))

    return application(answer)


async def _token(endpoint: _PublicEndpoint, request: IssuerRequest) -> IssuerAnswer:
    form = request.form()
    grant_type = form.get("grant_type")
    if grant_type is None:
        raise invalid_request("grant_type is required.")
    if grant_type != CLIENT_CREDENTIALS:
        raise IssuerFault(400, "unsupported_grant_type", f"The grant type is {CLIENT_CREDENTIALS}.")
    client = _authenticated(endpoint, request, form)
    try:
        wanted = scope_of(form.get("scope", ""))
    except IssuerFault as fault:
        raise IssuerFault(400, "invalid_scope", fault.description) from None
    audience = tuple(dict.fromkeys(form.get("audience", "").split()))
    text, token = await endpoint.issuer.issue(client, wanted, audience)
    return IssuerAnswer(
        200,
        {
            "access_token": text,
            "expires_in": token.expires_at_s - token.issued_at_s,
            "scope": token.scope,
            "token_type": "bearer",
        },
    )


async def _revoke(endpoint: _PublicEndpoint, request: IssuerRequest) -> IssuerAnswer:
    if request.query:
        raise invalid_request("Parameters come in the body, not in the query.")
    form = request.form()
    client = _authenticated(endpoint, request, form)
    token = form.get("token")
    if token is None:
        raise invalid_request("token is required.")
    await endpoint.issuer.revoke(token, client)
    return IssuerAnswer(200)


def _authenticated(
    endpoint: _PublicEndpoint, request: IssuerRequest, form: dict[str, str]
) -> Client:
    """The client, by its secret in the form or in `Authorization: Basic`, in one of the two."""
    basic = request.basic()
    if basic is None:
        client_id, secret = form.get("client_id"), form.get("client_secret")
        if client_id is None or secret is None:
            raise IssuerFault(401, "invalid_client", "client_id and client_secret are required.")
        return _checked(endpoint, request, client_id, secret, AUTH_METHODS[0])
    if "client_secret" in form or form.get("client_id", basic[0]) != basic[0]:
        raise invalid_request("The client authenticates in two ways at once.")
    try:
        return _checked(endpoint, request, *basic, AUTH_METHODS[1])
    except IssuerFault as fault:
        if fault.status != 401:
            raise
        raise IssuerFault(fault.status, fault.error, fault.description, challenge="Basic") from None


def _checked(
    endpoint: _PublicEndpoint, request: IssuerRequest, client_id: str, secret: str, method: str
) -> Client:
    """The client, unless there were too many wrong secrets. There is no await between the check and
    the count.
    """
    address = forwarded_address(request.forwarded, endpoint.trusted_proxies) or request.peer
    endpoint.guesses.check(client_id, address)
    try:
        return endpoint.issuer.authenticate(client_id, secret, method)
    except IssuerFault:
        endpoint.guesses.count(client_id, address)
        raise


def _posted(request: IssuerRequest) -> IssuerRequest:
    if request.method != "POST":
        raise other_method("POST")
    return request


def _metadata(url: str) -> dict[str, Any]:
    return {
        "issuer": url,
        "token_endpoint": f"{url}/oauth2/token",
        "revocation_endpoint": f"{url}/oauth2/revoke",
        "grant_types_supported": [CLIENT_CREDENTIALS],
        "response_types_supported": ["token"],
        "token_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "revocation_endpoint_auth_methods_supported": list(AUTH_METHODS),
    }

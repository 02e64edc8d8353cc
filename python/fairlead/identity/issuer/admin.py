"""The admin listener: clients, introspection and revocation, as Hydra's admin API has them.

It listens on loopback, and network separation is all that Hydra asks for. A browser on this machine
reaches loopback too, so what a page sent is refused: `Origin`, `Sec-Fetch-Site` and a `Host` that a
stranger's name server could have given to this machine. With `ISSUER__ADMIN_TOKEN` a bearer is asked
for as well.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
from typing import Any, Final
from urllib.parse import quote, unquote

from starlette.types import ASGIApp

from fairlead.identity.issuer.client import LIFESPAN, scope_of
from fairlead.identity.issuer.fault import IssuerFault, invalid_request
from fairlead.identity.issuer.http import (
    IssuerAnswer,
    IssuerRequest,
    application,
    not_found,
    other_method,
)
from fairlead.identity.issuer.issuer import Issuer

PAGE_DEFAULT: Final = 250
PAGE_MAX: Final = 1000

_HEALTH: Final = (
    "/health/alive",
    "/health/ready",
    "/admin/health/alive",
    "/admin/health/ready",
)
_INACTIVE: Final = IssuerAnswer(200, {"active": False})


def admin_app(issuer: Issuer, token: str | None = None) -> ASGIApp:
    """`/admin/clients`, `/admin/oauth2/introspect`, `/admin/oauth2/revoke`, `/admin/oauth2/tokens`
    and health.
    """

    async def answer(request: IssuerRequest) -> IssuerAnswer:
        if request.path in _HEALTH:
            return IssuerAnswer(200, {"status": "ok"})
        _admit(request, token)
        if request.path == "/admin/oauth2/introspect":
            return _introspect(issuer, request)
        if request.path == "/admin/oauth2/revoke":
            return await _revoke(issuer, request)
        if request.path == "/admin/oauth2/tokens":
            return await _revoke_all(issuer, request)
        if request.path == "/admin/clients":
            return await _clients(issuer, request)
        if request.path.startswith("/admin/clients/"):
            return await _client(issuer, request, request.path.removeprefix("/admin/clients/"))
        raise not_found()

    return application(answer)


def _admit(request: IssuerRequest, token: str | None) -> None:
    site = request.headers.get(b"sec-fetch-site", b"none")
    host = request.headers.get(b"host", b"").decode("latin-1")
    if b"origin" in request.headers or site != b"none" or not _is_rebinding_safe(host):
        raise IssuerFault(
            403,
            "access_denied",
            "The admin listener is for programs, called by localhost or an address.",
        )
    shown = request.bearer()
    if token is not None and not hmac.compare_digest((shown or "").encode(), token.encode()):
        raise IssuerFault(
            401,
            "access_denied",
            "Send the bearer that ISSUER__ADMIN_TOKEN names.",
            challenge="Bearer",
        )


def _is_rebinding_safe(host: str) -> bool:
    """Whether a `Host` is `localhost` or any address, loopback or not: a foreign page can point its own name to
    this machine (DNS rebinding), but none of these.
    """
    name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
    if name.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _introspect(issuer: Issuer, request: IssuerRequest) -> IssuerAnswer:
    if request.method != "POST":
        raise other_method("POST")
    form = request.form()
    token = form.get("token")
    if token is None:
        raise invalid_request("token is required.")
    wanted = form.get("scope")
    found = issuer.introspect(token, scope_of(wanted) if wanted else ())
    return _INACTIVE if found is None else IssuerAnswer(200, found)


async def _revoke(issuer: Issuer, request: IssuerRequest) -> IssuerAnswer:
    if request.method != "POST":
        raise other_method("POST")
    token = request.form().get("token")
    if token is None:
        raise invalid_request("token is required.")
    await issuer.revoke(token)
    return IssuerAnswer(200)


async def _revoke_all(issuer: Issuer, request: IssuerRequest) -> IssuerAnswer:
    if request.method != "DELETE":
        raise other_method("DELETE")
    client_id = request.parameters().get("client_id")
    if client_id is None:
        raise invalid_request("client_id is required.")
    await issuer.revoke_all(client_id)
    return IssuerAnswer(204)


async def _clients(issuer: Issuer, request: IssuerRequest) -> IssuerAnswer:
    if request.method == "POST":
        client, secret = await issuer.create(_object(request))
        return IssuerAnswer(201, client.view(secret))
    if request.method != "GET":
        raise other_method("GET", "POST")
    parameters = request.parameters()
    size = _page_size(parameters.get("page_size"))
    after = _page_token(parameters.get("page_token"))
    found = issuer.clients(after, size + 1)
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if len(found) > size:
        token = base64.urlsafe_b64encode(found[size - 1].client_id.encode()).decode()
        link = f'</admin/clients?page_size={size}&page_token={quote(token)}>; rel="next"'
        headers = ((b"link", link.encode()),)
    return IssuerAnswer(200, [client.view() for client in found[:size]], headers)


async def _client(issuer: Issuer, request: IssuerRequest, rest: str) -> IssuerAnswer:
    client_id, slash, part = rest.partition("/")
    client_id = _known(issuer, client_id)
    if slash:
        if part != "lifespans":
            raise not_found()
        if request.method != "PUT":
            raise other_method("PUT")
        value = _object(request).get(LIFESPAN)
        change = [{"op": "replace", "path": f"/{LIFESPAN}", "value": value}]
        return IssuerAnswer(200, (await issuer.patch(client_id, change)).view())
    match request.method:
        case "GET":
            return IssuerAnswer(200, issuer.client(client_id).view())
        case "PUT":
            return IssuerAnswer(200, (await issuer.replace(client_id, _object(request))).view())
        case "PATCH":
            return IssuerAnswer(200, (await issuer.patch(client_id, request.document())).view())
        case "DELETE":
            await issuer.delete(client_id)
            return IssuerAnswer(204)
    raise other_method("GET", "PUT", "PATCH", "DELETE")


def _known(issuer: Issuer, client_id: str) -> str:
    """The id as it is registered: the path may be decoded once less than the caller encoded it."""
    try:
        issuer.client(client_id)
    except IssuerFault:
        return unquote(client_id)
    return client_id


def _object(request: IssuerRequest) -> dict[str, Any]:
    document = request.document()
    if not isinstance(document, dict):
        raise invalid_request("The body must be a JSON object.")
    return document


def _page_size(text: str | None) -> int:
    if text is None:
        return PAGE_DEFAULT
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= PAGE_MAX:
        raise invalid_request(f"page_size must be a number from 1 to {PAGE_MAX}.")
    return int(text[:9])


def _page_token(text: str | None) -> str:
    if text is None:
        return ""
    try:
        return base64.b64decode(text.encode(), altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error, UnicodeError):
        raise invalid_request("page_token must be one that a page's Link named.") from None

"""`/oauth/device_authorization` for the program, and `/oauth/device` for the person who approves it (RFC 8628)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, get_args
from urllib.parse import urlencode

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from fairlead.calls.caller import Caller, CallerDep, Principal
from fairlead.errors import RateLimited
from fairlead.identity.attempt import AttemptDep
from fairlead.identity.oauth.device_codes import (
    CLIENT_ID,
    INTERVAL_S,
    LIFETIME_S,
    TOKEN_LIFETIME_S,
    DeviceCode,
    add_device_code,
    decide,
    find_by_user_code,
    make_codes,
    typed_code,
)
from fairlead.identity.oauth.fault import OAuthFault, json_answer
from fairlead.identity.oauth.login_page import login_page
from fairlead.identity.oauth.metadata_router import no_issuer
from fairlead.identity.oauth.own_page import is_own_page
from fairlead.identity.oauth.pages import page
from fairlead.identity.oauth.parameters import Parameters, Unreadable, is_form, read_form
from fairlead.identity.oauth.registration_router import spend
from fairlead.identity.oauth.service import OAuthDep, OAuthService
from fairlead.identity.tokens import Scope
from fairlead.identity.users import MANAGING_ROLES, User
from fairlead.moment import now_ms
from fairlead.store.audit_log import AuditRecord, insert_entry
from fairlead.store.file import Connection

router = APIRouter(tags=["oauth"])

PATH: Final = "/oauth/device"
NAME_CHARS: Final = 100
_DAY_S: Final = 24 * 3600
_BEGIN_FIELDS: Final = frozenset({"client_id", "scope", "device_name"})
_DECIDED: Final = frozenset({"user_code", "action"})
_USUAL_SCOPE: Final = "write"


@router.post("/oauth/device_authorization", summary="Start a sign-in by device code (RFC 8628)")
async def begin(request: Request, caller: CallerDep, oauth: OAuthDep) -> Response:
    """`device_code`, `user_code`, where a person enters it, and how often to ask for the token."""
    try:
        if not is_form(request):
            raise OAuthFault(
                "invalid_request", "Content-Type must be application/x-www-form-urlencoded"
            )
        spend(oauth, request, "device_codes")
        name, scope = await _device_request(request)
        issuer = oauth.issuer(request, caller)
        if issuer is None:
            raise no_issuer()
        at_ms = now_ms()
        device, shown, row = make_codes(name, scope, oauth.address(request), at_ms)
        await oauth.services.state.record(lambda con: add_device_code(con, row, at_ms))
    except OAuthFault as fault:
        return fault.answer()
    address = issuer.origin + PATH
    return json_answer(
        {
            "device_code": device,
            "user_code": shown,
            "verification_uri": address,
            "verification_uri_complete": f"{address}?{urlencode({'user_code': shown})}",
            "expires_in": LIFETIME_S,
            "interval": INTERVAL_S,
        }
    )


@router.get(PATH, response_class=HTMLResponse, summary="Enter the code that a device shows")
async def ask(attempt: AttemptDep, oauth: OAuthDep) -> Response:
    """The pages for signing in, entering the code and approving it."""
    request = attempt.request
    try:
        typed = Parameters.read(request.scope.get("query_string", b"")).get("user_code")
    except Unreadable as error:
        return _message(400, "Invalid request", f"The request cannot be read: {error}.")
    if not await attempt.is_set_up():
        return page("setup_first.html", 503)
    user = await oauth.gate.person(request)
    if user is None:
        return await login_page(attempt, "the command line", _own_path(typed))
    if user.role not in MANAGING_ROLES:
        return _not_a_manager()
    if typed is None:
        return _entry()
    found, refusal = await _find(request, oauth, typed)
    return refusal if found is None else _consent(found, user, typed)


@router.post(PATH, response_class=HTMLResponse, summary="Approve or deny a device")
async def answer(attempt: AttemptDep, caller: CallerDep, oauth: OAuthDep) -> Response:
    """A page that shows the decision."""
    request = attempt.request
    issuer = oauth.issuer(request, caller)
    if issuer is None:
        return no_issuer().answer()
    if not is_own_page(request, issuer) or not is_form(request):
        return _message(
            400, "Invalid request origin", "This was not sent by the gateway's own page."
        )
    try:
        form = await read_form(request, _DECIDED, once=_DECIDED)
    except OAuthFault as fault:
        return _message(400, "Invalid request", f"The request cannot be read: {fault.description}.")
    typed, action = form.get("user_code") or "", form.get("action")
    if action not in ("approve", "deny"):
        return _message(400, "Invalid request", "The decision must be to approve or to deny.")
    user = await oauth.gate.person(request)
    if user is None:
        return await login_page(attempt, "the command line", _own_path(typed))
    if user.role not in MANAGING_ROLES:
        return _not_a_manager()
    found, refusal = await _find(request, oauth, typed)
    if found is None:
        return refusal
    is_approved = action == "approve"
    record = _audit_record(caller, user, found, action)

    def store(con: Connection) -> bool:
        is_done = decide(con, found, user.id, is_approved=is_approved)
        if is_done:
            insert_entry(con, record, status=200)
        return is_done

    if not await oauth.services.state.record(store):
        return _entry("This code was used meanwhile.", 409)
    if is_approved:
        return _message(200, "Signed in", "Go back to your terminal: it continues automatically.")
    return _message(200, "Denied", "Nothing was signed in.")


def _audit_record(caller: Caller, user: User, found: DeviceCode, action: str) -> AuditRecord:
    """The entry of a decision: it makes what manages, as `POST /api/auth/tokens` does."""
    sent = {"action": action, "device_name": found.name, "scope": found.scope}
    person = replace(caller, principal=Principal("session", user.id))
    return AuditRecord(person, "POST", PATH, PATH, sent=orjson.dumps(sent).decode())


async def _device_request(request: Request) -> tuple[str, Scope]:
    form = await read_form(request, _BEGIN_FIELDS, once=_BEGIN_FIELDS)
    if form.get("client_id") != CLIENT_ID:
        raise OAuthFault("invalid_client", f"client_id must be {CLIENT_ID}", status=401)
    scope = form.get("scope") or _USUAL_SCOPE
    if scope not in get_args(Scope):
        raise OAuthFault("invalid_scope", f"scope must be one of {', '.join(get_args(Scope))}")
    name = form.get("device_name") or "command line"
    if len(name) > NAME_CHARS or not name.isprintable():
        raise OAuthFault(
            "invalid_request", f"device_name must be at most {NAME_CHARS} printable characters"
        )
    named: Scope = scope  # type: ignore[assignment]  # one of its values, as was checked
    return name, named


async def _find(
    request: Request, oauth: OAuthService, typed: str
) -> tuple[DeviceCode | None, Response]:
    """The sign-in that a code stands for, or the page that asks for another. Tries are limited: codes are short."""
    try:
        oauth.user_codes.spend(oauth.address(request))
    except RateLimited as limited:
        return None, _entry(limited.message, 429)
    letters, at_ms = typed_code(typed), now_ms()
    found = await oauth.services.state.read(lambda con: find_by_user_code(con, letters, at_ms))
    return found, _entry("There is no such code, or it has expired: look at your terminal.", 400)


def _own_path(typed: str | None) -> str:
    return PATH if not typed else f"{PATH}?{urlencode({'user_code': typed[:20]})}"


def _entry(error: str | None = None, status: int = 200) -> Response:
    return page("device_code.html", status, form_action="'self'", error=error)


def _consent(found: DeviceCode, user: User, typed: str) -> Response:
    return page(
        "device.html",
        form_action="'self'",
        device=found.name,
        scope=found.scope,
        address=found.address,
        days=TOKEN_LIFETIME_S // _DAY_S,
        code=typed.upper()[:20],
        user=user,
    )


def _not_a_manager() -> Response:
    text = "The command line manages the gateway, and your account does not: ask its owner."
    return _message(403, "Not for this account", text)


def _message(status: int, title: str, text: str) -> Response:
    return page("message.html", status, heading=title, text=text)

"""`/oauth/authorize`: set-up first, sign in, approve.

A person who is not signed in does that here: by the password, with its second factor, in a small
script that calls `/api/auth/login` and keeps the pending token in memory; without scripts by the
form of `/login`; or at the identity provider. All three lead back to this very address.
"""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from fairlead.calls.caller import CallerDep
from fairlead.identity.attempt import AttemptDep
from fairlead.identity.oauth.authorize_request import (
    AuthorizeRequest,
    ClientError,
    ClientMismatch,
    check_request,
    path_of,
)
from fairlead.identity.oauth.documents import is_document_id
from fairlead.identity.oauth.issuer import NO_ISSUER
from fairlead.identity.oauth.login_page import login_page
from fairlead.identity.oauth.own_page import is_own_page
from fairlead.identity.oauth.pages import page
from fairlead.identity.oauth.parameters import Parameters, Unreadable, is_form
from fairlead.identity.oauth.records import Client
from fairlead.identity.oauth.redirect import source_of
from fairlead.identity.oauth.service import OAuthDep, OAuthService
from fairlead.identity.sign_in import Attempt
from fairlead.identity.users import MANAGING_ROLES

router = APIRouter(tags=["oauth"])

GONE_BACK = {"cache-control": "no-store", "referrer-policy": "no-referrer"}


class _EarlyAnswer(Exception):
    """Ends a request with an answer that is ready."""

    def __init__(self, answer: Response) -> None:
        super().__init__("answered")
        self.answer = answer


@router.get("/oauth/authorize", response_class=HTMLResponse, summary="Sign in and approve")
async def ask(attempt: AttemptDep, oauth: OAuthDep) -> Response:
    """The page that is next for this person."""
    request = attempt.request
    try:
        authorization = await _check(request.scope.get("query_string", b""), attempt, oauth)
    except _EarlyAnswer as answered:
        return answered.answer
    if not await _is_set_up(attempt):
        return page("setup_first.html", 503)
    user = await oauth.gate.person(request)
    if user is None:
        return await login_page(attempt, authorization.shown_name, _own_path(request))
    return page(
        "consent.html",
        form_action=f"'self' {source_of(authorization.redirect_uri)}",
        client=authorization.shown_name,
        client_host=authorization.client_host,
        redirect_uri=authorization.redirect_uri,
        fields=authorization.fields(),
        user=user,
        manages=user.role in MANAGING_ROLES,
    )


@router.post("/oauth/authorize", response_class=HTMLResponse, summary="Approve or deny")
async def decide(attempt: AttemptDep, caller: CallerDep, oauth: OAuthDep) -> Response:
    """302 to the client with a code, or with `access_denied`."""
    request = attempt.request
    issuer = oauth.issuer(request, caller)
    if issuer is None:
        return _no_issuer()
    if not is_own_page(request, issuer):
        return _message_page(
            400, "Invalid request origin", "This was not sent by the gateway's own page."
        )
    if not is_form(request):
        return _message_page(400, "Invalid request", "Send the form as the page does.")
    body = await request.body()
    try:
        authorization = await _check(body, attempt, oauth)
        sent = Parameters.read(body)
    except _EarlyAnswer as answered:
        return answered.answer
    action = sent.all("action")
    if action not in (["approve"], ["deny"]):
        return _message_page(400, "Invalid request", "The decision must be to approve or to deny.")
    user = await oauth.gate.person(request)
    if user is None:
        return _redirect(path_of(sent), 303)
    if action == ["deny"]:
        return _redirect(authorization.denied())
    code = await oauth.ledger.issue_code(
        authorization.client,
        user.id,
        authorization.redirect_uri,
        authorization.challenge,
        authorization.resource,
    )
    return _redirect(authorization.approved(code))


async def _check(text: bytes, attempt: Attempt, oauth: OAuthService) -> AuthorizeRequest:
    issuer = oauth.issuer(attempt.request, attempt.caller)
    if issuer is None:
        raise _EarlyAnswer(_no_issuer())
    try:
        return await check_request(Parameters.read(text), issuer, partial(_find, attempt, oauth))
    except Unreadable as error:
        raise _EarlyAnswer(
            _message_page(400, "Invalid request", f"The request cannot be read: {error}.")
        ) from None
    except ClientMismatch as fault:
        raise _EarlyAnswer(_message_page(400, fault.title, fault.text)) from None
    except ClientError as client_error:
        raise _EarlyAnswer(_redirect(client_error.location)) from None


async def _find(
    attempt: Attempt, oauth: OAuthService, client_id: str, redirect_uri: str | None
) -> Client | None:
    if not is_document_id(client_id):
        return await oauth.ledger.client(client_id)
    document = await oauth.documents.find(client_id, attempt.address)
    return document.client(redirect_uri)


async def _is_set_up(attempt: Attempt) -> bool:
    return await attempt.is_set_up()


def _own_path(request: Request) -> str:
    query = request.scope.get("query_string", b"").decode("ascii", "replace")
    return f"{request.url.path}?{query}"


def _no_issuer() -> Response:
    return _message_page(503, "Not reachable under this address", f"The gateway is {NO_ISSUER}.")


def _message_page(status: int, title: str, text: str) -> Response:
    return page("message.html", status, heading=title, text=text)


def _redirect(url: str, status: int = 302) -> Response:
    answer = RedirectResponse("/", status, GONE_BACK)
    # Set directly, because the framework would encode the address once more.
    answer.headers["location"] = url
    return answer

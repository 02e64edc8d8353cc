"""`/api/auth/oidc`: to the identity provider, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

import structlog
from fastapi import APIRouter, Query, Response
from fastapi.responses import RedirectResponse

from fairlead.calls.origin import is_https, public_origin
from fairlead.errors import ControlUnavailable, FairleadError, NotFound, UpstreamOverloaded
from fairlead.identity.attempt import AttemptDep
from fairlead.identity.challenges import AccountLink, open_challenge
from fairlead.identity.oauth.pages import page
from fairlead.identity.oidc.account import user_of
from fairlead.identity.oidc.login_state import COOKIE, LIFETIME_S, LoginState, own_path
from fairlead.identity.oidc.provider import OidcFailed, Provider
from fairlead.identity.pages import factor_page
from fairlead.identity.sign_in import Attempt
from fairlead.identity.users import User, find_owner
from fairlead.moment import now_ms
from fairlead.store.file import Connection

router = APIRouter(prefix="/api/auth/oidc", tags=["auth"])
log = structlog.get_logger("fairlead.identity")

PATH = "/api/auth/oidc"
CALLBACK = f"{PATH}/callback"
# Longer than any parameter that a provider sends.
PathText = Annotated[str | None, Query(max_length=8192)]
ParamText = Annotated[str | None, Query(max_length=4096)]


@router.get(
    "/login",
    status_code=302,
    response_class=RedirectResponse,
    summary="Start signing in at the identity provider",
)
async def login(attempt: AttemptDep, return_to: PathText = None) -> Response:
    """Sends the browser to the provider; 404 without one, 503 when it does not answer: a page for a browser, else
    JSON.
    """
    provider = await _provider(attempt)
    owner = await attempt.services.state.read(find_owner)
    if owner is None:
        return _redirect("/setup")
    origin = public_origin(attempt.request, attempt.caller, attempt.config)
    if origin is None:
        raise ControlUnavailable(
            "The gateway's public address is not certain: "
            "set SERVICE_PUBLIC_BASE_URL, or call it by a loopback address."
        )
    try:
        endpoints = await provider.endpoints()
    except UpstreamOverloaded as error:
        if "text/html" not in attempt.request.headers.get("accept", ""):
            raise
        log.warning("single sign-on cannot begin", reason=error.message)
        text = (
            "The identity provider does not answer as it should. Go back and try again in a while."
        )
        return page(
            "message.html", error.status, heading="Single sign-on does not work now", text=text
        )
    errand = LoginState.begin(own_path(return_to), origin + CALLBACK, provider.issuer, now_ms())
    question = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": errand.redirect_uri,
        "scope": "openid email profile",
        "state": errand.state,
        "nonce": errand.nonce,
        "code_challenge": errand.challenge,
        "code_challenge_method": "S256",
    }
    joined = "&" if "?" in endpoints.authorization else "?"
    answer = _redirect(f"{endpoints.authorization}{joined}{urlencode(question)}")
    _set_cookie(attempt, answer, errand.to_cookie(attempt.services.state.sealer), LIFETIME_S)
    return answer


@router.get(
    "/callback",
    status_code=302,
    response_class=RedirectResponse,
    summary="Redirect target of the identity provider",
)
async def callback(
    attempt: AttemptDep,
    code: ParamText = None,
    state: ParamText = None,
    error: ParamText = None,
    iss: ParamText = None,
) -> Response:
    """Opens a session and redirects to `return_to`, or to `/?oidc_error=<code>`. A user with a second factor has
    to give it first.
    """
    provider = await _provider(attempt)
    try:
        answer = await _signed_in(attempt, provider, ProviderAnswer(code, state, error, iss))
    except OidcFailed as failure:
        log.warning("single sign-on failed", code=failure.code, reason=failure.reason)
        answer = _redirect(f"/?{urlencode({'oidc_error': failure.code})}")
    except FairleadError as failure:
        log.warning("single sign-on failed", code="token", reason=failure.kind)
        answer = _redirect("/?oidc_error=token")
    _set_cookie(attempt, answer, "", 0)
    return answer


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """The parameters with which the identity provider sends the browser back."""

    code: str | None
    state: str | None
    error: str | None
    iss: str | None


async def _signed_in(attempt: Attempt, provider: Provider, sent: ProviderAnswer) -> Response:
    state_db = attempt.services.state
    errand = LoginState.from_cookie(attempt.request.cookies.get(COOKIE, ""), state_db.sealer)
    if errand is None or sent.state is None or not errand.is_of(sent.state, now_ms()):
        raise OidcFailed("state_invalid", "the answer is not for this browser, or comes too late")
    sends_iss = (await provider.endpoints()).sends_iss
    if errand.issuer != provider.issuer or (
        (sent.iss is not None or sends_iss) and sent.iss != provider.issuer
    ):
        raise OidcFailed("state_invalid", "the answer is of another issuer")
    if sent.error is not None or sent.code is None:
        raise OidcFailed("provider", "the provider refused, or the person cancelled")
    attempt.sign_in.answers.spend(attempt.address)
    identity = await provider.exchange(
        sent.code, errand.verifier, errand.redirect_uri, errand.nonce
    )
    principal = attempt.caller.principal
    signed_in_id = principal.id if principal.kind == "session" else None
    by_address = attempt.config.service_oidc_join_existing

    def resolve_user(con: Connection) -> tuple[User, str | None]:
        found = user_of(con, identity, signed_in_id=signed_in_id, by_address=by_address)
        if not found.user.has_second_factor or found.user.id == signed_in_id:
            return found.user, None
        # A second factor that was set up here is required here, whatever the provider checked.
        account_link = AccountLink(identity.issuer, identity.subject) if found.joins else None
        return found.user, open_challenge(con, found.user.id, now_ms(), "oidc", account_link)

    user, token = await state_db.database.write(resolve_user)
    if token is not None:
        return factor_page(token, errand.return_to)
    answer = _redirect(errand.return_to)
    await attempt.enter(user, "oidc", answer)
    return answer


async def _provider(attempt: Attempt) -> Provider:
    provider = await attempt.provider()
    if provider is None:
        raise NotFound("Single sign-on is not set up: set oidcIssuer or SERVICE_OIDC_ISSUER.")
    return provider


def _redirect(url: str) -> RedirectResponse:
    headers = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
    return RedirectResponse(url, 302, headers)


def _set_cookie(attempt: Attempt, answer: Response, value: str, max_age_s: int) -> None:
    answer.set_cookie(
        COOKIE,
        value,
        max_age=max_age_s,
        path=PATH,
        httponly=True,
        # The provider sends the browser back from another site.
        samesite="lax",
        secure=is_https(attempt.request, attempt.caller, attempt.config),
    )

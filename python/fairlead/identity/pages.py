"""The pages on which people set up, sign in and sign out: plain forms, no script.

They do what `/api/auth` does, with the same limits. `/setup` takes JSON too. A sign-in that waits
for its second factor is kept in the page alone: a hidden field, in no address and no storage.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import orjson
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from pydantic import Field, SecretStr, ValidationError

from fairlead.errors import Conflict, FairleadError, InvalidRequest
from fairlead.identity.attempt import AttemptDep
from fairlead.identity.challenges import Verdict
from fairlead.identity.fields import Email, NewPassword
from fairlead.identity.oidc.login_state import own_path
from fairlead.identity.router import leave
from fairlead.identity.sign_in import Attempt, PendingSignIn
from fairlead.identity.users import find_user, has_any_identity
from fairlead.settings import PASSWORD_MAX_CHARS
from fairlead.style.page_style import COLOURS, guard_headers, page_environment
from fairlead.text.html_form import read_form
from fairlead.wire import Wire

router = APIRouter(tags=["pages"])

TEMPLATES = Path(__file__).parent / "templates"
FIELDS_MAX = 20
RETURN_TO = Annotated[str | None, Query(max_length=8192)]
SHORT = Annotated[str | None, Query(max_length=64)]

STYLE = COLOURS + (TEMPLATES / "page.css").read_text(encoding="utf-8")
_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
HEADERS = guard_headers(style=f"'sha256-{_STYLE_HASH}'")

_pages = page_environment(TEMPLATES)

# Messages for errors of a sign-in.
OIDC_ERRORS = {
    "provider": "Single sign-on was cancelled or refused. Please try again.",
    "state_invalid": "That sign-in was started in another browser or too long ago. Start again.",
    "token": "The identity provider's answer could not be used. Please try again.",
    "email": "The identity provider gave no verified e-mail address.",
    "account": "There is an account with your address, and single sign-on does not open it yet: sign in to it with "
    "its password and connect single sign-on from there, or ask the gateway's owner.",
}
WRONG_PASSWORD = "Login failed. Check your email and password."  # noqa: S105
WRONG_CODE = "Invalid authentication code."
EXPIRED = "Your sign-in attempt expired. Start over to try again."
TOO_MANY = "Too many attempts. Try again shortly."
FAILED = "Login failed. Please try again."


SetUpToken = Annotated[SecretStr, Field(max_length=200)]


class SetUp(Wire):
    """The owner's first password; `email` stays `owner@localhost` if left out. `token` is the set-up
    token, which is needed from another machine or through a proxy.
    """

    password: NewPassword
    email: Email | None = None
    token: SetUpToken | None = None


@router.get("/", response_class=HTMLResponse, summary="The way in")
async def root(attempt: AttemptDep, oidc_error: SHORT = None) -> Response:
    """Redirects to set-up, sign-in, or the console, which redirects people who cannot manage to the board."""
    if oidc_error is not None:
        return _redirect(f"/login?{urlencode({'oidc_error': oidc_error})}")
    if attempt.caller.principal.kind == "session":
        return _redirect("/dashboard")
    return _redirect("/login" if await attempt.is_set_up() else "/setup")


@router.get("/setup", response_class=HTMLResponse, summary="The set-up page")
async def set_up_page(attempt: AttemptDep) -> Response:
    """A form, until there is an owner; none where people do not sign in with passwords."""
    if await attempt.is_set_up():
        return _redirect("/login")
    if (await attempt.sign_on()).local_auth_disabled:
        return _page("setup_closed.html", 403)
    return _set_up_page(attempt)


@router.post("/setup", response_class=HTMLResponse, summary="Set up the owner, once")
async def set_up(attempt: AttemptDep) -> Response:
    """Form or JSON `{password, email?}`; the owner is signed in afterwards."""
    if _is_json(attempt.request):
        body = _read_set_up(orjson.loads(await attempt.request.body() or b"{}"))
        answer: Response = JSONResponse({"success": True}, 201)
        await attempt.set_up(body.email, body.password, answer, body.token)
        return answer
    form = read_form(await attempt.request.body(), FIELDS_MAX)
    email = form.get("email", "").strip()
    given = {"email": email, "token": form.get("token", "").strip()}
    fields = {"password": form.get("password", "")} | {k: v for k, v in given.items() if v}
    answer = _redirect("/", 303)
    try:
        if form.get("password") != form.get("repeated"):
            raise InvalidRequest("The two passwords differ.", param="repeated")
        body = _read_set_up(fields)
        await attempt.set_up(body.email, body.password, answer, body.token)
    except Conflict:
        return _redirect("/login", 303)
    except FairleadError as error:
        return _set_up_page(
            attempt, error.status, error=error.message, field=error.param, email=email
        )
    return answer


@router.get("/login", response_class=HTMLResponse, summary="The sign-in page")
async def login_page(
    attempt: AttemptDep, return_to: RETURN_TO = None, oidc_error: SHORT = None
) -> Response:
    """The form, the way to the identity provider, or who is signed in."""
    principal = attempt.caller.principal
    if principal.kind == "session" and principal.id is not None:
        user_id = principal.id
        user = await attempt.services.state.read(lambda con: find_user(con, user_id))
        if user is not None:
            sso = f"/api/auth/oidc/login?{urlencode({'return_to': '/login'})}"
            connects = (await attempt.sign_on()).issuer is not None and not (
                await attempt.services.state.read(lambda con: has_any_identity(con, user_id))
            )
            return _page("signed_in.html", user=user, sso=sso if connects else None)
    if not await attempt.is_set_up():
        return _redirect("/setup")
    error = None
    if oidc_error is not None:
        error = OIDC_ERRORS.get(oidc_error, FAILED)
    return await _login(attempt, own_path(return_to), error=error)


@router.post("/login", response_class=HTMLResponse, summary="Sign in from the page")
async def login(attempt: AttemptDep) -> Response:
    """On to where the person came from, or to the second factor."""
    form = read_form(await attempt.request.body(), FIELDS_MAX)
    return_to = own_path(form.get("return_to"))
    email = form.get("email", "").strip()
    password = form.get("password", "")
    answer = _redirect(return_to, 303)
    try:
        if not 0 < len(password) <= PASSWORD_MAX_CHARS:
            raise InvalidRequest(WRONG_PASSWORD)
        pending = await attempt.with_password(email or None, SecretStr(password), answer)
    except FairleadError as error:
        message = {401: WRONG_PASSWORD, 400: WRONG_PASSWORD, 429: TOO_MANY}.get(
            error.status, FAILED
        )
        return await _login(attempt, return_to, error.status, error=message, email=email)
    if isinstance(pending, PendingSignIn):
        return factor_page(pending.token, return_to)
    return answer


@router.post("/login/2fa", response_class=HTMLResponse, summary="Give the second factor")
async def second_factor(attempt: AttemptDep) -> Response:
    """On to where the person came from."""
    form = read_form(await attempt.request.body(), FIELDS_MAX)
    return_to = own_path(form.get("return_to"))
    token, code = form.get("token", "")[:128], form.get("code", "")[:64]
    answer = _redirect(return_to, 303)
    try:
        await attempt.with_code(token, code, answer)
    except FairleadError as error:
        over = error.message in (Verdict.EXPIRED.value, Verdict.TOO_MANY.value)
        message = {401: EXPIRED if over else WRONG_CODE, 429: TOO_MANY}.get(
            error.status, "Verification failed. Please try again."
        )
        return _page(
            "factor.html", error.status, token=token, return_to=return_to, error=message, over=over
        )
    return answer


@router.post("/logout", response_class=HTMLResponse, summary="Sign out from the page")
async def logout(attempt: AttemptDep) -> Response:
    """Ends the session and shows the sign-in page."""
    answer = _redirect("/login", 303)
    await leave(attempt, answer)
    return answer


def factor_page(token: str, return_to: str) -> Response:
    """The page that asks for the second factor of the sign-in that waits under `token`."""
    return _page("factor.html", token=token, return_to=return_to, error=None, over=False)


async def _login(attempt: Attempt, return_to: str, status: int = 200, **fields: Any) -> Response:
    sso, sign_on = None, await attempt.sign_on()
    if sign_on.issuer is not None:
        sso = f"/api/auth/oidc/login?{urlencode({'return_to': return_to})}"
    with_password = not sign_on.local_auth_disabled
    known = {"email": "", "sso": sso, "with_password": with_password, "return_to": return_to}
    return _page("login.html", status, **(known | fields))


def _set_up_page(attempt: Attempt, status: int = 200, **values: Any) -> Response:
    empty = {"error": None, "field": None, "email": ""}
    return _page("setup.html", status, needs_token=attempt.needs_setup_token, **(empty | values))


def _page(name: str, status: int = 200, **fields: Any) -> HTMLResponse:
    text = _pages.get_template(name).render(style=STYLE, **fields)
    return HTMLResponse(text, status, HEADERS)


def _redirect(path: str, status: int = 302) -> RedirectResponse:
    return RedirectResponse(path, status, {"cache-control": "no-store"})


def _is_json(request: Request) -> bool:
    return "json" in request.headers.get("content-type", "").partition(";")[0]


def _read_set_up(fields: Any) -> SetUp:
    try:
        return SetUp.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "password"
        rule = "is required" if first["type"] == "missing" else first["msg"]
        rule = rule.removeprefix("Value error, ").replace("Input should", "must", 1)
        raise InvalidRequest(f"{name} {rule}.", param=name) from None

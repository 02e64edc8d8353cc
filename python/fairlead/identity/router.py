"""`/api/auth`: sign in with the operator's password, sign out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import APIRouter, Cookie, Depends, Request, Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr, StrictBool

from fairlead.caller import CallerDep
from fairlead.errors import FairleadError, Forbidden, Unauthenticated
from fairlead.identity.guess_limit import GuessLimit
from fairlead.identity.password import PasswordChecker, read_password_hash, same_text
from fairlead.identity.sessions import COOKIE, LIFETIME_S, end_session, mint_session, open_session
from fairlead.settings import PASSWORD_MAX_CHARS
from fairlead.store.services import Services, ServicesDep

router = APIRouter(prefix="/api/auth", tags=["auth"])

TokenCookie = Annotated[str | None, Cookie(alias=COOKIE, include_in_schema=False)]


@dataclass(slots=True)
class SignIn:
    """What signing in keeps in memory; one per process, made by control."""

    limit: GuessLimit = field(default_factory=GuessLimit)
    checker: PasswordChecker = field(default_factory=PasswordChecker)


async def sign_in_of(request: Request) -> SignIn:
    """The app's."""
    sign_in: SignIn = request.app.state.sign_in
    return sign_in


class Login(BaseModel):
    model_config = ConfigDict(extra="forbid")

    password: Annotated[SecretStr, Field(strict=True, min_length=1, max_length=PASSWORD_MAX_CHARS)]


class Success(BaseModel):
    success: StrictBool = True


@router.post("/login", summary="Sign in; the answer sets the cookie `auth_token`")
async def login(
    body: Login,
    response: Response,
    services: ServicesDep,
    caller: CallerDep,
    sign_in: Annotated[SignIn, Depends(sign_in_of)],
    cookie: TokenCookie = None,
) -> Success:
    """Checks the password and opens a session in place of the one the caller had."""
    mark = sign_in.limit.begin(caller.peer)
    try:
        right = await _is_right(body.password.get_secret_value(), services, sign_in.checker)
    except FairleadError:
        sign_in.limit.withdraw(caller.peer, mark)
        raise
    if not right:
        raise Unauthenticated("Invalid password", param="password")
    sign_in.limit.forgive(caller.peer)
    session = mint_session()
    await services.state.commit(lambda con: open_session(con, session, replaced=cookie))
    _set_cookie(response, session.token, LIFETIME_S, secure=caller.scheme == "https")
    return Success()


@router.post("/logout", summary="Sign out: the session ends at once, everywhere")
async def logout(
    response: Response, services: ServicesDep, caller: CallerDep, cookie: TokenCookie = None
) -> Success:
    """Ends the caller's session and clears the cookie."""
    if cookie:
        await services.state.commit(lambda con: end_session(con, cookie))
    _set_cookie(response, "", 0, secure=caller.scheme == "https")
    return Success()


async def _is_right(password: str, services: Services, checker: PasswordChecker) -> bool:
    stored = await services.state.read(read_password_hash)
    if stored is not None:
        return await checker.matches(password, stored)
    initial = services.config.initial_password
    if initial is None:
        raise Forbidden(
            "No password is set: start fairlead with INITIAL_PASSWORD, "
            "or use the local command line.",
            extra={"needsSetup": True},
        )
    return same_text(password, initial.get_secret_value())


def _set_cookie(response: Response, value: str, max_age_s: int, *, secure: bool) -> None:
    response.set_cookie(
        COOKIE, value, max_age=max_age_s, path="/", httponly=True, samesite="lax", secure=secure
    )
    response.headers["cache-control"] = "no-store"

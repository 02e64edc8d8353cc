"""`/api/auth`: sign in, give the second factor, sign out, and say which ways there are."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Response
from pydantic import Field, StrictBool

from fairlead.identity.attempt import AttemptDep
from fairlead.identity.fields import Code, Password
from fairlead.identity.sessions import end_session
from fairlead.identity.sign_in import Attempt, PendingSignIn
from fairlead.identity.users import User
from fairlead.wire import Success, Wire

router = APIRouter(prefix="/api/auth", tags=["auth"])


class Login(Wire):
    """`email` may be left out for the owner."""

    email: str | None = None
    password: Password


class Person(Wire):
    """A person's name and address, for those who may know."""

    id: str
    email: str
    name: str


class SignedIn(Wire):
    """The session's cookie is set."""

    success: Literal[True] = True
    user: Person


class SecondFactorRequired(Wire):
    """The password was right; `tempToken` and a code finish the sign-in within ten minutes."""

    requires2fa: Literal[True] = Field(True, alias="requires2fa")
    temp_token: str
    user: Person


class LoginCode(Wire):
    temp_token: Code
    code: Code


class Status(Wire):
    oidc_enabled: StrictBool
    local_auth_enabled: StrictBool
    self_service_password_reset_enabled: StrictBool = False
    needs_setup: StrictBool


@router.post("/login", summary="Sign in; the answer sets the cookie `auth_token`")
async def login(
    body: Login, attempt: AttemptDep, response: Response
) -> SignedIn | SecondFactorRequired:
    """Checks the password and opens a session in place of the one the caller had, or asks for the
    second factor.
    """
    entered = await attempt.with_password(body.email, body.password, response)
    return wanted(entered) if isinstance(entered, PendingSignIn) else signed_in(entered)


@router.post("/login/2fa", summary="Finish signing in with a code of the second factor")
async def login_second_factor(body: LoginCode, attempt: AttemptDep, response: Response) -> SignedIn:
    """Takes a code of the authenticator or a recovery code."""
    return signed_in(await attempt.with_code(body.temp_token, body.code, response))


@router.post("/logout", summary="Sign out: the session ends at once, everywhere")
async def logout(attempt: AttemptDep, response: Response) -> Success:
    """Ends the caller's session and clears the cookie."""
    await leave(attempt, response)
    return Success()


@router.get("/status", summary="Which ways to sign in there are")
async def status(attempt: AttemptDep) -> Status:
    """The ways of signing in that pages may offer."""
    sign_on = await attempt.sign_on()
    return Status.model_construct(
        oidc_enabled=sign_on.issuer is not None,
        local_auth_enabled=not sign_on.local_auth_disabled,
        needs_setup=not await attempt.is_set_up(),
    )


async def leave(attempt: Attempt, response: Response) -> None:
    """Ends the session of the request and clears its cookie."""
    cookie = attempt.cookie
    if cookie:
        await attempt.services.state.commit(lambda con: end_session(con, cookie))
    attempt.set_cookie(response, "", 0)


def wanted(pending: PendingSignIn) -> SecondFactorRequired:
    """The answer that asks for the second factor."""
    return SecondFactorRequired.model_construct(
        requires2fa=True, temp_token=pending.token, user=person(pending.user)
    )


def signed_in(user: User) -> SignedIn:
    """The answer of a sign-in that is complete."""
    return SignedIn.model_construct(success=True, user=person(user))


def person(user: User) -> Person:
    """A user's own record, as shown to themselves."""
    return Person.model_construct(id=user.id, email=user.email, name=user.name)

"""`/api/auth`: what people do with their own account: password, sessions, second factor.

The local command line acts for the owner, and sees and ends everybody's sessions.
"""

from __future__ import annotations

from fastapi import APIRouter, Response
from pydantic import SecretStr, StrictBool

from fairlead import _core
from fairlead.errors import Conflict, Forbidden, InvalidRequest, NotFound
from fairlead.identity.attempt import AttemptDep
from fairlead.identity.fields import Code, NewPassword, Password
from fairlead.identity.second_factor import (
    begin_enrolment,
    confirm_enrolment,
    count_recovery_codes,
    otpauth_uri,
    remove_second_factor,
    renew_recovery_codes,
)
from fairlead.identity.sessions import (
    StoredSession,
    end_session_by_id,
    end_sessions,
    list_sessions,
)
from fairlead.identity.sign_in import Attempt
from fairlead.identity.users import User, ensure_owner, found_user, set_password_hash
from fairlead.moment import Time, moment_of, now_ms
from fairlead.store.file import Connection
from fairlead.wire import Success, Wire

router = APIRouter(prefix="/api/auth", tags=["auth"])


class Me(Wire):
    id: str
    email: str
    name: str
    role: str
    has_password: StrictBool
    second_factor: StrictBool


class PasswordChange(Wire):
    current_password: Password | None = None
    new_password: NewPassword


class OwnerPassword(Wire):
    new_password: NewPassword
    remove_second_factor: StrictBool = False


class Confirmation(Wire):
    current_password: Password | None = None


class CodeBody(Wire):
    code: Code


class SessionView(Wire):
    """`isCurrent` marks the session that asks."""

    id: str
    user_id: str
    way: str
    address: str
    user_agent: str
    created_at: Time
    expires_at: Time
    is_current: StrictBool


class SessionList(Wire):
    sessions: list[SessionView]
    total: int


class Ended(Wire):
    success: StrictBool = True
    ended: int


class SecondFactor(Wire):
    enabled: StrictBool
    recovery_codes_left: int


class Enrolment(Wire):
    """The secret is shown until it is confirmed, and not again."""

    secret: str
    otpauth_uri: str


class RecoveryCodes(Wire):
    """Shown this once."""

    recovery_codes: list[str]


@router.get("/me", summary="Who is signed in")
async def me(attempt: AttemptDep) -> Me:
    """The account; the owner's for the local command line."""
    user = await attempt.acting_user()
    has_password = user.password_hash is not None or (
        user.role == "owner" and attempt.config.initial_password is not None
    )
    return Me.model_construct(
        id=user.id,
        email=user.email,
        name=user.name,
        role=user.role,
        has_password=has_password,
        second_factor=user.has_second_factor,
    )


@router.post("/password", summary="Change one's own password; all other sessions end")
async def change_password(body: PasswordChange, attempt: AttemptDep) -> Success:
    """Needs the current password."""
    await attempt.confirm(body.current_password, operator=False)
    await attempt.services.state.commit(await attempt.new_password(body.new_password))
    return Success()


@router.post("/owner/password", summary="Reset the owner's password; the local command line only")
async def reset_owner_password(body: OwnerPassword, attempt: AttemptDep) -> Success:
    """For an owner who forgot it: every session of theirs ends."""
    if attempt.caller.principal.kind != "local":
        raise Forbidden("Only the local command line resets the owner's password.")
    digest = await attempt.sign_in.checker.hash(body.new_password.get_secret_value())
    await attempt.services.state.commit(
        lambda con: reset_owner(con, digest, without_second_factor=body.remove_second_factor)
    )
    return Success()


def reset_owner(con: Connection, password_hash: str, *, without_second_factor: bool) -> str:
    """Sets the owner's password (making the owner where there is none) and ends their sessions, in
    the writer; returns the owner's address.
    """
    owner = ensure_owner(con)
    set_password_hash(con, owner.id, password_hash)
    end_sessions(con, owner.id)
    con.execute("DELETE FROM login_challenges WHERE user_id = ?", [owner.id])
    if without_second_factor:
        remove_second_factor(con, owner.id)
    return owner.email


@router.get("/sessions", summary="List sessions, newest first")
async def sessions(attempt: AttemptDep) -> SessionList:
    """The caller's own; everybody's for the local command line."""
    user_id = _session_scope(attempt)
    cookie = attempt.cookie
    current = _core.hash_secret(cookie) if cookie and user_id else ""
    found = await attempt.services.state.read(lambda con: list_sessions(con, user_id))
    return SessionList.model_construct(
        sessions=[_session_view(each, current) for each in found], total=len(found)
    )


@router.delete("/sessions", summary="End all sessions but the one that asks")
async def end_others(attempt: AttemptDep) -> Ended:
    """The caller's own; everybody's for the local command line."""
    user_id = _session_scope(attempt)
    own_token = attempt.cookie if user_id else None
    ended = await attempt.services.state.commit(
        lambda con: end_sessions(con, user_id, but_token=own_token)
    )
    return Ended.model_construct(success=True, ended=ended)


@router.delete("/sessions/{session_id}", summary="End a session")
async def end_one(session_id: str, attempt: AttemptDep) -> Success:
    """The session is refused everywhere when this returns."""
    user_id = _session_scope(attempt)

    def end(con: Connection) -> None:
        if not end_session_by_id(con, session_id, user_id):
            raise NotFound("There is no session with this id.", param="id")

    await attempt.services.state.commit(end)
    return Success()


@router.get("/2fa", summary="Show whether a second factor is on")
async def second_factor(attempt: AttemptDep) -> SecondFactor:
    """Whether the second factor is on, and how many recovery codes are left."""
    user = await attempt.acting_user()
    left = await attempt.services.state.read(lambda con: count_recovery_codes(con, user.id))
    return SecondFactor.model_construct(enabled=user.has_second_factor, recovery_codes_left=left)


@router.post("/2fa/enrol", summary="Start to set up a second factor")
async def enrol(body: Confirmation, attempt: AttemptDep, response: Response) -> Enrolment:
    """A fresh secret for an authenticator app; it counts once a code of it was given."""
    user = await _confirmed(attempt, body.current_password)
    if user.has_second_factor:
        raise Conflict("A second factor is on already: turn it off first.")
    state = attempt.services.state
    secret = await state.database.write(lambda con: begin_enrolment(con, state.sealer, user.id))
    response.headers["cache-control"] = "no-store"
    return Enrolment.model_construct(secret=secret, otpauth_uri=otpauth_uri(secret, user.email))


@router.post("/2fa/confirm", summary="Turn the second factor on; the answer has recovery codes")
async def confirm(body: CodeBody, attempt: AttemptDep, response: Response) -> RecoveryCodes:
    """Needs a code of the secret that `enrol` gave. All other sessions end."""
    attempt.spend()
    user = await attempt.acting_user()
    cookie = attempt.cookie
    state = attempt.services.state

    def enable(con: Connection) -> list[str] | None:
        now = found_user(con, user.id)
        codes = confirm_enrolment(con, state.sealer, now, body.code, now_ms())
        if codes is not None:
            end_sessions(con, user.id, but_token=cookie)
        return codes

    codes = await state.commit(enable)
    if codes is None:
        raise InvalidRequest(
            "code is not the one of this moment: begin with /api/auth/2fa/enrol and check the "
            "clock of your device.",
            param="code",
        )
    response.headers["cache-control"] = "no-store"
    return RecoveryCodes.model_construct(recovery_codes=codes)


@router.post("/2fa/disable", summary="Turn the second factor off")
async def disable(body: Confirmation, attempt: AttemptDep) -> Success:
    """Needs the current password."""
    user = await _confirmed(attempt, body.current_password)
    await attempt.services.state.database.write(lambda con: remove_second_factor(con, user.id))
    return Success()


@router.post("/2fa/recovery-codes", summary="Make new recovery codes; the old ones count no more")
async def renew(body: Confirmation, attempt: AttemptDep, response: Response) -> RecoveryCodes:
    """Needs the current password."""
    user = await _confirmed(attempt, body.current_password)
    if not user.has_second_factor:
        raise Conflict("No second factor is on: begin with /api/auth/2fa/enrol.")
    codes = await attempt.services.state.database.write(
        lambda con: renew_recovery_codes(con, user.id)
    )
    response.headers["cache-control"] = "no-store"
    return RecoveryCodes.model_construct(recovery_codes=codes)


async def _confirmed(attempt: Attempt, current_password: SecretStr | None) -> User:
    await attempt.confirm(current_password, operator=False)
    return await attempt.acting_user()


def _session_scope(attempt: Attempt) -> str | None:
    """The user whose sessions the caller sees; None means everybody's."""
    principal = attempt.caller.principal
    return None if principal.kind == "local" else principal.id or ""


def _session_view(session: StoredSession, current: str) -> SessionView:
    return SessionView.model_construct(
        id=session.id,
        user_id=session.user_id,
        way=session.way,
        address=session.peer,
        user_agent=session.user_agent,
        created_at=moment_of(session.created_at_ms),
        expires_at=moment_of(session.expires_at_ms),
        is_current=session.hash == current,
    )

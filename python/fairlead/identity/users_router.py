"""`/api/users`: who may sign in and what each may do, for those who manage the gateway."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import StrictBool, model_validator
from pydantic_core import PydanticCustomError

from fairlead.errors import Conflict, Forbidden, Unauthenticated
from fairlead.identity.attempt import AttemptDep
from fairlead.identity.fields import Email, NewPassword, Password
from fairlead.identity.sessions import end_sessions
from fairlead.identity.sign_in import Attempt
from fairlead.identity.users import (
    Profile,
    User,
    count_users,
    delete_user,
    find_by_email,
    found_user,
    insert_user,
    list_users,
    new_user,
    update_profile,
)
from fairlead.moment import Time, moment_of
from fairlead.store.file import Connection
from fairlead.wire import Limit, Name, Offset, Success, Wire

router = APIRouter(prefix="/api/users", tags=["users"])

# There is one owner, and the role cannot be given.
Appointable = Literal["admin", "member"]


class NewUser(Wire):
    """Without a password the person signs in at the identity provider, by a verified address, where
    `SERVICE_OIDC_JOIN_EXISTING` is on.

    `currentPassword` is the caller's own.
    """

    email: Email
    name: Name
    role: Appointable = "member"
    password: NewPassword | None = None
    current_password: Password | None = None


class UserChange(Wire):
    """Any of the fields, at least one."""

    email: Email = ""
    name: Name = ""
    role: Appointable = "member"
    is_active: StrictBool = True
    current_password: Password | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_a_field(cls, body: Any) -> Any:
        if isinstance(body, dict) and not body.keys() & {"email", "name", "role", "isActive"}:
            raise PydanticCustomError("no_valid_fields", "No valid fields to update")
        return body


class UserView(Wire):
    id: str
    email: str
    name: str
    role: str
    is_active: StrictBool
    has_password: StrictBool
    second_factor: StrictBool
    created_at: Time
    updated_at: Time


class UserList(Wire):
    users: list[UserView]
    total: int
    limit: int
    offset: int


@router.get("", summary="List users, oldest first")
async def list_all(attempt: AttemptDep, limit: Limit = 50, offset: Offset = 0) -> UserList:
    """A page of users, oldest first."""

    def read_page(con: Connection) -> tuple[list[User], int]:
        return list_users(con, limit, offset), count_users(con)

    users, total = await attempt.services.state.read(read_page)
    return UserList.model_construct(
        users=[_view(user) for user in users], total=total, limit=limit, offset=offset
    )


@router.post("", status_code=201, summary="Add a user")
async def create(body: NewUser, attempt: AttemptDep) -> UserView:
    """With a password, or for the identity provider."""
    await _confirm(attempt, body.current_password)
    digest = None
    if body.password is not None:
        digest = await attempt.sign_in.checker.hash(body.password.get_secret_value())
    user = new_user(body.email, body.name, body.role, digest)
    await attempt.services.state.commit(lambda con: insert_user(con, user))
    return _view(user)


@router.patch("/{user_id}", summary="Change a user; other fields keep their value")
async def change(user_id: str, body: UserChange, attempt: AttemptDep) -> UserView:
    """A user who is switched off or loses a role loses their sessions' power at once."""
    await _confirm(attempt, body.current_password)
    sent = body.model_fields_set

    def update(con: Connection) -> User:
        user = found_user(con, user_id)
        _refuse_for_owner(attempt, user, sent)
        email = body.email if "email" in sent else user.email
        other = find_by_email(con, email)
        if other is not None and other.id != user.id:
            raise Conflict(f"There is a user with the address {email} already.", param="email")
        profile = Profile(
            email,
            body.name if "name" in sent else user.name,
            body.role if "role" in sent else user.role,
            body.is_active if "is_active" in sent else user.is_active,
        )
        update_profile(con, user.id, profile)
        if "is_active" in sent and not body.is_active:
            end_sessions(con, user.id)
        return found_user(con, user.id)

    return _view(await attempt.services.state.commit(update))


@router.delete("/{user_id}", summary="Remove a user with all that is theirs")
async def delete(user_id: str, attempt: AttemptDep) -> Success:
    """Sessions and access tokens of the user count no more when this returns."""
    if attempt.caller.principal.kind not in ("session", "local"):
        raise Unauthenticated("Sign in first: users are removed by a person.")

    def delete_row(con: Connection) -> None:
        user = found_user(con, user_id)
        if user.role == "owner":
            raise Conflict("The owner cannot be removed.")
        delete_user(con, user.id)

    await attempt.services.state.commit(delete_row)
    return Success()


async def _confirm(attempt: Attempt, current_password: Password | None) -> None:
    """Requires the caller's password for a change that makes an operator, or lets an address sign
    in.
    """
    await attempt.confirm(current_password)


def _refuse_for_owner(attempt: Attempt, user: User, sent: set[str]) -> None:
    if user.role != "owner":
        return
    if sent & {"role", "is_active"}:
        raise Conflict("The owner's role stays, and the owner cannot be switched off.")
    principal = attempt.caller.principal
    if principal.kind == "session" and principal.id != user.id:
        raise Forbidden("Only the owner changes the owner's account.")


def _view(user: User) -> UserView:
    return UserView.model_construct(
        id=user.id,
        email=user.email,
        name=user.name,
        role=user.role,
        is_active=user.is_active,
        has_password=user.password_hash is not None,
        second_factor=user.has_second_factor,
        created_at=moment_of(user.created_at_ms),
        updated_at=moment_of(user.updated_at_ms),
    )

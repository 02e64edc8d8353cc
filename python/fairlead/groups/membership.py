"""Changes of a group's members, for operators and for those who administer the group."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fairlead.errors import InvalidRequest, NotFound
from fairlead.gateway.keys.table import delete_key, list_keys_made_by
from fairlead.gateway.outbound.table import drop_proxy
from fairlead.groups.members import Member, MemberRole, drop_member, list_members, put_member
from fairlead.identity.users import User, find_by_email, find_user
from fairlead.moment import now_ms
from fairlead.records.webhook_endpoints import delete_owned_endpoints
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.wire import Wire


class NewMember(Wire):
    """A user who is to be a member, by id or by address; one who is already gets the role."""

    user_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    email: Annotated[str, Field(min_length=1, max_length=320)] | None = None
    role: MemberRole = "member"


def add_member(con: Connection, group_id: str, new: NewMember) -> list[Member]:
    """Adds or changes a member, in the writer; returns the members."""
    if (new.user_id is None) == (new.email is None):
        raise InvalidRequest("userId or email must be sent, and not both.", param="userId")
    user = _user(con, new)
    if user is None or not user.is_active:
        param = "userId" if new.user_id is not None else "email"
        raise InvalidRequest(
            f"{param} must be that of a user who may sign in: add them at POST /api/users first.",
            param=param,
        )
    put_member(con, group_id, user.id, new.role, now_ms())
    return list_members(con, group_id)


def remove_member(
    con: Connection, group_id: str, user_id: str, *, revokes_keys: bool
) -> list[Member]:
    """Ends a membership, in the writer, and with `revokes_keys` revokes the keys that this user made in the group;
    returns the members who stay.
    """
    if not drop_member(con, group_id, user_id):
        raise NotFound("This user is no member of the group.", param="userId")
    if revokes_keys:
        for key in list_keys_made_by(con, user_id, group_id):
            delete_key(con, key.id)
            drop_proxy(con, "key", key.id)
            delete_owned_endpoints(con, "service", key.id)
            emit(con, Event("key.deleted", {"id": key.id, "name": key.fields.name}))
    return list_members(con, group_id)


def _user(con: Connection, new: NewMember) -> User | None:
    if new.user_id is not None:
        return find_user(con, new.user_id)
    return find_by_email(con, new.email or "")

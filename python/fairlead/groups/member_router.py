"""`/api/me/groups`: what members do in their groups: see what is left, and see, make and change keys there.

A `member` sees the group's keys and changes keys that they made. An `admin` of a group changes every key in it
and in the groups below it, and manages its members. Only operators change the settings of a group, and the
fields of a key that would widen the gateway's permissions. A group of which the caller is not a member answers
404.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

from fastapi import APIRouter
from pydantic import Field

from fairlead import _core
from fairlead.calls.caller import MANAGING_SCOPES, Caller, CallerDep
from fairlead.errors import Forbidden, InvalidRequest, NotFound
from fairlead.gateway.keys.fields import KeyChange, KeyFields, NewKey, check_rules
from fairlead.gateway.keys.router import CreatedKey, KeyList, KeyView, preview_of, view_key
from fairlead.gateway.keys.table import (
    StoredKey,
    count_keys,
    delete_key,
    find_key,
    insert_key,
    list_keys,
    replace_key_text,
    update_key,
)
from fairlead.gateway.outbound.table import drop_proxy
from fairlead.groups.members import MemberRole, list_members, memberships_of
from fairlead.groups.membership import NewMember, add_member, remove_member
from fairlead.groups.router import RevokeKeys
from fairlead.groups.spending import GroupSpending, read_spending
from fairlead.groups.views import GroupLevel, MemberList, view_members
from fairlead.moment import now_ms
from fairlead.records.group_tree import GroupTree, read_tree
from fairlead.records.people import find_owner_person
from fairlead.records.webhook_endpoints import delete_owned_endpoints
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.store.services import ServicesDep
from fairlead.wire import Limit, Offset, Success, Wire, changed_names

router = APIRouter(prefix="/api/me/groups", tags=["groups"])

KEYS_MAX: Final = 1000
# Scopes that show a key its own rows alone.
OWN_SCOPES: Final = frozenset(str(each["scope"]) for each in _core.key_scopes() if each["is_own"])
# They would open more than the group does, or undo what an operator did to the key.
OPERATORS_FIELDS: Final = frozenset(
    {
        *("scopes", "disabled_guardrails", "no_log", "unpriced_models", "is_banned"),
        *("throttle_delay_ms", "group_id", "capture_bodies", "allowed_provider_objects"),
    }
)


# Fields by which operators allow a key more than its group's rules. A new secret would give these rights to another
# person.
OPENING: Final[dict[str, Callable[[KeyFields], bool]]] = {
    "allowed_provider_objects": lambda key: bool(key.allowed_provider_objects),
    "disabled_guardrails": lambda key: bool(key.disabled_guardrails),
    "no_log": lambda key: key.no_log,
    "unpriced_models": lambda key: key.unpriced_models == "allow",
}


class MyGroup(Wire):
    """A group that the caller is in, or that is below one that they administer."""

    id: str
    name: str
    role: MemberRole = Field(description="`admin` of a group is one of those below it, too.")
    path: list[GroupLevel] = Field(description="The groups above it, the topmost first.")


class MyGroups(Wire):
    groups: list[MyGroup]
    total: int


@dataclass(frozen=True, slots=True)
class _Membership:
    """The caller, and their role in the group of the request."""

    user_id: str
    group_id: str
    role: MemberRole

    def refuse_members(self) -> None:
        if self.role != "admin":
            raise Forbidden("Only an admin of the group says who its members are.")


def _user_id(con: Connection, caller: Caller) -> str:
    """The caller; the local command line acts for the owner."""
    if caller.principal.kind == "local":
        owner = find_owner_person(con)
        if owner is None:
            raise NotFound("There is no owner yet, who could be in a group.")
        return owner.id
    if caller.principal.kind != "session" or caller.principal.id is None:
        raise Forbidden(
            "These are the groups of a person: sign in, or use /api/groups as an operator."
        )
    return caller.principal.id


def _roles(con: Connection, user_id: str, tree: GroupTree) -> dict[str, MemberRole]:
    """The user's role in each group that they may see."""
    roles: dict[str, MemberRole] = {}
    for group_id, role in memberships_of(con, user_id).items():
        if role == "member":
            roles.setdefault(group_id, role)
        else:
            roles |= {below.id: "admin" for below in tree.below(group_id)}
    return roles


def _membership(con: Connection, caller: Caller, group_id: str) -> _Membership:
    user_id = _user_id(con, caller)
    role = _roles(con, user_id, read_tree(con)).get(group_id)
    if role is None:
        raise NotFound("You are in no group with this id.", param="id")
    return _Membership(user_id, group_id, role)


@router.get("", summary="The groups that one is in")
async def list_mine(services: ServicesDep, caller: CallerDep) -> MyGroups:
    def read_mine(con: Connection) -> list[MyGroup]:
        user_id = _user_id(con, caller)
        tree = read_tree(con)
        roles = _roles(con, user_id, tree)
        return [
            MyGroup.model_construct(
                id=group.id,
                name=group.name,
                role=roles[group.id],
                path=[
                    GroupLevel.model_construct(id=each.id, name=each.name)
                    for each in reversed(tree.path(group.id)[1:])
                ],
            )
            for group in tree.groups.values()
            if group.id in roles
        ]

    groups = await services.state.read(read_mine)
    return MyGroups.model_construct(groups=groups, total=len(groups))


@router.get("/{group_id}/spending", summary="Spending at the levels of one's group")
async def spending(group_id: str, services: ServicesDep, caller: CallerDep) -> GroupSpending:
    await services.state.read(lambda con: _membership(con, caller, group_id))
    return await read_spending(services, group_id)


@router.get("/{group_id}/keys", summary="The keys in one's group")
async def keys(
    group_id: str, services: ServicesDep, caller: CallerDep, limit: Limit = 50, offset: Offset = 0
) -> KeyList:
    def read_page(con: Connection) -> tuple[list[StoredKey], int]:
        _membership(con, caller, group_id)
        return list_keys(con, limit, offset, [group_id]), count_keys(con, [group_id])

    found, total = await services.state.read(read_page)
    return KeyList.model_construct(
        keys=[view_key(key) for key in found], total=total, limit=limit, offset=offset
    )


@router.post(
    "/{group_id}/keys",
    status_code=201,
    summary="Make a key in one's group; its text is shown only in this answer",
)
async def create_key(
    group_id: str, new: NewKey, services: ServicesDep, caller: CallerDep
) -> CreatedKey:
    """The key is under every limit and rule of the group, whatever it sets itself."""
    _refuse_operators_fields(new)
    check_rules(new)
    text, digest = _core.new_key()
    at_ms = now_ms()
    fields = new.model_copy(update={"group_id": group_id})

    def insert(con: Connection) -> StoredKey:
        membership = _membership(con, caller, group_id)
        if count_keys(con, [group_id]) >= KEYS_MAX:
            raise InvalidRequest(f"The group has {KEYS_MAX} keys already: revoke some first.")
        key = StoredKey(
            str(uuid4()), digest, preview_of(text), at_ms, at_ms, fields, membership.user_id
        )
        insert_key(con, key)
        emit(con, Event("key.created", {"id": key.id, "name": new.name}))
        return key

    stored = await services.state.commit(insert)
    return CreatedKey.model_construct(**dict(view_key(stored)), key=text)


@router.patch("/{group_id}/keys/{key_id}", summary="Change a key of one's group")
async def change_key(
    group_id: str, key_id: str, change: KeyChange, services: ServicesDep, caller: CallerDep
) -> KeyView:
    _refuse_operators_fields(change)

    def update(con: Connection) -> StoredKey:
        key = _changeable_key(con, caller, group_id, key_id)
        fields = key.fields.changed(change)
        check_rules(fields, key.fields)
        changed = replace(key, updated_at_ms=max(now_ms(), key.updated_at_ms), fields=fields)
        update_key(con, changed)
        event_data = {"id": key_id, "name": fields.name, "changed": changed_names(change)}
        emit(con, Event("key.updated", event_data))
        return changed

    return view_key(await services.state.commit(update))


@router.post("/{group_id}/keys/{key_id}/regenerate", summary="Give a key of one's group a new text")
async def regenerate_key(
    group_id: str, key_id: str, services: ServicesDep, caller: CallerDep
) -> CreatedKey:
    """The old text is refused everywhere when this returns."""
    text, digest = _core.new_key()

    def replace_text(con: Connection) -> StoredKey:
        key = _changeable_key(con, caller, group_id, key_id)
        at_ms = max(now_ms(), key.updated_at_ms)
        renewed = replace(key, hash=digest, preview=preview_of(text), updated_at_ms=at_ms)
        replace_key_text(con, renewed)
        event_data = {"id": key_id, "name": key.fields.name, "changed": ["key"]}
        emit(con, Event("key.updated", event_data))
        return renewed

    stored = await services.state.commit(replace_text)
    return CreatedKey.model_construct(**dict(view_key(stored)), key=text)


@router.delete("/{group_id}/keys/{key_id}", summary="Revoke a key of one's group")
async def revoke_key(
    group_id: str, key_id: str, services: ServicesDep, caller: CallerDep
) -> Success:
    def delete_row(con: Connection) -> None:
        key = _own_key(con, caller, group_id, key_id)
        delete_key(con, key_id)
        drop_proxy(con, "key", key_id)
        delete_owned_endpoints(con, "service", key_id)
        emit(con, Event("key.deleted", {"id": key_id, "name": key.fields.name}))

    await services.state.commit(delete_row)
    return Success()


@router.get("/{group_id}/members", summary="The members of one's group")
async def members(group_id: str, services: ServicesDep, caller: CallerDep) -> MemberList:
    def read_members(con: Connection) -> MemberList:
        _membership(con, caller, group_id)
        return view_members(list_members(con, group_id))

    return await services.state.read(read_members)


@router.post("/{group_id}/members", summary="Make a user a member of a group one administers")
async def put_member(
    group_id: str, new: NewMember, services: ServicesDep, caller: CallerDep
) -> MemberList:
    def add(con: Connection) -> MemberList:
        _membership(con, caller, group_id).refuse_members()
        return view_members(add_member(con, group_id, new))

    return await services.state.record(add)


@router.delete(
    "/{group_id}/members/{user_id}", summary="End a membership in a group one administers"
)
async def delete_member(
    group_id: str,
    user_id: str,
    services: ServicesDep,
    caller: CallerDep,
    *,
    revoke_keys: RevokeKeys = False,
) -> MemberList:
    """Members may end their own. The keys that the user made stay, unless `revokeKeys` is true."""

    def remove(con: Connection) -> MemberList:
        membership = _membership(con, caller, group_id)
        if user_id != membership.user_id:
            membership.refuse_members()
        return view_members(remove_member(con, group_id, user_id, revokes_keys=revoke_keys))

    return await services.state.commit(remove)


def _own_key(con: Connection, caller: Caller, group_id: str, key_id: str) -> StoredKey:
    """A key of the group that the caller may change."""
    membership = _membership(con, caller, group_id)
    key = find_key(con, key_id)
    if key is None or key.fields.group_id != group_id:
        raise NotFound("There is no API key with this id in the group.", param="keyId")
    if membership.role != "admin" and key.made_by != membership.user_id:
        raise Forbidden("Members change the keys that they made; ask an admin of the group.")
    if MANAGING_SCOPES.intersection(key.fields.scopes) or key.fields.is_banned:
        raise Forbidden(
            "This key is changed by operators alone: it manages the gateway, or is banned."
        )
    return key


def _changeable_key(con: Connection, caller: Caller, group_id: str, key_id: str) -> StoredKey:
    """A key of the group whose text and fields the caller may change: one that opens nothing beyond the group. A
    scope opens
    what an operator meant for whoever had the key then, so the key's new text is for an operator to give.
    """
    key = _own_key(con, caller, group_id, key_id)
    scope = next((scope for scope in key.fields.scopes if scope not in OWN_SCOPES), None)
    if scope is not None:
        raise Forbidden(
            f"This key has the scope {scope}, which an operator gave it: it is changed by operators alone. "
            "You can revoke it and make another."
        )
    given = next((name for name, opens in OPENING.items() if opens(key.fields)), None)
    if given is not None:
        name = KeyFields.model_fields[given].alias or given
        raise Forbidden(
            f"An operator set {name} of this key: it is changed by operators alone. You can revoke it and make "
            "another."
        )
    return key


def _refuse_operators_fields(body: KeyFields) -> None:
    sent = sorted(OPERATORS_FIELDS & body.model_fields_set)
    if sent:
        name = KeyFields.model_fields[sent[0]].alias or sent[0]
        raise Forbidden(f"{name} is set by operators alone; leave it out.", param=name)

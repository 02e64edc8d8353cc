"""`/api/groups`: groups of keys, their members, keys, and what is spent and left, for those who manage the gateway."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final
from uuid import uuid4

from fastapi import APIRouter, Query

from fairlead.errors import Conflict, InvalidRequest, NotFound
from fairlead.gateway.keys.router import KeyList, view_key
from fairlead.gateway.keys.table import StoredKey, count_keys, list_keys
from fairlead.groups.fields import GroupChange, NewGroup, check_rules
from fairlead.groups.members import list_members
from fairlead.groups.membership import NewMember, add_member, remove_member
from fairlead.groups.spending import GroupSpending, read_spending
from fairlead.groups.table import (
    StoredGroup,
    content_of_groups,
    delete_group,
    find_group,
    insert_group,
    list_groups,
    move_keys,
    update_group,
)
from fairlead.groups.views import GroupList, GroupView, MemberList, view_group, view_members
from fairlead.moment import now_ms
from fairlead.records.group_tree import LEVELS_MAX, check_group, read_tree
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.store.services import ServicesDep
from fairlead.wire import Limit, Offset, Success, changed_names

router = APIRouter(prefix="/api/groups", tags=["groups"])

GROUPS_MAX: Final = 10_000
NO_GROUP: Final = "none"
Tag = Annotated[
    str | None, Query(max_length=64, description="Groups that have this tag themselves.")
]
MoveKeysTo = Annotated[
    str | None,
    Query(
        alias="moveKeysTo",
        max_length=64,
        description="The new group of the keys: another group's id, or `none`.",
    ),
]
RevokeKeys = Annotated[
    bool, Query(alias="revokeKeys", description="Revoke the keys that they made in the group.")
]


@router.get("", summary="List groups of keys, oldest first")
async def list_all(
    services: ServicesDep, limit: Limit = 50, offset: Offset = 0, tag: Tag = None
) -> GroupList:
    def read_page(con: Connection) -> tuple[list[GroupView], int]:
        found = [each for each in list_groups(con) if tag is None or tag in each.fields.tags]
        tree, content = read_tree(con), content_of_groups(con)
        page = found[offset : offset + limit]
        return [view_group(each, tree, content) for each in page], len(found)

    groups, total = await services.state.read(read_page)
    return GroupList.model_construct(groups=groups, total=total, limit=limit, offset=offset)


@router.post("", status_code=201, summary="Make a group of keys")
async def create(new: NewGroup, services: ServicesDep) -> GroupView:
    check_rules(new)
    at_ms = now_ms()
    group = StoredGroup(str(uuid4()), at_ms, at_ms, new)

    def insert(con: Connection) -> GroupView:
        if len(read_tree(con).groups) >= GROUPS_MAX:
            raise Conflict(f"There are {GROUPS_MAX} groups already: delete some first.")
        _check_place(con, group.id, new.parent_id)
        insert_group(con, group)
        emit(con, Event("group.created", {"id": group.id, "name": new.name}))
        return _view(con, group)

    return await services.state.commit(insert)


@router.get("/{group_id}", summary="One group of keys")
async def read(group_id: str, services: ServicesDep) -> GroupView:
    return await services.state.read(lambda con: _view(con, found_group(con, group_id)))


@router.patch("/{group_id}", summary="Change a group; other fields keep their value")
async def change(group_id: str, change: GroupChange, services: ServicesDep) -> GroupView:
    """The change is in force when this returns. Money that its keys spent before it got another parent stays with the
    parent that they spent it under.
    """

    def update(con: Connection) -> GroupView:
        group = found_group(con, group_id)
        fields = group.fields.changed(change)
        check_rules(fields)
        if fields.parent_id != group.fields.parent_id:
            _check_place(con, group_id, fields.parent_id)
        changed = replace(group, updated_at_ms=max(now_ms(), group.updated_at_ms), fields=fields)
        update_group(con, changed)
        event_data = {"id": group_id, "name": fields.name, "changed": changed_names(change)}
        emit(con, Event("group.updated", event_data))
        return _view(con, changed)

    return await services.state.commit(update)


@router.delete("/{group_id}", summary="Delete a group that holds no other")
async def delete(group_id: str, services: ServicesDep, move_keys_to: MoveKeysTo = None) -> Success:
    """Refused while it has groups below it, and while it has keys, unless `moveKeysTo` names their new group."""

    def delete_row(con: Connection) -> None:
        group = found_group(con, group_id)
        content = content_of_groups(con)[group_id]
        if content.groups:
            raise Conflict(
                f"The group has {content.groups} groups below it: delete them first, or give them "
                "another parentId."
            )
        if content.keys or move_keys_to is not None:
            _empty(con, group_id, content.keys, move_keys_to)
        delete_group(con, group_id)
        emit(con, Event("group.deleted", {"id": group_id, "name": group.fields.name}))

    await services.state.commit(delete_row)
    return Success()


@router.get("/{group_id}/keys", summary="The keys in a group")
async def keys(
    group_id: str, services: ServicesDep, limit: Limit = 50, offset: Offset = 0
) -> KeyList:
    """Without those of the groups below it."""

    def read_page(con: Connection) -> tuple[list[StoredKey], int]:
        found_group(con, group_id)
        return list_keys(con, limit, offset, [group_id]), count_keys(con, [group_id])

    found, total = await services.state.read(read_page)
    return KeyList.model_construct(
        keys=[view_key(key) for key in found], total=total, limit=limit, offset=offset
    )


@router.get("/{group_id}/spending", summary="Spending at the levels of a group")
async def spending(group_id: str, services: ServicesDep) -> GroupSpending:
    await services.state.read(lambda con: found_group(con, group_id))
    return await read_spending(services, group_id)


@router.get("/{group_id}/members", summary="The members of a group")
async def members(group_id: str, services: ServicesDep) -> MemberList:
    def read_members(con: Connection) -> MemberList:
        found_group(con, group_id)
        return view_members(list_members(con, group_id))

    return await services.state.read(read_members)


@router.post("/{group_id}/members", summary="Make a user a member, or change their role")
async def put_member(group_id: str, new: NewMember, services: ServicesDep) -> MemberList:
    def add(con: Connection) -> MemberList:
        found_group(con, group_id)
        return view_members(add_member(con, group_id, new))

    return await services.state.record(add)


@router.delete("/{group_id}/members/{user_id}", summary="End a membership")
async def delete_member(
    group_id: str, user_id: str, services: ServicesDep, *, revoke_keys: RevokeKeys = False
) -> MemberList:
    """The keys that the user made stay, unless `revokeKeys` is true."""

    def remove(con: Connection) -> MemberList:
        found_group(con, group_id)
        return view_members(remove_member(con, group_id, user_id, revokes_keys=revoke_keys))

    return await services.state.commit(remove)


def found_group(con: Connection, group_id: str) -> StoredGroup:
    """The group with this id, or `NotFound`."""
    group = find_group(con, group_id)
    if group is None:
        raise NotFound("There is no group with this id.", param="id")
    return group


def _empty(con: Connection, group_id: str, count: int, move_keys_to: str | None) -> None:
    if move_keys_to is None:
        raise Conflict(
            f"The group has {count} keys: send moveKeysTo with the id of another group, or `none` "
            "to leave them in no group.",
            param="moveKeysTo",
        )
    target = None if move_keys_to == NO_GROUP else move_keys_to
    if target == group_id:
        raise InvalidRequest("moveKeysTo must name another group.", param="moveKeysTo")
    check_group(con, target, param="moveKeysTo")
    move_keys(con, group_id, target, now_ms())


def _check_place(con: Connection, group_id: str, parent_id: str | None) -> None:
    """`InvalidRequest` where the group cannot be below that parent."""
    if parent_id is None:
        return
    check_group(con, parent_id, param="parentId")
    tree = read_tree(con)
    if any(below.id == parent_id for below in tree.below(group_id)) or parent_id == group_id:
        raise InvalidRequest(
            "parentId must not be the group itself or a group below it.", param="parentId"
        )
    if len(tree.path(parent_id)) + tree.height(group_id) > LEVELS_MAX:
        raise InvalidRequest(
            f"parentId would make more than {LEVELS_MAX} levels of groups: choose one further up.",
            param="parentId",
        )


def _view(con: Connection, group: StoredGroup) -> GroupView:
    return view_group(group, read_tree(con), content_of_groups(con))

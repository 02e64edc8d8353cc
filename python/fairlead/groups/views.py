"""Groups and members as the API shows them."""

from __future__ import annotations

from pydantic import Field

from fairlead.groups.fields import GroupFields
from fairlead.groups.members import Member, MemberRole
from fairlead.groups.table import GroupContent, StoredGroup
from fairlead.moment import Time, moment_of
from fairlead.records.group_tree import GroupTree
from fairlead.wire import Wire

_EMPTY = GroupContent(0, 0, 0)


class GroupLevel(Wire):
    """A group on the path to the topmost."""

    id: str
    name: str


class GroupView(GroupFields):
    """A group as it is shown."""

    id: str
    name: str
    path: list[GroupLevel] = Field(description="The groups above it, the topmost first.")
    key_count: int = Field(description="Keys in it, without those of the groups below it.")
    group_count: int = Field(description="Groups right below it.")
    member_count: int
    created_at: Time
    updated_at: Time


class GroupList(Wire):
    groups: list[GroupView]
    total: int
    limit: int
    offset: int


class MemberView(Wire):
    user_id: str
    name: str
    email: str
    role: MemberRole
    since: Time


class MemberList(Wire):
    members: list[MemberView]
    total: int


def view_group(group: StoredGroup, tree: GroupTree, content: dict[str, GroupContent]) -> GroupView:
    """A group in its place."""
    above = tree.path(group.id)[1:]
    counts = content.get(group.id, _EMPTY)
    return GroupView.model_construct(
        id=group.id,
        path=[GroupLevel.model_construct(id=each.id, name=each.name) for each in reversed(above)],
        key_count=counts.keys,
        group_count=counts.groups,
        member_count=counts.members,
        created_at=moment_of(group.created_at_ms),
        updated_at=moment_of(group.updated_at_ms),
        **dict(group.fields),
    )


def view_members(members: list[Member]) -> MemberList:
    """The members of a group."""
    return MemberList.model_construct(
        members=[
            MemberView.model_construct(
                user_id=each.user_id,
                name=each.name,
                email=each.email,
                role=each.role,
                since=moment_of(each.created_at_ms),
            )
            for each in members
        ],
        total=len(members),
    )

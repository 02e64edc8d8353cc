"""The tree of groups as other packages see it; `fairlead.groups` stores them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from fairlead.errors import InvalidRequest
from fairlead.store.file import Connection

LEVELS_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class TreeGroup:
    """A group in its place."""

    id: str
    name: str
    parent_id: str | None
    tags: tuple[str, ...]


class GroupTree:
    """Every group, by its id."""

    def __init__(self, groups: Mapping[str, TreeGroup]) -> None:
        self.groups = groups

    def path(self, group_id: str | None) -> list[TreeGroup]:
        """The group and those above it, nearest first; empty for None and for an unknown one."""
        found: list[TreeGroup] = []
        while group_id is not None and len(found) < LEVELS_MAX:
            group = self.groups.get(group_id)
            if group is None or group in found:
                break
            found.append(group)
            group_id = group.parent_id
        return found

    def below(self, group_id: str) -> Iterator[TreeGroup]:
        """The group itself and every group below it."""
        return (
            group
            for group in self.groups.values()
            if any(each.id == group_id for each in self.path(group.id))
        )

    def height(self, group_id: str) -> int:
        """How many levels begin with this group: 1 for one without groups below it."""
        return max(
            (
                [each.id for each in self.path(below.id)].index(group_id) + 1
                for below in self.below(group_id)
            ),
            default=1,
        )

    def tags(self, group_id: str | None) -> set[str]:
        """The tags of the group and of those above it."""
        return {tag for group in self.path(group_id) for tag in group.tags}


def read_tree(con: Connection) -> GroupTree:
    """Every group."""
    rows = con.execute(
        "SELECT id, name, parent_id, tags FROM key_groups ORDER BY created_at_ms, id"
    ).fetchall()
    return GroupTree(
        {
            group_id: TreeGroup(group_id, name, parent_id, tuple(tags))
            for group_id, name, parent_id, tags in rows
        }
    )


def check_group(con: Connection, group_id: str | None, *, param: str = "groupId") -> None:
    """`InvalidRequest` where a group is named that is not there."""
    if group_id is None:
        return
    if con.execute("SELECT 1 FROM key_groups WHERE id = ?", [group_id]).fetchone() is None:
        raise InvalidRequest(
            f"{param} must be the id of a group, as GET /api/groups lists them; null for none.",
            param=param,
        )

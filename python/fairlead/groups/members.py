"""The table `key_group_members`: which users see and make keys of which group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from fairlead.errors import Conflict
from fairlead.store.file import Connection
from fairlead.store.table import read_number

MemberRole = Literal["admin", "member"]
MEMBERS_MAX: Final = 1000

_SELECT: Final = (
    "SELECT m.group_id, m.user_id, m.role, m.created_at_ms, u.name, u.email "
    "FROM key_group_members m JOIN users u ON u.id = m.user_id"
)


@dataclass(frozen=True, slots=True)
class Member:
    """A user in a group."""

    group_id: str
    user_id: str
    role: MemberRole
    created_at_ms: int
    name: str
    email: str


def list_members(con: Connection, group_id: str) -> list[Member]:
    """Members of a group, those who came first before the others."""
    rows = con.execute(
        f"{_SELECT} WHERE m.group_id = ? ORDER BY m.created_at_ms, m.user_id", [group_id]
    ).fetchall()
    return [Member(*row) for row in rows]


def memberships_of(con: Connection, user_id: str) -> dict[str, MemberRole]:
    """The groups that a user is in, each with their role there."""
    rows = con.execute(
        "SELECT group_id, role FROM key_group_members WHERE user_id = ?", [user_id]
    ).fetchall()
    return dict(rows)


def put_member(con: Connection, group_id: str, user_id: str, role: MemberRole, at_ms: int) -> None:
    """Makes a user a member, or changes their role, in the writer; raises `Conflict` at the limit."""
    changed = con.execute(
        "UPDATE key_group_members SET role = ? WHERE group_id = ? AND user_id = ? RETURNING 1",
        [role, group_id, user_id],
    ).fetchone()
    if changed is not None:
        return
    count_query = "SELECT count(*) FROM key_group_members WHERE group_id = ?"
    if read_number(con, count_query, [group_id]) >= MEMBERS_MAX:
        raise Conflict(f"A group has at most {MEMBERS_MAX} members: remove some first.")
    con.execute(
        "INSERT INTO key_group_members VALUES (?, ?, ?, ?)", [group_id, user_id, role, at_ms]
    )


def drop_member(con: Connection, group_id: str, user_id: str) -> bool:
    """Ends a membership, in the writer; False when there is none."""
    row = con.execute(
        "DELETE FROM key_group_members WHERE group_id = ? AND user_id = ? RETURNING 1",
        [group_id, user_id],
    ).fetchone()
    return row is not None

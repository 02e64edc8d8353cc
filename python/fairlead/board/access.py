"""Who may see and do what on the board.

A project is visible to its members, and to people who manage the gateway, who may do everything in
it. Everybody else is answered 404, as for an id that does not exist.

| role | may |
| --- | --- |
| viewer | see |
| contributor | also make, change, move and delete todos, sprints and tags |
| maintainer | also change and delete the project and its members |
"""

from __future__ import annotations

from fairlead.board.wire import MemberRole
from fairlead.errors import Conflict, Forbidden, NotFound
from fairlead.records.people import Person
from fairlead.store.file import Connection

POWERS: dict[MemberRole, int] = {"viewer": 0, "contributor": 1, "maintainer": 2}


def role_in(con: Connection, person: Person, project_id: str) -> MemberRole | None:
    """The person's role in a project; None where the project does not exist or is not visible to them."""
    row = con.execute(
        "SELECT m.role FROM board_projects p "
        "LEFT JOIN board_members m ON m.project_id = p.id AND m.user_id = ? WHERE p.id = ?",
        [person.id, project_id],
    ).fetchone()
    if row is None:
        return None
    if person.manages:
        return "maintainer"
    role: MemberRole | None = row[0]
    return role


# Many parameters: `what` and `param` only word the refusal.
def require(
    con: Connection,
    person: Person,
    project_id: str,
    least: MemberRole,
    *,
    what: str = "project",
    param: str = "id",
) -> MemberRole:
    """The person's role, which is at least `least`. `NotFound` where the project is not visible to the
    person (`what` is the kind of record that the message names), `Forbidden` for a lesser role.
    """
    role = role_in(con, person, project_id)
    if role is None:
        raise not_found(what, param)
    if POWERS[role] < POWERS[least]:
        raise Forbidden(
            f"This needs the role `{least}` in the project; yours is `{role}`: "
            "ask a maintainer of the project."
        )
    return role


def owner_project(con: Connection, table: str, record_id: str, what: str) -> str:
    """The id of the project that a record of one of the board's tables belongs to, or `NotFound`."""
    row = con.execute(f"SELECT project_id FROM {table} WHERE id = ?", [record_id]).fetchone()
    if row is None:
        raise not_found(what)
    return str(row[0])


def not_found(what: str, param: str = "id") -> NotFound:
    """The error for a record that does not exist or is not visible: callers cannot tell which."""
    return NotFound(f"There is no {what} with this id.", param=param)


def refuse_stale(stored: int, given: int | None) -> None:
    """`Conflict` when the change was made on an older version."""
    if given is not None and given != stored:
        raise Conflict(
            f"It was changed in the meantime: its version is {stored}, not {given}. Read it again, and "
            "repeat the change.",
            param="version",
        )

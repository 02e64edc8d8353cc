"""Who may see and do what on the board.

A project is seen by its members, and by those who manage the gateway, who may do everything in it.
To all others it is as if it were not there: the same 404 as for an id that was never given.

| role | may |
| --- | --- |
| viewer | see |
| contributor | and make, change, move and delete todos, sprints and tags |
| maintainer | and change and delete the project and its members |
"""

from __future__ import annotations

from fairlead.board.wire import MemberRole
from fairlead.errors import Conflict, Forbidden, NotFound
from fairlead.store.file import Connection
from fairlead.store.people import Person

POWERS: dict[MemberRole, int] = {"viewer": 0, "contributor": 1, "maintainer": 2}


def role_in(con: Connection, person: Person, project_id: str) -> MemberRole | None:
    """The person's role in a project; None when it is not there for them."""
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


def require(
    con: Connection,
    person: Person,
    project_id: str,
    least: MemberRole,
    *,
    what: str = "project",
    param: str = "id",
) -> MemberRole:
    """The person's role, which is at least this one. `NotFound` (of `what`, which belongs to the
    project) to whom does not see it, `Forbidden` to whom may do less.
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
    """To which project a record belongs; `table` is one of this room's."""
    row = con.execute(f"SELECT project_id FROM {table} WHERE id = ?", [record_id]).fetchone()
    if row is None:
        raise not_found(what)
    return str(row[0])


def not_found(what: str, param: str = "id") -> NotFound:
    """The same whether it is not there or not there for the caller."""
    return NotFound(f"There is no {what} with this id.", param=param)


def refuse_stale(stored: int, given: int | None) -> None:
    """`Conflict` when the change was made on an older version."""
    if given is not None and given != stored:
        raise Conflict(
            f"It was changed meanwhile: its version is {stored}, not {given}. Read it again, and "
            "make the change on what it is now.",
            param="version",
        )


def count(con: Connection, query: str, values: list[object]) -> int:
    """The number that a query of one count gives."""
    row = con.execute(query, values).fetchone()
    return int(row[0]) if row else 0

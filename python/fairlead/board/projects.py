"""Projects and their members, in a transaction: reads on a reader, changes in the writer."""

from __future__ import annotations

from typing import Any, get_args
from uuid import uuid4

from fairlead.board.access import (
    not_found,
    owner_project,
    refuse_stale,
    require,
)
from fairlead.board.fields import MemberChange, NewMember, NewProject, ProjectChange
from fairlead.board.views import (
    Deleted,
    MemberList,
    MemberView,
    PersonList,
    PersonView,
    ProjectList,
    ProjectView,
)
from fairlead.board.wire import MemberRole, Status
from fairlead.errors import Conflict, InvalidRequest
from fairlead.moment import moment_of, now_ms
from fairlead.records.people import Person, count_people, find_person
from fairlead.records.people import list_people as read_people
from fairlead.store.file import Connection
from fairlead.store.table import read_number

PROJECTS_MAX = 1_000
MEMBERS_MAX = 500

_VISIBLE = (
    "FROM board_projects p LEFT JOIN board_members m ON m.project_id = p.id AND m.user_id = ? "
    "WHERE (? OR m.role IS NOT NULL)"
)
_MEMBER = (
    "SELECT m.id, m.project_id, m.user_id, u.name, u.email, m.role FROM board_members m "
    "JOIN users u ON u.id = m.user_id AND u.is_active"
)


def list_people(con: Connection, _: Person, limit: int, offset: int) -> PersonList:
    """Who may be made a member, by name: everybody who may sign in."""
    return PersonList(
        people=[
            PersonView(id=each.id, name=each.name, email=each.email)
            for each in read_people(con, limit, offset)
        ],
        total=count_people(con),
        limit=limit,
        offset=offset,
    )


def list_projects(con: Connection, person: Person, limit: int, offset: int) -> ProjectList:
    """The projects that are visible to the person, by name."""
    values = [person.id, person.manages]
    rows = con.execute(
        "SELECT p.id, p.name, p.description, m.role, p.created_at_ms, p.updated_at_ms, p.version "
        f"{_VISIBLE} ORDER BY lower(p.name), p.id LIMIT ? OFFSET ?",
        [*values, limit, offset],
    ).fetchall()
    counts = _count_todos(con, [row[0] for row in rows])
    return ProjectList(
        projects=[_project(row, person, counts) for row in rows],
        total=read_number(con, f"SELECT count(*) {_VISIBLE}", list(values)),
        limit=limit,
        offset=offset,
    )


def get_project(con: Connection, person: Person, project_id: str) -> ProjectView:
    """One project, or `NotFound`."""
    row = con.execute(
        "SELECT p.id, p.name, p.description, m.role, p.created_at_ms, p.updated_at_ms, p.version "
        f"{_VISIBLE} AND p.id = ?",
        [person.id, person.manages, project_id],
    ).fetchone()
    if row is None:
        raise not_found("project")
    return _project(row, person, _count_todos(con, [project_id]))


def create_project(con: Connection, person: Person, body: NewProject) -> ProjectView:
    """Creates a project, whose first maintainer is the person."""
    if read_number(con, "SELECT count(*) FROM board_projects", []) >= PROJECTS_MAX:
        raise Conflict(f"There are {PROJECTS_MAX} projects already: delete some first.")
    project_id, at_ms = str(uuid4()), now_ms()
    con.execute(
        "INSERT INTO board_projects (id, name, description, next_number, created_by, "
        "created_at_ms, updated_at_ms, version) VALUES (?, ?, ?, 1, ?, ?, ?, 1)",
        [project_id, body.name, body.description, person.id, at_ms, at_ms],
    )
    _insert_member(con, project_id, person.id, "maintainer")
    return get_project(con, person, project_id)


def change_project(
    con: Connection, person: Person, project_id: str, body: ProjectChange
) -> ProjectView:
    """Changes a project, for maintainers."""
    require(con, person, project_id, "maintainer")
    now = get_project(con, person, project_id)
    refuse_stale(now.version, body.version)
    changed = now.model_copy(update=body.changes())
    con.execute(
        "UPDATE board_projects SET name = ?, description = ?, updated_at_ms = ?, version = ? "
        "WHERE id = ?",
        [changed.name, changed.description, now_ms(), now.version + 1, project_id],
    )
    return get_project(con, person, project_id)


def delete_project(con: Connection, person: Person, project_id: str) -> Deleted:
    """Deletes a project and everything in it, for maintainers."""
    require(con, person, project_id, "maintainer")
    con.execute(
        "DELETE FROM board_todo_tags WHERE todo_id IN "
        "(SELECT id FROM board_todos WHERE project_id = ?)",
        [project_id],
    )
    for table in ("board_todos", "board_tags", "board_sprints", "board_members"):
        con.execute(f"DELETE FROM {table} WHERE project_id = ?", [project_id])
    con.execute("DELETE FROM board_projects WHERE id = ?", [project_id])
    return Deleted(deleted=project_id)


def list_members(
    con: Connection, person: Person, project_id: str, limit: int, offset: int
) -> MemberList:
    """The members of a project, by name."""
    require(con, person, project_id, "viewer")
    rows = con.execute(
        f"{_MEMBER} WHERE m.project_id = ? ORDER BY lower(u.name), m.id LIMIT ? OFFSET ?",
        [project_id, limit, offset],
    ).fetchall()
    total = read_number(
        con,
        "SELECT count(*) FROM board_members m JOIN users u ON u.id = m.user_id AND u.is_active "
        "WHERE m.project_id = ?",
        [project_id],
    )
    return MemberList(
        members=[_member(row) for row in rows], total=total, limit=limit, offset=offset
    )


def add_member(con: Connection, person: Person, project_id: str, body: NewMember) -> MemberView:
    """Adds a member, for maintainers. `InvalidRequest` for an unknown person, `Conflict` for a member."""
    require(con, person, project_id, "maintainer")
    if find_person(con, body.user_id) is None:
        raise InvalidRequest(
            "userId must be the id of somebody who may sign in: see the list of people.",
            param="userId",
        )
    members = "SELECT count(*) FROM board_members WHERE project_id = ?"
    if read_number(con, f"{members} AND user_id = ?", [project_id, body.user_id]):
        raise Conflict("This person is a member already: change the role.", param="userId")
    if read_number(con, members, [project_id]) >= MEMBERS_MAX:
        raise Conflict(f"The project has {MEMBERS_MAX} members already: remove some first.")
    return _read_member(con, _insert_member(con, project_id, body.user_id, body.role))


def change_member(
    con: Connection, person: Person, member_id: str, body: MemberChange
) -> MemberView:
    """Changes a role, for maintainers. `Conflict` where no maintainer would be left."""
    project_id = _require_maintainer(con, person, member_id)
    con.execute("UPDATE board_members SET role = ? WHERE id = ?", [body.role, member_id])
    _refuse_unmaintained(con, project_id)
    return _read_member(con, member_id)


def remove_member(con: Connection, person: Person, member_id: str) -> Deleted:
    """Removes a member, for maintainers and for the member; todos stay assigned to the person."""
    member = _read_member(con, member_id)
    if member.user_id == person.id:
        require(con, person, member.project_id, "viewer", what="member")
    else:
        _require_maintainer(con, person, member_id)
    con.execute("DELETE FROM board_members WHERE id = ?", [member_id])
    _refuse_unmaintained(con, member.project_id)
    return Deleted(deleted=member_id)


def _require_maintainer(con: Connection, person: Person, member_id: str) -> str:
    project_id = owner_project(con, "board_members", member_id, "member")
    require(con, person, project_id, "maintainer", what="member")
    return project_id


def _refuse_unmaintained(con: Connection, project_id: str) -> None:
    query = "SELECT count(*) FROM board_members WHERE project_id = ? AND role = 'maintainer'"
    if not read_number(con, query, [project_id]):
        raise Conflict("A project needs a maintainer: make somebody else one first.", param="role")


def _insert_member(con: Connection, project_id: str, user_id: str, role: MemberRole) -> str:
    member_id = str(uuid4())
    con.execute(
        "INSERT INTO board_members (id, project_id, user_id, role, created_at_ms) "
        "VALUES (?, ?, ?, ?, ?)",
        [member_id, project_id, user_id, role, now_ms()],
    )
    return member_id


def _read_member(con: Connection, member_id: str) -> MemberView:
    row = con.execute(f"{_MEMBER} WHERE m.id = ?", [member_id]).fetchone()
    if row is None:
        raise not_found("member")
    return _member(row)


def _member(row: tuple[Any, ...]) -> MemberView:
    names = ("id", "project_id", "user_id", "name", "email", "role")
    return MemberView.model_construct(**dict(zip(names, row, strict=True)))


def _count_todos(con: Connection, project_ids: list[str]) -> dict[str, dict[Status, int]]:
    counts: dict[str, dict[Status, int]] = {
        each: dict.fromkeys(get_args(Status), 0) for each in project_ids
    }
    for project_id, status, number in con.execute(
        "SELECT project_id, status, count(*) FROM board_todos "
        "WHERE project_id IN (SELECT unnest(?::VARCHAR[])) GROUP BY project_id, status",
        [project_ids],
    ).fetchall():
        counts[project_id][status] = number
    return counts


def _project(
    row: tuple[Any, ...], person: Person, counts: dict[str, dict[Status, int]]
) -> ProjectView:
    project_id, name, description, role, created_at_ms, updated_at_ms, version = row
    return ProjectView.model_construct(
        id=project_id,
        name=name,
        description=description,
        role="maintainer" if person.manages else role,
        todos=counts[project_id],
        created_at=moment_of(created_at_ms),
        updated_at=moment_of(updated_at_ms),
        version=version,
    )

"""Todos and their order, in a transaction: reads on a reader, changes in the writer.

A move names the todo that is to come next to the moved one, never a position, and there is one
writer: of moves at the same time, each still puts the todo where its sender meant it to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import uuid4

from fairlead.board.access import not_found, owner_project, refuse_stale, require, role_in
from fairlead.board.fields import NewTodo, TodoChange, TodoMove
from fairlead.board.planning import find_tag, insert_tag
from fairlead.board.projects import get_project
from fairlead.board.rank import RANK_MAX, RanksExhausted, rank_between, spread
from fairlead.board.views import Board, Deleted, TodoList, TodoTag, TodoView
from fairlead.board.wire import Status
from fairlead.errors import Conflict, InvalidRequest
from fairlead.moment import moment_of, now_ms
from fairlead.records.people import Person, find_person
from fairlead.store.file import Connection
from fairlead.store.table import read_number

TODOS_MAX = 10_000

_COLUMNS = (
    "id",
    "project_id",
    "number",
    "title",
    "body",
    "status",
    "rank",
    "assignee_id",
    "assignee_name",
    "due_on",
    "sprint_id",
    "sprint_name",
)
_FROM = (
    "FROM board_todos t LEFT JOIN users u ON u.id = t.assignee_id AND u.is_active "
    "LEFT JOIN board_sprints s ON s.id = t.sprint_id"
)
_SELECT = (
    "SELECT t.id, t.project_id, t.number, t.title, t.body, t.status, t.rank, u.id, u.name, "
    f"t.due_on, s.id, s.name, t.created_at_ms, t.updated_at_ms, t.done_at_ms, t.version {_FROM}"
)
_TAGGED = (
    "t.id IN (SELECT a.todo_id FROM board_todo_tags a JOIN board_tags g ON g.id = a.tag_id "
    "WHERE lower(g.name) = lower(?))"
)


@dataclass(frozen=True, slots=True)
class TodoFilter:
    """A choice among the todos of a project; a field that is None excludes none. `after_rank`
    continues a list where the last part ended, whatever was moved since.
    """

    status: Status | None = None
    assignee_id: str | None = None
    sprint_id: str | None = None
    tag: str | None = None
    text: str | None = None
    due_before: date | None = None
    after_rank: str | None = None

    def clause(self, project_id: str) -> tuple[str, list[object]]:
        """A WHERE and its values."""
        parts: list[tuple[str, object]] = [("t.project_id = ?", project_id)]
        for rule, value in (
            ("t.status = ?", self.status),
            ("u.id = ?", self.assignee_id),
            ("t.sprint_id = ?", self.sprint_id),
            ("t.due_on < ?", self.due_before),
            ("t.rank > ?", self.after_rank),
            (_TAGGED, self.tag),
            ("contains(lower(t.title || chr(10) || t.body), lower(?))", self.text),
        ):
            if value is not None:
                parts.append((rule, value))
        return " WHERE " + " AND ".join(rule for rule, _ in parts), [value for _, value in parts]


# Many parameters: they are those of the route and of the tool, which are made from this signature.
def list_todos(
    con: Connection,
    person: Person,
    project_id: str,
    todo_filter: TodoFilter,
    limit: int,
    offset: int,
) -> TodoList:
    """A project's todos in their order."""
    require(con, person, project_id, "viewer")
    where, values = todo_filter.clause(project_id)
    rows = con.execute(
        f"{_SELECT}{where} ORDER BY t.rank, t.id LIMIT ? OFFSET ?", [*values, limit, offset]
    ).fetchall()
    return TodoList(
        todos=_views(con, rows),
        total=read_number(con, f"SELECT count(*) {_FROM}{where}", values),
        limit=limit,
        offset=offset,
    )


def get_board(con: Connection, person: Person, project_id: str) -> Board:
    """A project and the first 50 todos of each status, in their order."""
    project = get_project(con, person, project_id)
    columns = {
        status: list_todos(con, person, project_id, TodoFilter(status), 50, 0).todos
        for status in project.todos
    }
    return Board(project=project, columns=columns)


def get_todo(con: Connection, person: Person, todo_id: str) -> TodoView:
    """One todo, or `NotFound`."""
    rows = con.execute(f"{_SELECT} WHERE t.id = ?", [todo_id]).fetchall()
    if not rows:
        raise not_found("todo")
    require(con, person, rows[0][1], "viewer", what="todo")
    return _views(con, rows)[0]


def create_todo(con: Connection, person: Person, project_id: str, body: NewTodo) -> TodoView:
    """Creates a todo, for contributors."""
    require(con, person, project_id, "contributor")
    count_query = "SELECT count(*) FROM board_todos WHERE project_id = ?"
    if read_number(con, count_query, [project_id]) >= TODOS_MAX:
        raise Conflict(f"The project has {TODOS_MAX} todos already: delete some first.")
    _check_links(con, project_id, body.assignee_id, body.sprint_id)
    todo_id, at_ms = str(uuid4()), now_ms()
    rank = _rank_at(con, project_id, todo_id, body.before, body.after)
    number = read_number(con, "SELECT next_number FROM board_projects WHERE id = ?", [project_id])
    con.execute("UPDATE board_projects SET next_number = ? WHERE id = ?", [number + 1, project_id])
    con.execute(
        "INSERT INTO board_todos (id, project_id, number, title, body, status, rank, assignee_id, "
        "due_on, sprint_id, created_by, created_at_ms, updated_at_ms, done_at_ms, version) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)",
        [
            todo_id,
            project_id,
            number,
            body.title,
            body.body,
            body.status,
            rank,
            body.assignee_id,
            body.due_on,
            body.sprint_id,
            person.id,
            at_ms,
            at_ms,
            at_ms if body.status == "done" else None,
        ],
    )
    _tag_with(con, project_id, todo_id, body.tags)
    return get_todo(con, person, todo_id)


def change_todo(con: Connection, person: Person, todo_id: str, body: TodoChange) -> TodoView:
    """Changes a todo, for contributors."""
    now = _changeable(con, person, todo_id)
    refuse_stale(now.version, body.version)
    changes = body.changes()
    tags: list[str] | None = changes.pop("tags", None)
    _check_links(con, now.project_id, changes.get("assignee_id"), changes.get("sprint_id"))
    changed = now.model_copy(update=changes)
    at_ms = now_ms()
    con.execute(
        "UPDATE board_todos SET title = ?, body = ?, status = ?, assignee_id = ?, due_on = ?, "
        "sprint_id = ?, done_at_ms = CASE WHEN ? <> 'done' THEN NULL ELSE coalesce(done_at_ms, ?) "
        "END, updated_at_ms = ?, version = ? WHERE id = ?",
        [
            changed.title,
            changed.body,
            changed.status,
            changed.assignee_id,
            changed.due_on,
            changed.sprint_id,
            changed.status,
            at_ms,
            at_ms,
            now.version + 1,
            todo_id,
        ],
    )
    if tags is not None:
        con.execute("DELETE FROM board_todo_tags WHERE todo_id = ?", [todo_id])
        _tag_with(con, now.project_id, todo_id, tags)
    return get_todo(con, person, todo_id)


def move_todo(con: Connection, person: Person, todo_id: str, body: TodoMove) -> TodoView:
    """Moves a todo, for contributors. `InvalidRequest` for a neighbour that is not in the project."""
    now = _changeable(con, person, todo_id)
    refuse_stale(now.version, body.version)
    rank = _rank_at(con, now.project_id, todo_id, body.before, body.after)
    status, at_ms = body.status or now.status, now_ms()
    con.execute(
        "UPDATE board_todos SET status = ?, rank = ?, done_at_ms = CASE WHEN ? <> 'done' THEN NULL "
        "ELSE coalesce(done_at_ms, ?) END, updated_at_ms = ?, version = ? WHERE id = ?",
        [status, rank, status, at_ms, at_ms, now.version + 1, todo_id],
    )
    return get_todo(con, person, todo_id)


def delete_todo(con: Connection, person: Person, todo_id: str) -> Deleted:
    """Deletes a todo, for contributors."""
    project_id = owner_project(con, "board_todos", todo_id, "todo")
    require(con, person, project_id, "contributor", what="todo")
    con.execute("DELETE FROM board_todo_tags WHERE todo_id = ?", [todo_id])
    con.execute("DELETE FROM board_todos WHERE id = ?", [todo_id])
    return Deleted(deleted=todo_id)


def _changeable(con: Connection, person: Person, todo_id: str) -> TodoView:
    now = get_todo(con, person, todo_id)
    require(con, person, now.project_id, "contributor", what="todo")
    return now


def _check_links(
    con: Connection, project_id: str, assignee_id: str | None, sprint_id: str | None
) -> None:
    if assignee_id is not None:
        assignee = find_person(con, assignee_id)
        if assignee is None or role_in(con, assignee, project_id) is None:
            raise InvalidRequest(
                "assigneeId must be the id of somebody who sees the project: add them as a member.",
                param="assigneeId",
            )
    count_query = "SELECT count(*) FROM board_sprints WHERE id = ? AND project_id = ?"
    if sprint_id is not None and not read_number(con, count_query, [sprint_id, project_id]):
        raise InvalidRequest(
            "sprintId must be the id of a sprint of this project: see its list of sprints.",
            param="sprintId",
        )


def _tag_with(con: Connection, project_id: str, todo_id: str, names: list[str]) -> None:
    for name in names:
        tag_id = find_tag(con, project_id, name) or insert_tag(con, project_id, name)
        count_query = "SELECT count(*) FROM board_todo_tags WHERE todo_id = ? AND tag_id = ?"
        if not read_number(con, count_query, [todo_id, tag_id]):
            con.execute(
                "INSERT INTO board_todo_tags (todo_id, tag_id) VALUES (?, ?)", [todo_id, tag_id]
            )


def _rank_at(
    con: Connection, project_id: str, todo_id: str, before: str | None, after: str | None
) -> str:
    for _ in range(2):
        low, high = _neighbours(con, project_id, todo_id, before, after)
        try:
            rank = rank_between(low, high)
        except RanksExhausted:
            rank = None
        if rank is not None and len(rank) <= RANK_MAX:
            return rank
        _rank_all(con, project_id)
    raise Conflict("The project's todos cannot be put in order; try again.")


def _neighbours(
    con: Connection, project_id: str, todo_id: str, before: str | None, after: str | None
) -> tuple[str | None, str | None]:
    """The ranks before and after the place of a todo, which itself is left out; None is an end."""
    anchor = before or after
    others = "FROM board_todos WHERE project_id = ? AND id <> ?"
    if anchor is None:
        row = con.execute(f"SELECT max(rank) {others}", [project_id, todo_id]).fetchone()
        return (row[0] if row else None), None
    row = con.execute(f"SELECT rank {others} AND id = ?", [project_id, todo_id, anchor]).fetchone()
    if row is None:
        name = "before" if before else "after"
        raise InvalidRequest(
            f"{name} must be the id of another todo of the same project.", param=name
        )
    rank: str = row[0]
    query = (
        f"SELECT {'max' if before else 'min'}(rank) {others} AND rank {'<' if before else '>'} ?"
    )
    beyond = con.execute(query, [project_id, todo_id, rank]).fetchone()
    other: str | None = beyond[0] if beyond else None
    return (other, rank) if before else (rank, other)


def _rank_all(con: Connection, project_id: str) -> None:
    """Gives every todo of a project a short rank and keeps their order. Versions stay: for clients
    the todos did not change.
    """
    rows = con.execute(
        "SELECT id FROM board_todos WHERE project_id = ? ORDER BY rank, id", [project_id]
    ).fetchall()
    con.executemany(
        "UPDATE board_todos SET rank = ? WHERE id = ?",
        [[rank, row[0]] for rank, row in zip(spread(len(rows)), rows, strict=True)],
    )


def _views(con: Connection, rows: list[tuple[Any, ...]]) -> list[TodoView]:
    tags: dict[str, list[TodoTag]] = {row[0]: [] for row in rows}
    for todo_id, tag_id, name, color in con.execute(
        "SELECT a.todo_id, g.id, g.name, g.color FROM board_todo_tags a "
        "JOIN board_tags g ON g.id = a.tag_id WHERE a.todo_id IN (SELECT unnest(?::VARCHAR[])) "
        "ORDER BY lower(g.name)",
        [list(tags)],
    ).fetchall():
        tags[todo_id].append(TodoTag.model_construct(id=tag_id, name=name, color=color))
    return [_view(row, tags[row[0]]) for row in rows]


def _view(row: tuple[Any, ...], tags: list[TodoTag]) -> TodoView:
    *rest, created_at_ms, updated_at_ms, done_at_ms, version = row
    return TodoView.model_construct(
        **dict(zip(_COLUMNS, rest, strict=True)),
        tags=tags,
        created_at=moment_of(created_at_ms),
        updated_at=moment_of(updated_at_ms),
        done_at=None if done_at_ms is None else moment_of(done_at_ms),
        version=version,
    )

"""Sprints and tags, in a transaction: reads on a reader, changes in the writer."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from fairlead.board.access import not_found, owner_project, refuse_stale, require
from fairlead.board.fields import NewSprint, NewTag, SprintChange, TagChange, refuse_backwards
from fairlead.board.views import Deleted, SprintList, SprintView, TagList, TagView
from fairlead.errors import Conflict
from fairlead.moment import moment_of, now_ms
from fairlead.records.people import Person
from fairlead.store.file import Connection
from fairlead.store.table import read_number

SPRINTS_MAX = 500
TAGS_MAX = 500

_SPRINT = (
    "SELECT s.id, s.project_id, s.name, s.goal, s.status, s.starts_on, s.ends_on, "
    "(SELECT count(*) FROM board_todos t WHERE t.sprint_id = s.id), "
    "(SELECT count(*) FROM board_todos t WHERE t.sprint_id = s.id AND t.status = 'done'), "
    "s.created_at_ms, s.updated_at_ms, s.version FROM board_sprints s"
)
_TAG = (
    "SELECT g.id, g.project_id, g.name, g.color, "
    "(SELECT count(*) FROM board_todo_tags a WHERE a.tag_id = g.id), g.version FROM board_tags g"
)


# ------------------------------------------------------------------------------------- sprints


def list_sprints(
    con: Connection, person: Person, project_id: str, limit: int, offset: int
) -> SprintList:
    """Sprints of a project: active, then planned, then closed ones, each group by start."""
    require(con, person, project_id, "viewer")
    rows = con.execute(
        f"{_SPRINT} WHERE s.project_id = ? ORDER BY list_position(ARRAY['active', 'planned', 'closed'], "
        "s.status), s.starts_on NULLS LAST, s.created_at_ms, s.id LIMIT ? OFFSET ?",
        [project_id, limit, offset],
    ).fetchall()
    total = read_number(
        con, "SELECT count(*) FROM board_sprints WHERE project_id = ?", [project_id]
    )
    return SprintList(
        sprints=[_sprint(row) for row in rows], total=total, limit=limit, offset=offset
    )


def get_sprint(con: Connection, person: Person, sprint_id: str) -> SprintView:
    """One sprint, or `NotFound`."""
    row = con.execute(f"{_SPRINT} WHERE s.id = ?", [sprint_id]).fetchone()
    if row is None:
        raise not_found("sprint")
    require(con, person, row[1], "viewer", what="sprint")
    return _sprint(row)


def create_sprint(con: Connection, person: Person, project_id: str, body: NewSprint) -> SprintView:
    """Creates a sprint, for contributors."""
    require(con, person, project_id, "contributor")
    count_query = "SELECT count(*) FROM board_sprints WHERE project_id = ?"
    if read_number(con, count_query, [project_id]) >= SPRINTS_MAX:
        raise Conflict(f"The project has {SPRINTS_MAX} sprints already: delete some first.")
    sprint_id, at_ms = str(uuid4()), now_ms()
    con.execute(
        "INSERT INTO board_sprints (id, project_id, name, goal, status, starts_on, ends_on, "
        "created_at_ms, updated_at_ms, version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1)",
        [
            sprint_id,
            project_id,
            body.name,
            body.goal,
            body.status,
            body.starts_on,
            body.ends_on,
            at_ms,
            at_ms,
        ],
    )
    return get_sprint(con, person, sprint_id)


def change_sprint(
    con: Connection, person: Person, sprint_id: str, body: SprintChange
) -> SprintView:
    """Changes a sprint, for contributors."""
    now = get_sprint(con, person, sprint_id)
    require(con, person, now.project_id, "contributor", what="sprint")
    refuse_stale(now.version, body.version)
    changed = now.model_copy(update=body.changes())
    refuse_backwards(changed.starts_on, changed.ends_on)
    con.execute(
        "UPDATE board_sprints SET name = ?, goal = ?, status = ?, starts_on = ?, ends_on = ?, "
        "updated_at_ms = ?, version = ? WHERE id = ?",
        [
            changed.name,
            changed.goal,
            changed.status,
            changed.starts_on,
            changed.ends_on,
            now_ms(),
            now.version + 1,
            sprint_id,
        ],
    )
    return get_sprint(con, person, sprint_id)


def delete_sprint(con: Connection, person: Person, sprint_id: str) -> Deleted:
    """Deletes a sprint, for contributors; its todos stay, without a sprint."""
    project_id = owner_project(con, "board_sprints", sprint_id, "sprint")
    require(con, person, project_id, "contributor", what="sprint")
    con.execute(
        "UPDATE board_todos SET sprint_id = NULL, updated_at_ms = ?, version = version + 1 "
        "WHERE sprint_id = ?",
        [now_ms(), sprint_id],
    )
    con.execute("DELETE FROM board_sprints WHERE id = ?", [sprint_id])
    return Deleted(deleted=sprint_id)


def _sprint(row: tuple[Any, ...]) -> SprintView:
    *rest, created_at_ms, updated_at_ms, version = row
    names = (
        "id",
        "project_id",
        "name",
        "goal",
        "status",
        "starts_on",
        "ends_on",
        "todos",
        "todos_done",
    )
    return SprintView.model_construct(
        **dict(zip(names, rest, strict=True)),
        created_at=moment_of(created_at_ms),
        updated_at=moment_of(updated_at_ms),
        version=version,
    )


# ---------------------------------------------------------------------------------------- tags


def list_tags(con: Connection, person: Person, project_id: str, limit: int, offset: int) -> TagList:
    """The tags of a project, by name."""
    require(con, person, project_id, "viewer")
    rows = con.execute(
        f"{_TAG} WHERE g.project_id = ? ORDER BY lower(g.name), g.id LIMIT ? OFFSET ?",
        [project_id, limit, offset],
    ).fetchall()
    total = read_number(con, "SELECT count(*) FROM board_tags WHERE project_id = ?", [project_id])
    return TagList(tags=[_tag(row) for row in rows], total=total, limit=limit, offset=offset)


def get_tag(con: Connection, person: Person, tag_id: str) -> TagView:
    """One tag, or `NotFound`."""
    row = con.execute(f"{_TAG} WHERE g.id = ?", [tag_id]).fetchone()
    if row is None:
        raise not_found("tag")
    require(con, person, row[1], "viewer", what="tag")
    return _tag(row)


def create_tag(con: Connection, person: Person, project_id: str, body: NewTag) -> TagView:
    """Creates a tag, for contributors. `Conflict` for a name that the project has, in any case."""
    require(con, person, project_id, "contributor")
    _refuse_taken(con, project_id, body.name, "")
    return get_tag(con, person, insert_tag(con, project_id, body.name, body.color))


def change_tag(con: Connection, person: Person, tag_id: str, body: TagChange) -> TagView:
    """Changes a tag, for contributors."""
    now = get_tag(con, person, tag_id)
    require(con, person, now.project_id, "contributor", what="tag")
    refuse_stale(now.version, body.version)
    changed = now.model_copy(update=body.changes())
    _refuse_taken(con, now.project_id, changed.name, tag_id)
    con.execute(
        "UPDATE board_tags SET name = ?, color = ?, updated_at_ms = ?, version = ? WHERE id = ?",
        [changed.name, changed.color, now_ms(), now.version + 1, tag_id],
    )
    return get_tag(con, person, tag_id)


def delete_tag(con: Connection, person: Person, tag_id: str) -> Deleted:
    """Deletes a tag, for contributors; todos lose it."""
    project_id = owner_project(con, "board_tags", tag_id, "tag")
    require(con, person, project_id, "contributor", what="tag")
    con.execute("DELETE FROM board_todo_tags WHERE tag_id = ?", [tag_id])
    con.execute("DELETE FROM board_tags WHERE id = ?", [tag_id])
    return Deleted(deleted=tag_id)


def insert_tag(con: Connection, project_id: str, name: str, color: str = "#57606a") -> str:
    """Adds a tag whose name is free, in the writer, and returns its id."""
    count_query = "SELECT count(*) FROM board_tags WHERE project_id = ?"
    if read_number(con, count_query, [project_id]) >= TAGS_MAX:
        raise Conflict(f"The project has {TAGS_MAX} tags already: delete some first.", param="tags")
    tag_id, at_ms = str(uuid4()), now_ms()
    con.execute(
        "INSERT INTO board_tags (id, project_id, name, color, created_at_ms, updated_at_ms, "
        "version) VALUES (?, ?, ?, ?, ?, ?, 1)",
        [tag_id, project_id, name, color, at_ms, at_ms],
    )
    return tag_id


def find_tag(con: Connection, project_id: str, name: str) -> str | None:
    """The id of the tag with this name in any case, None without one."""
    row = con.execute(
        "SELECT id FROM board_tags WHERE project_id = ? AND lower(name) = lower(?)",
        [project_id, name],
    ).fetchone()
    return None if row is None else str(row[0])


def _refuse_taken(con: Connection, project_id: str, name: str, but: str) -> None:
    if find_tag(con, project_id, name) not in (None, but):
        raise Conflict(f"The project has a tag {name} already.", param="name")


def _tag(row: tuple[Any, ...]) -> TagView:
    names = ("id", "project_id", "name", "color", "todos", "version")
    return TagView.model_construct(**dict(zip(names, row, strict=True)))

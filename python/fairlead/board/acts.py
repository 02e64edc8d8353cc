"""What the forms of the board's pages ask for: one field, `act`, says what; the rest are the fields
of the same bodies that the API takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError

from fairlead.board import planning, projects, todos
from fairlead.board.fields import (
    MemberChange,
    NewMember,
    NewProject,
    NewSprint,
    NewTag,
    NewTodo,
    ProjectChange,
    SprintChange,
    TagChange,
    TodoChange,
)
from fairlead.board.wire import Name
from fairlead.errors import InvalidRequest, NotFound
from fairlead.mcp.server import bad_input
from fairlead.store.file import Connection
from fairlead.store.people import Person
from fairlead.store.services import Services
from fairlead.store.static_tokens import (
    insert_static_token,
    make_static_token,
    revoke_static_token,
)
from fairlead.wire import Wire

FIELDS_MAX = 30
Body = TypeVar("Body", bound=BaseModel)
Fields = dict[str, str]


@dataclass(frozen=True, slots=True)
class Done:
    """Which page shows what was done; or a secret that is to be shown once."""

    path: str
    secret: str | None = None


class NewToken(Wire):
    name: Name


async def act(body: bytes, services: Services, person: Person) -> Done:
    """Does what a form asks; `InvalidRequest` for a form that no page of ours sends."""
    fields = read_form(body)
    what = fields.pop("act", "")
    if what == "create_token":
        text, token = make_static_token(person.id, _read(NewToken, fields).name)
        await services.state.record(lambda con: insert_static_token(con, token, text))
        return Done("/board/tokens", text)
    work = ACTS.get(what)
    if work is None:
        raise InvalidRequest("The form asks for nothing that is known: send it as the page does.")
    return Done(await services.state.record(lambda con: work(con, person, dict(fields))))


def read_form(body: bytes) -> Fields:
    """The fields of a form, each once."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX
        )
    except ValueError:
        raise InvalidRequest("The form cannot be read: send it as the page does.") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise InvalidRequest("The form has a field twice: send it as the page does.")
    return fields


def _read(model: type[Body], fields: Fields, **given: Any) -> Body:
    """The body that a form means: names of our own, dates left empty are none."""
    said: dict[str, Any] = {**fields, **given}
    for name in ("assigneeId", "dueOn", "sprintId", "startsOn", "endsOn"):
        if said.get(name) == "":
            said[name] = None
    if "tags" in said:
        parts = re.split(r"[,\n]", said["tags"])
        said["tags"] = [part.strip() for part in parts if part.strip()]
    if "version" in said:
        said["version"] = int(said["version"]) if said["version"].isdecimal() else 0
    try:
        return model.model_validate(said)
    except ValidationError as error:
        raise bad_input(error) from None


def _pop(fields: Fields, name: str) -> str:
    value = fields.pop(name, "")
    if not value:
        raise InvalidRequest(f"The form lacks {name}: send it as the page does.")
    return value


def _create_project(con: Connection, person: Person, fields: Fields) -> str:
    return f"/board/{projects.create_project(con, person, _read(NewProject, fields)).id}"


def _change_project(con: Connection, person: Person, fields: Fields) -> str:
    project_id = _pop(fields, "projectId")
    projects.change_project(con, person, project_id, _read(ProjectChange, fields))
    return f"/board/{project_id}/settings"


def _delete_project(con: Connection, person: Person, fields: Fields) -> str:
    project_id, name = _pop(fields, "projectId"), fields.get("name", "")
    if name.strip() != projects.get_project(con, person, project_id).name:
        raise InvalidRequest("Type the name of the project to delete it.", param="name")
    projects.delete_project(con, person, project_id)
    return "/board"


def _create_todo(con: Connection, person: Person, fields: Fields) -> str:
    project_id = _pop(fields, "projectId")
    back = fields.pop("view", "")
    todos.create_todo(con, person, project_id, _read(NewTodo, fields))
    return f"/board/{project_id}{'/list' if back == 'list' else ''}"


def _change_todo(con: Connection, person: Person, fields: Fields) -> str:
    todo_id = _pop(fields, "todoId")
    changed = todos.change_todo(con, person, todo_id, _read(TodoChange, fields))
    return f"/board/{changed.project_id}"


def _delete_todo(con: Connection, person: Person, fields: Fields) -> str:
    todo = todos.get_todo(con, person, _pop(fields, "todoId"))
    todos.delete_todo(con, person, todo.id)
    return f"/board/{todo.project_id}"


def _of_project(
    create: Callable[[Connection, Person, str, Any], BaseModel], model: type[BaseModel]
) -> Callable[[Connection, Person, Fields], str]:
    def create_record(con: Connection, person: Person, fields: Fields) -> str:
        project_id = _pop(fields, "projectId")
        create(con, person, project_id, _read(model, fields))
        return f"/board/{project_id}/settings"

    return create_record


def _of_record(
    change: Callable[[Connection, Person, str, Any], BaseModel], model: type[BaseModel]
) -> Callable[[Connection, Person, Fields], str]:
    def change_record(con: Connection, person: Person, fields: Fields) -> str:
        project_id, record_id = _pop(fields, "projectId"), _pop(fields, "id")
        change(con, person, record_id, _read(model, fields))
        return f"/board/{project_id}/settings"

    return change_record


def _without(
    delete: Callable[[Connection, Person, str], BaseModel],
) -> Callable[[Connection, Person, Fields], str]:
    def delete_record(con: Connection, person: Person, fields: Fields) -> str:
        project_id = _pop(fields, "projectId")
        delete(con, person, _pop(fields, "id"))
        return f"/board/{project_id}/settings"

    return delete_record


def _revoke_token(con: Connection, person: Person, fields: Fields) -> str:
    if not revoke_static_token(con, person.id, _pop(fields, "id")):
        raise NotFound("You have no static token in force with this id.", param="id")
    return "/board/tokens"


ACTS: dict[str, Callable[[Connection, Person, Fields], str]] = {
    "create_project": _create_project,
    "change_project": _change_project,
    "delete_project": _delete_project,
    "create_todo": _create_todo,
    "change_todo": _change_todo,
    "delete_todo": _delete_todo,
    "create_sprint": _of_project(planning.create_sprint, NewSprint),
    "change_sprint": _of_record(planning.change_sprint, SprintChange),
    "delete_sprint": _without(planning.delete_sprint),
    "create_tag": _of_project(planning.create_tag, NewTag),
    "change_tag": _of_record(planning.change_tag, TagChange),
    "delete_tag": _without(planning.delete_tag),
    "add_member": _of_project(projects.add_member, NewMember),
    "change_member": _of_record(projects.change_member, MemberChange),
    "remove_member": _without(projects.remove_member),
    "revoke_token": _revoke_token,
}

"""Handlers of the forms of the board's pages: each reads its fields and returns the path of the next page."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fairlead.board import projects, todos
from fairlead.board.operation import Operation
from fairlead.errors import InvalidRequest
from fairlead.mcp.server import bad_input
from fairlead.records.people import Person
from fairlead.store.file import Connection

Body = TypeVar("Body", bound=BaseModel)
Fields = dict[str, str]


def read_body(model: type[Body], fields: Fields) -> Body:
    """The body that the fields of a form spell. A field of a reference or a date that is empty means
    none, tags are separated by commas or line breaks, and a version is a number.
    """
    values: dict[str, Any] = dict(fields)
    for name in ("assigneeId", "dueOn", "sprintId", "startsOn", "endsOn"):
        if values.get(name) == "":
            values[name] = None
    if "tags" in values:
        parts = re.split(r"[,\n]", values["tags"])
        values["tags"] = [part.strip() for part in parts if part.strip()]
    if "version" in values:
        values["version"] = int(values["version"]) if values["version"].isdecimal() else 0
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise bad_input(error) from None


def pop_field(fields: Fields, name: str) -> str:
    """Takes a field out of a form; `InvalidRequest` where it is missing or empty."""
    value = fields.pop(name, "")
    if not value:
        raise InvalidRequest(f"The form lacks {name}: send it as the page does.")
    return value


def create_project(operation: Operation, con: Connection, person: Person, fields: Fields) -> str:
    """Leads to the board of the new project."""
    project: Any = operation.function(con, person, read_body(operation.body, fields))
    return f"/board/{project.id}"


def delete_project(operation: Operation, con: Connection, person: Person, fields: Fields) -> str:
    """Deletes a project whose name was typed once more."""
    project_id, name = pop_field(fields, "projectId"), fields.get("name", "")
    if name.strip() != projects.get_project(con, person, project_id).name:
        raise InvalidRequest("Type the name of the project to delete it.", param="name")
    operation.function(con, person, project_id)
    return "/board"


def create_todo(operation: Operation, con: Connection, person: Person, fields: Fields) -> str:
    """Leads back to the view of the project that has the form: the kanban or the list."""
    project_id = pop_field(fields, "projectId")
    view = fields.pop("view", "")
    operation.function(con, person, project_id, read_body(operation.body, fields))
    return f"/board/{project_id}{'/list' if view == 'list' else ''}"


def change_todo(operation: Operation, con: Connection, person: Person, fields: Fields) -> str:
    """Leads to the board of the todo's project."""
    todo_id = pop_field(fields, "todoId")
    todo: Any = operation.function(con, person, todo_id, read_body(operation.body, fields))
    return f"/board/{todo.project_id}"


def delete_todo(operation: Operation, con: Connection, person: Person, fields: Fields) -> str:
    """Leads to the board of the project that had the todo."""
    todo = todos.get_todo(con, person, pop_field(fields, "todoId"))
    operation.function(con, person, todo.id)
    return f"/board/{todo.project_id}"


def save_settings(operation: Operation, con: Connection, person: Person, fields: Fields) -> str:
    """Every form of a project's settings: about the project itself, or about the record in `id`."""
    project_id = pop_field(fields, "projectId")
    of_project = "project_id" in operation.parameters
    arguments: list[Any] = [project_id if of_project else pop_field(fields, "id")]
    if "body" in operation.parameters:
        arguments.append(read_body(operation.body, fields))
    operation.function(con, person, *arguments)
    return f"/board/{project_id}/settings"

"""Lists as tools give them: in parts, each with a cursor to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel

from fairlead.board import todos
from fairlead.board.todos import TodoFilter
from fairlead.board.tool_models import ListTodos, PageInput, Todos
from fairlead.errors import InvalidRequest
from fairlead.records.people import Person
from fairlead.store.file import Connection

Part = TypeVar("Part", bound=BaseModel)


def fetch_page(
    page_input: PageInput, gives: type[Part], read_page: Callable[[int, int], Any]
) -> Part:
    """The part that the cursor names of a list that `read_page(limit, offset)` reads. `gives` has one
    field for the records, named as in the page, and the cursor of the next part.
    """
    place = page_input.read_cursor("o")
    if place is not None and (not place.isdigit() or int(place) > 2**31):
        raise InvalidRequest("cursor must be the nextCursor of the part before.", param="cursor")
    offset = int(place or 0)
    page = read_page(page_input.limit, offset)
    (name,) = gives.model_fields.keys() - {"next_cursor"}
    records: list[Any] = getattr(page, name)
    end = offset + len(records)
    cursor = page_input.make_cursor("o", str(end)) if records and end < page.total else None
    return gives.model_validate({name: records, "nextCursor": cursor})


def list_todos(con: Connection, person: Person, page_input: ListTodos) -> Todos:
    """One part of a project's todos. The cursor is a rank and not a number: of the todos that nobody
    moves between two parts, none is listed twice and none is left out.
    """
    todo_filter = TodoFilter(
        page_input.status,
        page_input.assignee_id,
        page_input.sprint_id,
        page_input.tag,
        page_input.text,
        page_input.due_before,
        after_rank=page_input.read_cursor("r"),
    )
    page = todos.list_todos(
        con, person, page_input.project_id, todo_filter, page_input.limit, offset=0
    )
    more = page.total > len(page.todos)
    cursor = page_input.make_cursor("r", page.todos[-1].rank) if more and page.todos else None
    return Todos(todos=page.todos, nextCursor=cursor)

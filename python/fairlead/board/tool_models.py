"""The inputs and outputs of the board's tools.

A class without a docstring has none on purpose: it would become a description in the schema that
clients read.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from pydantic import Field

from fairlead.board.fields import (
    MemberChange,
    NewMember,
    NewSprint,
    NewTag,
    NewTodo,
    ProjectChange,
    SprintChange,
    TagChange,
    TodoChange,
    TodoMove,
)
from fairlead.board.views import (
    MemberView,
    PersonView,
    ProjectView,
    SprintView,
    TagView,
    TodoView,
)
from fairlead.board.wire import Day, Id, Status, TagName
from fairlead.errors import InvalidRequest
from fairlead.wire import Wire

CURSOR_MAX_CHARS = 128

ProjectId = Annotated[Id, Field(description="See projects_list.")]
TodoId = Annotated[Id, Field(description="The todo's id, not its number; see todos_list.")]


# -------------------------------------------------------------------------------------- inputs


class ProjectRef(Wire):
    project_id: ProjectId


class TodoRef(Wire):
    todo_id: TodoId


class SprintRef(Wire):
    sprint_id: Id


class TagRef(Wire):
    tag_id: Id


class MemberRef(Wire):
    member_id: Annotated[Id, Field(description="The membership's id; see members_list.")]


class PageInput(Wire):
    """The fields that every tool of a list takes."""

    limit: Annotated[int, Field(strict=True, ge=1, le=200)] = 50
    cursor: Annotated[str, Field(max_length=CURSOR_MAX_CHARS)] | None = Field(
        default=None, description="The nextCursor of the part before; left out for the first."
    )

    @staticmethod
    def make_cursor(kind: str, place: str) -> str:
        """Spells a place in a list as text that clients only pass back."""
        return base64.urlsafe_b64encode(f"{kind}{place}".encode()).decode().rstrip("=")

    def read_cursor(self, kind: str) -> str | None:
        """The place that the cursor holds; None for the first part. `InvalidRequest` for a cursor that no
        answer gave.
        """
        if self.cursor is None:
            return None
        try:
            padded = self.cursor + "=" * (-len(self.cursor) % 4)
            text = base64.urlsafe_b64decode(padded).decode("ascii")
        except (binascii.Error, ValueError):
            text = ""
        if not text.startswith(kind) or not text[1:].isalnum():
            raise InvalidRequest(
                "cursor must be the nextCursor of the part before: leave it out to start again.",
                param="cursor",
            )
        return text[1:]


class ListAll(PageInput):
    pass


class ListInProject(PageInput):
    project_id: ProjectId


class ListTodos(ListInProject):
    status: Status | None = None
    assignee_id: Id | None = None
    sprint_id: Id | None = None
    tag: TagName | None = Field(default=None, description="A tag's name.")
    text: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="A text in the title or the body."
    )
    due_before: Day | None = None


class CreateMember(NewMember, ProjectRef):
    pass


class ChangeMember(MemberChange, MemberRef):
    pass


class CreateSprint(NewSprint, ProjectRef):
    pass


class CreateTag(NewTag, ProjectRef):
    pass


class CreateTodo(NewTodo, ProjectRef):
    pass


class MoveTodo(TodoMove, TodoRef):
    pass


class ChangeProject(ProjectRef):
    changes: ProjectChange


class ChangeSprint(SprintRef):
    changes: SprintChange


class ChangeTag(TagRef):
    changes: TagChange


class ChangeTodo(TodoRef):
    changes: TodoChange


# ------------------------------------------------------------------------------------- outputs


class ListPart(Wire):
    """One part of a list; `nextCursor` is the cursor of the next part, null at the end."""

    next_cursor: str | None


class People(ListPart):
    people: list[PersonView]


class Projects(ListPart):
    projects: list[ProjectView]


class Members(ListPart):
    members: list[MemberView]


class Sprints(ListPart):
    sprints: list[SprintView]


class Tags(ListPart):
    tags: list[TagView]


class Todos(ListPart):
    todos: list[TodoView]

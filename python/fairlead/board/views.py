"""The records of the board as the API and the tools answer them."""

from __future__ import annotations

from pydantic import Field

from fairlead.board.wire import Day, MemberRole, SprintStatus, Status
from fairlead.moment import Time
from fairlead.wire import Wire


class PersonView(Wire):
    id: str
    name: str
    email: str


class ProjectView(Wire):
    id: str
    name: str
    description: str
    role: MemberRole = Field(description="The caller's role in the project.")
    todos: dict[Status, int] = Field(description="How many todos there are of each status.")
    created_at: Time
    updated_at: Time
    version: int


class MemberView(Wire):
    id: str = Field(description="The id of the membership, not of the person.")
    project_id: str
    user_id: str
    name: str
    email: str
    role: MemberRole


class SprintView(Wire):
    id: str
    project_id: str
    name: str
    goal: str
    status: SprintStatus
    starts_on: Day | None
    ends_on: Day | None
    todos: int
    todos_done: int
    created_at: Time
    updated_at: Time
    version: int


class TagView(Wire):
    id: str
    project_id: str
    name: str
    color: str
    todos: int
    version: int


class TodoTag(Wire):
    id: str
    name: str
    color: str


class TodoView(Wire):
    id: str
    project_id: str
    number: int = Field(description="Counts within the project, for people: #12.")
    title: str
    body: str
    status: Status
    rank: str = Field(description="Sorts the todos of a project, as texts.")
    assignee_id: str | None
    assignee_name: str | None
    due_on: Day | None
    sprint_id: str | None
    sprint_name: str | None
    tags: list[TodoTag]
    created_at: Time
    updated_at: Time
    done_at: Time | None
    version: int


class Board(Wire):
    """A project as a kanban: the first todos of each status, and how many there are in all."""

    project: ProjectView
    columns: dict[Status, list[TodoView]]


class Page(Wire):
    """A part of a list; `total` is how many there are in all."""

    total: int
    limit: int
    offset: int


class PersonList(Page):
    people: list[PersonView]


class ProjectList(Page):
    projects: list[ProjectView]


class MemberList(Page):
    members: list[MemberView]


class SprintList(Page):
    sprints: list[SprintView]


class TagList(Page):
    tags: list[TagView]


class TodoList(Page):
    todos: list[TodoView]


class OneProject(Wire):
    project: ProjectView


class OneMember(Wire):
    member: MemberView


class OneSprint(Wire):
    sprint: SprintView


class OneTag(Wire):
    tag: TagView


class OneTodo(Wire):
    todo: TodoView


class Deleted(Wire):
    """The id of the deleted record."""

    deleted: str

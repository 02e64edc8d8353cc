"""The board as tools: the same bodies and answers as the API's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field

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
    TodoMove,
)
from fairlead.board.todos import Narrow
from fairlead.board.tool_pages import Paged, fetch_page
from fairlead.board.views import (
    Deleted,
    MemberView,
    OneMember,
    OneProject,
    OneSprint,
    OneTag,
    OneTodo,
    PersonView,
    ProjectView,
    SprintView,
    TagView,
    TodoView,
)
from fairlead.board.wire import Day, Id, Status, TagName
from fairlead.mcp.tool import Call, Tool
from fairlead.store.file import Connection
from fairlead.store.people import Person
from fairlead.wire import Wire

Given = TypeVar("Given", bound=BaseModel)

ProjectId = Annotated[Id, Field(description="See projects_list.")]
TodoId = Annotated[Id, Field(description="The todo's id, not its number; see todos_list.")]


# -------------------------------------------------------------------------------------- inputs


class OfProject(Wire):
    project_id: ProjectId


class OfTodo(Wire):
    todo_id: TodoId


class OfSprint(Wire):
    sprint_id: Id


class OfTag(Wire):
    tag_id: Id


class OfMember(Wire):
    member_id: Annotated[Id, Field(description="The membership's id; see members_list.")]


class ListAll(Paged):
    pass


class ListOfProject(Paged):
    project_id: ProjectId


class ListTodos(ListOfProject):
    status: Status | None = None
    assignee_id: Id | None = None
    sprint_id: Id | None = None
    tag: TagName | None = Field(default=None, description="A tag's name.")
    text: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="Stands in the title or the body."
    )
    due_before: Day | None = None


class CreateMember(NewMember, OfProject):
    pass


class ChangeMember(MemberChange, OfMember):
    pass


class CreateSprint(NewSprint, OfProject):
    pass


class CreateTag(NewTag, OfProject):
    pass


class CreateTodo(NewTodo, OfProject):
    pass


class MoveTodo(TodoMove, OfTodo):
    pass


class ChangeProject(OfProject):
    changes: ProjectChange


class ChangeSprint(OfSprint):
    changes: SprintChange


class ChangeTag(OfTag):
    changes: TagChange


class ChangeTodo(OfTodo):
    changes: TodoChange


# ------------------------------------------------------------------------------------- outputs


class More(Wire):
    """A part of a list. `nextCursor` goes on with it; null at its end."""

    next_cursor: str | None


class People(More):
    people: list[PersonView]


class Projects(More):
    projects: list[ProjectView]


class Members(More):
    members: list[MemberView]


class Sprints(More):
    sprints: list[SprintView]


class Tags(More):
    tags: list[TagView]


class Todos(More):
    todos: list[TodoView]


class Board(Wire):
    """A project as a kanban: the first todos of each status, and how many there are in all."""

    project: ProjectView
    columns: dict[Status, list[TodoView]]


# --------------------------------------------------------------------------------------- tools


def _reader(
    work: Callable[[Connection, Person, Given], BaseModel],
) -> Callable[[Call, Given], Awaitable[BaseModel]]:
    async def run(call: Call, given: Given) -> BaseModel:
        return await call.services.state.read(lambda con: work(con, call.person, given))

    return run


def _writer(
    work: Callable[[Connection, Person, Given], BaseModel],
) -> Callable[[Call, Given], Awaitable[BaseModel]]:
    async def run(call: Call, given: Given) -> BaseModel:
        return await call.services.state.record(lambda con: work(con, call.person, given))

    return run


def _list_todos(con: Connection, person: Person, given: ListTodos) -> Todos:
    # By rank, not by number: what is moved meanwhile is neither told twice nor passed over, unless
    # it is what was moved.
    narrow = Narrow(
        given.status,
        given.assignee_id,
        given.sprint_id,
        given.tag,
        given.text,
        given.due_before,
        after_rank=given.after("r"),
    )
    found = todos.list_todos(con, person, given.project_id, narrow, given.limit, 0)
    more = found.total > len(found.todos)
    cursor = given.make_cursor("r", found.todos[-1].rank) if more and found.todos else None
    return Todos(todos=found.todos, nextCursor=cursor)


def _board(con: Connection, person: Person, given: OfProject) -> Board:
    project = projects.get_project(con, person, given.project_id)
    columns = {
        status: todos.list_todos(con, person, given.project_id, Narrow(status), 50, 0).todos
        for status in project.todos
    }
    return Board(project=project, columns=columns)


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        "people_list",
        "List people",
        "Who may be made a member of a project or be assigned.",
        ListAll,
        People,
        _reader(
            lambda con, _, it: fetch_page(
                it, People, "people", lambda n, o: projects.list_people(con, n, o)
            )
        ),
        reads=True,
    ),
    Tool(
        "projects_list",
        "List projects",
        "The projects that you may see, by name.",
        ListAll,
        Projects,
        _reader(
            lambda con, who, it: fetch_page(
                it, Projects, "projects", lambda n, o: projects.list_projects(con, who, n, o)
            )
        ),
        reads=True,
    ),
    Tool(
        "projects_get",
        "Get a project",
        "A project, what you may do in it, and its counts.",
        OfProject,
        OneProject,
        _reader(
            lambda con, who, it: OneProject(project=projects.get_project(con, who, it.project_id))
        ),
        reads=True,
    ),
    Tool(
        "projects_create",
        "Create a project",
        "Makes a project; you become its maintainer.",
        NewProject,
        OneProject,
        _writer(lambda con, who, it: OneProject(project=projects.create_project(con, who, it))),
    ),
    Tool(
        "projects_update",
        "Change a project",
        "Changes the fields that `changes` names.",
        ChangeProject,
        OneProject,
        _writer(
            lambda con, who, it: OneProject(
                project=projects.change_project(con, who, it.project_id, it.changes)
            )
        ),
        repeats=True,
    ),
    Tool(
        "projects_delete",
        "Delete a project",
        "Deletes a project with its todos, sprints, tags and members, for good.",
        OfProject,
        Deleted,
        _writer(lambda con, who, it: projects.delete_project(con, who, it.project_id)),
        destroys=True,
    ),
    Tool(
        "board_get",
        "See a project's board",
        "A project as a kanban: up to 50 todos of each status, in their order.",
        OfProject,
        Board,
        _reader(_board),
        reads=True,
    ),
    Tool(
        "members_list",
        "List members",
        "The members of a project and their roles.",
        ListOfProject,
        Members,
        _reader(
            lambda con, who, it: fetch_page(
                it,
                Members,
                "members",
                lambda n, o: projects.list_members(con, who, it.project_id, n, o),
            )
        ),
        reads=True,
    ),
    Tool(
        "members_add",
        "Add a member",
        "Lets a person see a project, with a role in it.",
        CreateMember,
        OneMember,
        _writer(
            lambda con, who, it: OneMember(member=projects.add_member(con, who, it.project_id, it))
        ),
    ),
    Tool(
        "members_update",
        "Change a member's role",
        "Gives a member another role: viewer, contributor or maintainer.",
        ChangeMember,
        OneMember,
        _writer(
            lambda con, who, it: OneMember(
                member=projects.change_member(con, who, it.member_id, it)
            )
        ),
        repeats=True,
    ),
    Tool(
        "members_remove",
        "Remove a member",
        "Ends a membership; the person's todos stay theirs.",
        OfMember,
        Deleted,
        _writer(lambda con, who, it: projects.remove_member(con, who, it.member_id)),
        destroys=True,
    ),
    Tool(
        "todos_list",
        "List todos",
        "Todos of a project in their order, narrowed by status, assignee, sprint, tag, text or due "
        "date.",
        ListTodos,
        Todos,
        _reader(_list_todos),
        reads=True,
    ),
    Tool(
        "todos_get",
        "Get a todo",
        "One todo in full.",
        OfTodo,
        OneTodo,
        _reader(lambda con, who, it: OneTodo(todo=todos.get_todo(con, who, it.todo_id))),
        reads=True,
    ),
    Tool(
        "todos_create",
        "Create a todo",
        "Makes a todo, at the end unless `before` or `after` names another todo.",
        CreateTodo,
        OneTodo,
        _writer(lambda con, who, it: OneTodo(todo=todos.create_todo(con, who, it.project_id, it))),
    ),
    Tool(
        "todos_update",
        "Change a todo",
        "Changes the fields that `changes` names; give `version` to be refused if somebody else "
        "changed it since you read it.",
        ChangeTodo,
        OneTodo,
        _writer(
            lambda con, who, it: OneTodo(todo=todos.change_todo(con, who, it.todo_id, it.changes))
        ),
        repeats=True,
    ),
    Tool(
        "todos_move",
        "Move a todo",
        "Gives a todo another status and a place before or after another todo; without a place it "
        "comes last.",
        MoveTodo,
        OneTodo,
        _writer(lambda con, who, it: OneTodo(todo=todos.move_todo(con, who, it.todo_id, it))),
        repeats=True,
    ),
    Tool(
        "todos_delete",
        "Delete a todo",
        "Deletes a todo, for good.",
        OfTodo,
        Deleted,
        _writer(lambda con, who, it: todos.delete_todo(con, who, it.todo_id)),
        destroys=True,
    ),
    Tool(
        "sprints_list",
        "List sprints",
        "The sprints of a project: active, planned, closed.",
        ListOfProject,
        Sprints,
        _reader(
            lambda con, who, it: fetch_page(
                it,
                Sprints,
                "sprints",
                lambda n, o: planning.list_sprints(con, who, it.project_id, n, o),
            )
        ),
        reads=True,
    ),
    Tool(
        "sprints_get",
        "Get a sprint",
        "One sprint and how far it has come.",
        OfSprint,
        OneSprint,
        _reader(lambda con, who, it: OneSprint(sprint=planning.get_sprint(con, who, it.sprint_id))),
        reads=True,
    ),
    Tool(
        "sprints_create",
        "Create a sprint",
        "Makes a sprint of a project.",
        CreateSprint,
        OneSprint,
        _writer(
            lambda con, who, it: OneSprint(
                sprint=planning.create_sprint(con, who, it.project_id, it)
            )
        ),
    ),
    Tool(
        "sprints_update",
        "Change a sprint",
        "Changes the fields that `changes` names: status `active` starts it, `closed` ends it.",
        ChangeSprint,
        OneSprint,
        _writer(
            lambda con, who, it: OneSprint(
                sprint=planning.change_sprint(con, who, it.sprint_id, it.changes)
            )
        ),
        repeats=True,
    ),
    Tool(
        "sprints_delete",
        "Delete a sprint",
        "Deletes a sprint; its todos stay, without a sprint.",
        OfSprint,
        Deleted,
        _writer(lambda con, who, it: planning.delete_sprint(con, who, it.sprint_id)),
        destroys=True,
    ),
    Tool(
        "tags_list",
        "List tags",
        "The tags of a project, by name.",
        ListOfProject,
        Tags,
        _reader(
            lambda con, who, it: fetch_page(
                it, Tags, "tags", lambda n, o: planning.list_tags(con, who, it.project_id, n, o)
            )
        ),
        reads=True,
    ),
    Tool(
        "tags_get",
        "Get a tag",
        "One tag and how many todos have it.",
        OfTag,
        OneTag,
        _reader(lambda con, who, it: OneTag(tag=planning.get_tag(con, who, it.tag_id))),
        reads=True,
    ),
    Tool(
        "tags_create",
        "Create a tag",
        "Makes a tag of a project; todos can also be given new ones.",
        CreateTag,
        OneTag,
        _writer(lambda con, who, it: OneTag(tag=planning.create_tag(con, who, it.project_id, it))),
    ),
    Tool(
        "tags_update",
        "Change a tag",
        "Changes a tag's name or colour on all its todos.",
        ChangeTag,
        OneTag,
        _writer(
            lambda con, who, it: OneTag(tag=planning.change_tag(con, who, it.tag_id, it.changes))
        ),
        repeats=True,
    ),
    Tool(
        "tags_delete",
        "Delete a tag",
        "Deletes a tag; todos lose it.",
        OfTag,
        Deleted,
        _writer(lambda con, who, it: planning.delete_tag(con, who, it.tag_id)),
        destroys=True,
    ),
)

"""`/api/board`: projects, members, todos, sprints and tags.

Ids are unguessable and are told only to whom sees the project. Every record has a `version` that
grows by one with each change: a change that names it is refused with 409 when it is not the newest;
one that does not name it is made on whatever there is, so the last write wins, field by field.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from fairlead.board import planning, projects, todos
from fairlead.board.caller import PersonDep
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
from fairlead.board.views import (
    Deleted,
    MemberList,
    OneMember,
    OneProject,
    OneSprint,
    OneTag,
    OneTodo,
    PersonList,
    ProjectList,
    SprintList,
    TagList,
    TodoList,
)
from fairlead.board.wire import Day, Status
from fairlead.store.services import ServicesDep
from fairlead.wire import Limit, Offset

router = APIRouter(prefix="/api/board", tags=["board"])

Text = Annotated[str | None, Query(max_length=200)]


@router.get("/people", summary="Who may be a member of a project")
async def people(
    services: ServicesDep, _: PersonDep, limit: Limit = 50, offset: Offset = 0
) -> PersonList:
    return await services.state.read(lambda con: projects.list_people(con, limit, offset))


@router.get("/projects", summary="The projects that one may see, by name")
async def list_projects(
    services: ServicesDep, person: PersonDep, limit: Limit = 50, offset: Offset = 0
) -> ProjectList:
    return await services.state.read(lambda con: projects.list_projects(con, person, limit, offset))


@router.post("/projects", status_code=201, summary="Create a project")
async def create_project(services: ServicesDep, person: PersonDep, body: NewProject) -> OneProject:
    made = await services.state.record(lambda con: projects.create_project(con, person, body))
    return OneProject(project=made)


@router.get("/projects/{project_id}", summary="One project")
async def get_project(services: ServicesDep, person: PersonDep, project_id: str) -> OneProject:
    found = await services.state.read(lambda con: projects.get_project(con, person, project_id))
    return OneProject(project=found)


@router.patch("/projects/{project_id}", summary="Change a project")
async def change_project(
    services: ServicesDep, person: PersonDep, project_id: str, body: ProjectChange
) -> OneProject:
    changed = await services.state.record(
        lambda con: projects.change_project(con, person, project_id, body)
    )
    return OneProject(project=changed)


@router.delete("/projects/{project_id}", summary="Delete a project with all that is in it")
async def delete_project(services: ServicesDep, person: PersonDep, project_id: str) -> Deleted:
    return await services.state.record(lambda con: projects.delete_project(con, person, project_id))


@router.get("/projects/{project_id}/members", summary="The members of a project, by name")
async def list_members(
    services: ServicesDep,
    person: PersonDep,
    project_id: str,
    limit: Limit = 50,
    offset: Offset = 0,
) -> MemberList:
    return await services.state.read(
        lambda con: projects.list_members(con, person, project_id, limit, offset)
    )


@router.post("/projects/{project_id}/members", status_code=201, summary="Add a member")
async def add_member(
    services: ServicesDep, person: PersonDep, project_id: str, body: NewMember
) -> OneMember:
    made = await services.state.record(
        lambda con: projects.add_member(con, person, project_id, body)
    )
    return OneMember(member=made)


@router.patch("/members/{member_id}", summary="Change what a member may do")
async def change_member(
    services: ServicesDep, person: PersonDep, member_id: str, body: MemberChange
) -> OneMember:
    changed = await services.state.record(
        lambda con: projects.change_member(con, person, member_id, body)
    )
    return OneMember(member=changed)


@router.delete("/members/{member_id}", summary="Remove a member")
async def remove_member(services: ServicesDep, person: PersonDep, member_id: str) -> Deleted:
    return await services.state.record(lambda con: projects.remove_member(con, person, member_id))


def _narrow(
    status: Status | None = None,
    assignee_id: Annotated[str | None, Query(alias="assigneeId", max_length=64)] = None,
    sprint_id: Annotated[str | None, Query(alias="sprintId", max_length=64)] = None,
    tag: Annotated[str | None, Query(max_length=40, description="By name.")] = None,
    text: Text = None,
    due_before: Annotated[Day | None, Query(alias="dueBefore")] = None,
) -> Narrow:
    return Narrow(status, assignee_id, sprint_id, tag, text, due_before)


NarrowDep = Annotated[Narrow, Depends(_narrow)]


@router.get("/projects/{project_id}/todos", summary="The todos of a project, in their order")
async def list_todos(
    services: ServicesDep,
    person: PersonDep,
    project_id: str,
    narrow: NarrowDep,
    limit: Limit = 50,
    offset: Offset = 0,
) -> TodoList:
    return await services.state.read(
        lambda con: todos.list_todos(con, person, project_id, narrow, limit, offset)
    )


@router.post("/projects/{project_id}/todos", status_code=201, summary="Create a todo")
async def create_todo(
    services: ServicesDep, person: PersonDep, project_id: str, body: NewTodo
) -> OneTodo:
    made = await services.state.record(lambda con: todos.create_todo(con, person, project_id, body))
    return OneTodo(todo=made)


@router.get("/todos/{todo_id}", summary="One todo")
async def get_todo(services: ServicesDep, person: PersonDep, todo_id: str) -> OneTodo:
    return OneTodo(todo=await services.state.read(lambda con: todos.get_todo(con, person, todo_id)))


@router.patch("/todos/{todo_id}", summary="Change a todo")
async def change_todo(
    services: ServicesDep, person: PersonDep, todo_id: str, body: TodoChange
) -> OneTodo:
    changed = await services.state.record(lambda con: todos.change_todo(con, person, todo_id, body))
    return OneTodo(todo=changed)


@router.post("/todos/{todo_id}/move", summary="Move a todo: to a status, before or after another")
async def move_todo(
    services: ServicesDep, person: PersonDep, todo_id: str, body: TodoMove
) -> OneTodo:
    moved = await services.state.record(lambda con: todos.move_todo(con, person, todo_id, body))
    return OneTodo(todo=moved)


@router.delete("/todos/{todo_id}", summary="Delete a todo")
async def delete_todo(services: ServicesDep, person: PersonDep, todo_id: str) -> Deleted:
    return await services.state.record(lambda con: todos.delete_todo(con, person, todo_id))


@router.get("/projects/{project_id}/sprints", summary="The sprints of a project")
async def list_sprints(
    services: ServicesDep,
    person: PersonDep,
    project_id: str,
    limit: Limit = 50,
    offset: Offset = 0,
) -> SprintList:
    return await services.state.read(
        lambda con: planning.list_sprints(con, person, project_id, limit, offset)
    )


@router.post("/projects/{project_id}/sprints", status_code=201, summary="Create a sprint")
async def create_sprint(
    services: ServicesDep, person: PersonDep, project_id: str, body: NewSprint
) -> OneSprint:
    made = await services.state.record(
        lambda con: planning.create_sprint(con, person, project_id, body)
    )
    return OneSprint(sprint=made)


@router.get("/sprints/{sprint_id}", summary="One sprint")
async def get_sprint(services: ServicesDep, person: PersonDep, sprint_id: str) -> OneSprint:
    found = await services.state.read(lambda con: planning.get_sprint(con, person, sprint_id))
    return OneSprint(sprint=found)


@router.patch("/sprints/{sprint_id}", summary="Change a sprint")
async def change_sprint(
    services: ServicesDep, person: PersonDep, sprint_id: str, body: SprintChange
) -> OneSprint:
    changed = await services.state.record(
        lambda con: planning.change_sprint(con, person, sprint_id, body)
    )
    return OneSprint(sprint=changed)


@router.delete("/sprints/{sprint_id}", summary="Delete a sprint; its todos stay")
async def delete_sprint(services: ServicesDep, person: PersonDep, sprint_id: str) -> Deleted:
    return await services.state.record(lambda con: planning.delete_sprint(con, person, sprint_id))


@router.get("/projects/{project_id}/tags", summary="The tags of a project, by name")
async def list_tags(
    services: ServicesDep,
    person: PersonDep,
    project_id: str,
    limit: Limit = 50,
    offset: Offset = 0,
) -> TagList:
    return await services.state.read(
        lambda con: planning.list_tags(con, person, project_id, limit, offset)
    )


@router.post("/projects/{project_id}/tags", status_code=201, summary="Create a tag")
async def create_tag(
    services: ServicesDep, person: PersonDep, project_id: str, body: NewTag
) -> OneTag:
    made = await services.state.record(
        lambda con: planning.create_tag(con, person, project_id, body)
    )
    return OneTag(tag=made)


@router.get("/tags/{tag_id}", summary="One tag")
async def get_tag(services: ServicesDep, person: PersonDep, tag_id: str) -> OneTag:
    return OneTag(tag=await services.state.read(lambda con: planning.get_tag(con, person, tag_id)))


@router.patch("/tags/{tag_id}", summary="Change a tag")
async def change_tag(
    services: ServicesDep, person: PersonDep, tag_id: str, body: TagChange
) -> OneTag:
    changed = await services.state.record(
        lambda con: planning.change_tag(con, person, tag_id, body)
    )
    return OneTag(tag=changed)


@router.delete("/tags/{tag_id}", summary="Delete a tag; todos lose it")
async def delete_tag(services: ServicesDep, person: PersonDep, tag_id: str) -> Deleted:
    return await services.state.record(lambda con: planning.delete_tag(con, person, tag_id))

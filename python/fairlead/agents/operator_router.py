"""`/api/v1/agents/tasks`: an operator's view of the tasks of all agents: create, list, read, act, delete.

Field names follow existing clients of this route: `providerId` is an agent (its id or path segment), and states
have the names that these clients know.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from uuid import uuid4

import orjson
from fastapi import APIRouter, Query
from pydantic import AliasChoices, Field

from fairlead.agents.endpoint import AgentRequest, submit_task
from fairlead.agents.runner import TaskRunner, text_of
from fairlead.agents.skill import Skill
from fairlead.agents.skill_table import find_skill, find_skill_by_slug
from fairlead.agents.task import OPERATOR, Message, State, Task, text_part
from fairlead.agents.task_table import (
    Ending,
    delete_task,
    end_task,
    found_task,
    list_tasks,
    messages_of,
)
from fairlead.errors import Conflict, InvalidRequest
from fairlead.moment import Time, moment_of, now_ms
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep
from fairlead.wire import Limit, Offset, Wire

Status = Literal["queued", "running", "awaiting_approval", "completed", "failed", "cancelled"]

_STATUS: Final[dict[State, Status]] = {
    "submitted": "queued",
    "working": "running",
    "completed": "completed",
    "failed": "failed",
    "canceled": "cancelled",
}
_METADATA_MAX_BYTES: Final = 16_384

router = APIRouter(prefix="/api/v1/agents/tasks", tags=["agents"])

TaskPrompt = Annotated[str, Field(strict=True, min_length=1, max_length=10_000)]


class Source(Wire):
    """The subject of a task; passed to the agent as text, never fetched."""

    repo_name: str | None = Field(None, max_length=300)
    repo_url: str | None = Field(None, max_length=2048)
    branch: str | None = Field(None, max_length=300)


class TaskOptions(Wire):
    """Options of other agents' APIs that clients may send."""

    auto_create_pr: bool = Field(False, strict=True)
    plan_approval_required: bool = Field(False, strict=True)
    environment: dict[str, str] | None = None


class NewTask(Wire):
    """The body that creates a task."""

    provider_id: str = Field(
        min_length=1, max_length=200, validation_alias=AliasChoices("providerId", "agent")
    )
    prompt: TaskPrompt
    source: Source | None = None
    options: TaskOptions | None = None


class TaskAction(Wire):
    """The body that acts on a task."""

    action: Literal["approve", "message", "cancel"]
    message: TaskPrompt | None = None


class Activity(Wire):
    """An event in a task."""

    id: str
    type: Literal["message", "completion", "error"]
    content: str
    timestamp: Time


class TaskResult(Wire):
    """The outcome of a task."""

    summary: str
    duration_ms: int


class TaskView(Wire):
    """A task as an operator sees it; `owner` is the client that created it."""

    id: str
    provider_id: str
    agent_id: str
    owner: str
    prompt: str
    status: Status
    context_id: str
    result: TaskResult | None
    error: str | None
    activities: list[Activity]
    created_at: Time
    updated_at: Time
    completed_at: Time | None


class TaskList(Wire):
    tasks: list[TaskView]
    total: int
    limit: int
    offset: int


class TaskDeleted(Wire):
    success: bool = True


@router.get("", summary="List the tasks of agents, newest first")
async def list_all(
    services: ServicesDep,
    provider: Annotated[str | None, Query(max_length=200)] = None,
    status: Status | None = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> TaskList:
    """Lists tasks by page; `provider` filters by agent."""
    states = tuple(state for state, name in _STATUS.items() if name == status)

    def read_tasks(con: Connection) -> tuple[list[TaskView], int]:
        skill = None if provider is None else _agent(con, provider)
        if (provider is not None and skill is None) or (status is not None and not states):
            return [], 0
        tasks, total = list_tasks(con, limit, offset, skill.id if skill else None, states)
        return [_view(con, task) for task in tasks], total

    tasks, total = await services.state.read(read_tasks)
    return TaskList.model_construct(tasks=tasks, total=total, limit=limit, offset=offset)


@router.post("", status_code=201, summary="Give an agent a task")
async def create(new: NewTask, services: ServicesDep) -> TaskView:
    """Creates a task, which runs in the background."""
    if new.options is not None and (
        new.options.auto_create_pr or new.options.plan_approval_required
    ):
        raise InvalidRequest(
            "options: the agents of this gateway make no pull requests and ask for no approval: "
            "leave autoCreatePr and planApprovalRequired out.",
            param="options",
        )
    skill = await services.state.read(lambda con: _agent(con, new.provider_id))
    if skill is None:
        raise InvalidRequest(
            f"providerId: there is no agent `{new.provider_id}`; make it at /api/agent-skills.",
            param="providerId",
        )
    parts = [text_part(new.prompt)]
    about: dict[str, Any] = {
        name: value.model_dump(by_alias=True, exclude_defaults=True)
        for name, value in (("source", new.source), ("options", new.options))
        if value is not None
    }
    if len(orjson.dumps(about)) > _METADATA_MAX_BYTES:
        raise InvalidRequest(
            f"source and options together must be at most {_METADATA_MAX_BYTES} bytes.",
            param="options",
        )
    if about:
        parts.append({"kind": "data", "data": about})
    return await _give(services, skill, parts, None)


@router.get("/{task_id}", summary="One task of an agent, with what happened in it")
async def read(task_id: str, services: ServicesDep) -> TaskView:
    """Reads a task."""
    return await services.state.read(lambda con: _view(con, found_task(con, task_id)))


@router.post("/{task_id}", summary="Cancel a task, or send its agent another message")
async def act(task_id: str, body: TaskAction, services: ServicesDep) -> TaskView:
    """Acts on a task: `cancel` ends it; `message` creates a new task in the same context and returns that."""
    task, skill = await services.state.read(lambda con: _with_skill(con, task_id))
    if body.action == "message":
        if body.message is None:
            raise InvalidRequest("message is required: send a text for the agent.", param="message")
        if task.owner != OPERATOR:
            raise Conflict("The task belongs to a client: only that client can continue it.")
        return await _give(services, skill, [text_part(body.message)], task.context_id)
    if body.action == "approve":
        raise Conflict("No step of this task waits for approval.")
    ended = await services.state.record(
        lambda con: end_task(con, task_id, Ending("canceled"), now_ms())
    )
    if not ended:
        raise Conflict("The task has ended already.")
    TaskRunner.of(services).stop(task_id)
    return await services.state.read(lambda con: _view(con, found_task(con, task_id)))


@router.delete("/{task_id}", summary="Delete a task that has ended")
async def delete(task_id: str, services: ServicesDep) -> TaskDeleted:
    """Deletes a task with its messages."""

    def delete_inactive(con: Connection) -> None:
        if found_task(con, task_id).is_active:
            raise Conflict("The task is being worked on: cancel it first.")
        delete_task(con, task_id)

    await services.state.record(delete_inactive)
    return TaskDeleted()


async def _give(
    services: Services, skill: Skill, parts: list[dict[str, Any]], context_id: str | None
) -> TaskView:
    message = Message(str(uuid4()), "user", tuple(parts), now_ms())
    task = await submit_task(AgentRequest(services, skill, OPERATOR), message, context_id, {})
    return await services.state.read(lambda con: _view(con, found_task(con, task.id)))


def _agent(con: Connection, name: str) -> Skill | None:
    return find_skill(con, name) or find_skill_by_slug(con, name)


def _with_skill(con: Connection, task_id: str) -> tuple[Task, Skill]:
    task = found_task(con, task_id)
    skill = find_skill(con, task.skill_id)
    if skill is None:
        raise Conflict("The task's agent is being deleted.")
    return task, skill


def _view(con: Connection, task: Task) -> TaskView:
    messages = messages_of(con, task.id)
    skill = find_skill(con, task.skill_id)
    answer = next((each for each in reversed(messages) if each.role == "agent"), None)
    activities = [
        Activity.model_construct(
            id=f"{task.id}-{number}",
            type="completion" if each is answer else "message",
            content=text_of(each.parts),
            timestamp=moment_of(each.at_ms),
        )
        for number, each in enumerate(messages)
    ]
    if task.reason is not None:
        activities.append(
            Activity.model_construct(
                id=f"{task.id}-error",
                type="error",
                content=task.reason,
                timestamp=moment_of(task.updated_at_ms),
            )
        )
    result = None
    if task.state == "completed" and answer is not None:
        result = TaskResult.model_construct(
            summary=text_of(answer.parts), duration_ms=answer.at_ms - task.created_at_ms
        )
    return TaskView.model_construct(
        id=task.id,
        provider_id=skill.slug if skill else task.skill_id,
        agent_id=task.skill_id,
        owner=task.owner,
        prompt=text_of(messages[0].parts[:1]) if messages else "",
        status=_STATUS[task.state],
        context_id=task.context_id,
        result=result,
        error=task.reason,
        activities=activities,
        created_at=moment_of(task.created_at_ms),
        updated_at=moment_of(task.updated_at_ms),
        completed_at=None if task.is_active else moment_of(task.updated_at_ms),
    )

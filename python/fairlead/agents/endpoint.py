"""`/agents/{slug}`: an agent over A2A JSON-RPC, in the versions 0.3 and 1.0 (`version_one.py`).

`AUTH__ENABLED` puts token authentication in front of it. Each client sees only its own tasks; without
authentication all callers count as one client.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import structlog
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from fairlead.agents import protocol, version_one
from fairlead.agents.card import READ, WRITE, card_of
from fairlead.agents.protocol import Call, CallFault, RpcFault
from fairlead.agents.runner import TaskRunner
from fairlead.agents.skill import Skill
from fairlead.agents.skill_table import find_skill_by_slug
from fairlead.agents.stream import stream_answer
from fairlead.agents.task import ANYONE, Message, Task, client_owner
from fairlead.agents.task_list import list_page, read_query
from fairlead.agents.task_table import Ending, end_task, find_task, insert_task, messages_of
from fairlead.calls.bearer import Bearer, BearerRefused
from fairlead.calls.origin import own_bases, public_base
from fairlead.errors import FairleadError, NotFound, RateLimited
from fairlead.moment import now_ms
from fairlead.settings import ServeFields
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep

# Below control's own deadline for a request; a task that takes longer is answered as `working`.
BLOCK_S: Final = 45.0

_REFUSALS: Final = {
    "missing": (401, protocol.AUTHENTICATION_REQUIRED, "Bearer"),
    "invalid": (401, protocol.INVALID_TOKEN, 'Bearer error="invalid_token"'),
    "expired": (401, protocol.TOKEN_EXPIRED, 'Bearer error="invalid_token"'),
    "closed": (403, protocol.AUTHENTICATION_REQUIRED, None),
    "unavailable": (503, protocol.INTERNAL_ERROR, None),
}
_SCOPES: Final = {
    "message/send": WRITE,
    "message/stream": WRITE,
    "tasks/cancel": WRITE,
    "tasks/get": READ,
    "tasks/list": READ,
    "tasks/resubscribe": READ,
}
_STREAMS: Final = frozenset({"message/stream", "tasks/resubscribe"})

router = APIRouter(tags=["agents"])
log = structlog.get_logger("fairlead.agents")


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """An admitted request: its owner and the agent that it is for."""

    services: Services
    skill: Skill
    owner: str


@router.get("/agents/{slug}/.well-known/agent-card.json", summary="Describe an agent: its A2A card")
async def card(slug: str, request: Request, services: ServicesDep) -> dict[str, Any]:
    """The public agent card, which tells clients where to get a token."""
    skill = await services.state.read(lambda con: find_skill_by_slug(con, slug))
    if skill is None:
        raise NotFound("There is no agent at this path.")
    return card_of(skill, public_base(services.config, request), services.config)


@router.post("/agents/{slug}", summary="An agent: one JSON-RPC message (A2A)", response_model=None)
async def message(slug: str, request: Request, services: ServicesDep) -> Response:
    """Handles a JSON-RPC call. An error before the call could be parsed has the id null, as in A2A."""
    call_id: protocol.Id = None
    is_newer = False
    try:
        bearer = await _admit(request, services)
        _check_audience(bearer, slug, services.config)
        call = protocol.read_call(await request.body(), request.headers.get("content-type", ""))
        call_id = call.id
        version_one.check_version(request.headers.get(version_one.VERSION_HEADER))
        is_newer = version_one.is_of_version_one(call.method)
        older = version_one.as_older_call(call) if is_newer else call
        _check_scope(bearer, older.method)
        skill = await services.state.read(lambda con: find_skill_by_slug(con, slug))
        if skill is None:
            raise RpcFault(protocol.METHOD_NOT_FOUND, "There is no agent at this path.", status=404)
        if not skill.admits(None if bearer is None else bearer.client_id):
            raise RpcFault(
                protocol.CLIENT_NOT_ALLOWED, "This client may not call the agent.", status=403
            )
        owner = ANYONE if bearer is None else client_owner(bearer.client_id)
        agent_request = AgentRequest(services, skill, owner)
        if older.method in _STREAMS:
            return await _stream(agent_request, older, is_newer=is_newer)
        result = await _act(agent_request, older)
        if is_newer:
            result = version_one.newer_result(call.method, result)
        return protocol.answer(call_id, result)
    except CallFault as fault:
        return protocol.fault_answer(fault.call_id, fault)
    except RpcFault as fault:
        if is_newer and fault.data is None:
            fault.data = version_one.error_data(fault.code)
        return protocol.fault_answer(call_id, fault)
    except RateLimited as error:
        after = {"retry-after": str(error.retry_after_s or 5)}
        busy = RpcFault(protocol.BUSY, error.message, status=429, headers=after)
        return protocol.fault_answer(call_id, busy)
    except FairleadError as error:
        failure = RpcFault(protocol.INTERNAL_ERROR, error.message, status=error.status)
        return protocol.fault_answer(call_id, failure)


async def _admit(request: Request, services: Services) -> Bearer | None:
    if services.bearers is None:
        raise RpcFault(
            protocol.INTERNAL_ERROR,
            "Authentication of agents' callers is not available.",
            status=503,
        )
    try:
        return await services.bearers.admit(request)
    except BearerRefused as refused:
        status, code, challenge = _REFUSALS[refused.reason]
        headers = {} if challenge is None else {"www-authenticate": challenge}
        if refused.reason == "unavailable":
            headers = {"retry-after": "1"}
        raise RpcFault(code, refused.message, status=status, headers=headers) from None


def _check_audience(bearer: Bearer | None, slug: str, config: ServeFields) -> None:
    """Refuses a token whose audience is another resource, such as one that was shown to an agent elsewhere.

    `Host` is ignored here, because the sender of the token controls it.
    """
    if bearer is None or not bearer.audience:
        return
    own = {base + path for base in own_bases(config) for path in ("", f"/agents/{slug}")}
    if own.isdisjoint(name.rstrip("/") for name in bearer.audience):
        raise RpcFault(
            protocol.INVALID_TOKEN,
            "The token is for another audience than this agent.",
            status=401,
            headers={"www-authenticate": 'Bearer error="invalid_token"'},
        )


def _check_scope(bearer: Bearer | None, method: str) -> None:
    # An unknown method is answered as such before any scope is checked.
    needed = _SCOPES.get(method)
    if bearer is not None and needed is not None and needed not in bearer.scopes:
        raise RpcFault(
            protocol.INSUFFICIENT_SCOPE,
            f"The token lacks the scope {needed}.",
            status=403,
            headers={"www-authenticate": f'Bearer error="insufficient_scope", scope="{needed}"'},
        )


async def _act(request: AgentRequest, call: Call) -> dict[str, Any]:
    match call.method:
        case "message/send":
            return await _send(request, call.params)
        case "tasks/get":
            return await _get(request, call.params)
        case "tasks/cancel":
            return await _cancel(request, call.params)
        case "tasks/list":
            query = read_query(call.params)
            return await request.services.state.read(
                lambda con: list_page(con, request.skill.id, request.owner, query)
            )
    if call.method == "agent/getAuthenticatedExtendedCard":
        raise RpcFault(protocol.UNSUPPORTED_OPERATION, f"{call.method} is not supported.")
    if call.method.startswith("tasks/pushNotificationConfig/"):
        raise RpcFault(protocol.PUSH_NOT_SUPPORTED, "Push notifications are not supported.")
    raise RpcFault(protocol.METHOD_NOT_FOUND, "There is no such method.")


async def _stream(request: AgentRequest, call: Call, *, is_newer: bool) -> Response:
    """The events of a new task, or of one that is in progress."""
    if call.method == "message/stream":
        task, _, _ = await _submitted(request, call.params)
    else:
        task, _ = await _found(request, _task_id(call.params))
        if not task.is_active and is_newer:
            raise RpcFault(
                protocol.UNSUPPORTED_OPERATION, "The task has ended: ask for it with GetTask."
            )
    form = version_one.newer_event if is_newer else _unchanged
    return stream_answer(request.services, task, call.id, form)


def _unchanged(event: dict[str, Any]) -> dict[str, Any]:
    return event


async def _send(request: AgentRequest, params: dict[str, Any]) -> dict[str, Any]:
    task, length, blocks = await _submitted(request, params)
    if blocks and task.is_active:
        await until_ended(request.services, task.id, BLOCK_S)
    found, messages = await _found(request, task.id)
    return found.view(messages, length)


async def _submitted(
    request: AgentRequest, params: dict[str, Any]
) -> tuple[Task, int | None, bool]:
    """The new task of a message, the requested length of its history, and whether the caller waits."""
    message, task_id, context_id = protocol.read_message(params)
    options = params.get("configuration") or {}
    if not isinstance(options, dict):
        raise protocol.invalid_params("configuration", "must be an object")
    if options.get("pushNotificationConfig") is not None:
        raise RpcFault(protocol.PUSH_NOT_SUPPORTED, "Push notifications are not supported.")
    length = protocol.read_length(options, "configuration.")
    blocks = options.get("blocking", True)
    if not isinstance(blocks, bool):
        raise protocol.invalid_params("configuration.blocking", "must be true or false")
    metadata = params.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise protocol.invalid_params("metadata", "must be an object")
    if task_id is not None:
        task, _ = await _found(request, task_id)
        state = "is being worked on" if task.is_active else "has ended"
        raise RpcFault(
            protocol.UNSUPPORTED_OPERATION,
            f"The task {state}: send a new message with its contextId instead.",
        )
    return await submit_task(request, message, context_id, metadata), length, blocks


async def submit_task(
    request: AgentRequest, message: Message, context_id: str | None, metadata: dict[str, Any]
) -> Task:
    """Stores a task and wakes the runner; a repeated message id returns the same task."""
    at_ms = message.at_ms
    task = Task(
        id=str(uuid4()),
        skill_id=request.skill.id,
        owner=request.owner,
        context_id=context_id or str(uuid4()),
        message_id=message.message_id,
        state="submitted",
        attempts=0,
        reason=None,
        metadata=metadata,
        created_at_ms=at_ms,
        updated_at_ms=at_ms,
        expires_at_ms=None,
    )
    stored = await request.services.state.record(lambda con: insert_task(con, task, message))
    TaskRunner.of(request.services).wake()
    return stored


async def until_ended(services: Services, task_id: str, within_s: float) -> None:
    """Waits until a task has ended, for at most `within_s` seconds."""
    waiting = asyncio.ensure_future(TaskRunner.of(services).until_ended(task_id, within_s))
    try:
        # The wait starts before the read, so that an end between the two is not missed.
        await asyncio.sleep(0)
        task = await services.state.read(lambda con: find_task(con, task_id))
        if task is not None and task.is_active:
            await waiting
    finally:
        waiting.cancel()


async def _get(request: AgentRequest, params: dict[str, Any]) -> dict[str, Any]:
    length = protocol.read_length(params)
    task, messages = await _found(request, _task_id(params))
    return task.view(messages, length)


async def _cancel(request: AgentRequest, params: dict[str, Any]) -> dict[str, Any]:
    task_id = _task_id(params)
    await _found(request, task_id)
    ended = await request.services.state.record(
        lambda con: end_task(con, task_id, Ending("canceled"), now_ms())
    )
    if not ended:
        raise RpcFault(protocol.TASK_NOT_CANCELABLE, "The task has ended already.")
    TaskRunner.of(request.services).stop(task_id)
    task, messages = await _found(request, task_id)
    return task.view(messages)


def _task_id(params: dict[str, Any]) -> str:
    task_id = protocol.read_id(params, "id")
    if task_id is None:
        raise protocol.invalid_params("id", "is required: the id of a task")
    return task_id


async def _found(request: AgentRequest, task_id: str) -> tuple[Task, list[Message]]:
    def read_task(con: Connection) -> tuple[Task, list[Message]] | None:
        task = find_task(con, task_id)
        if task is None or task.skill_id != request.skill.id or task.owner != request.owner:
            return None
        return task, messages_of(con, task_id)

    found = await request.services.state.read(read_task)
    if found is None:
        raise RpcFault(protocol.TASK_NOT_FOUND, "There is no task with this id.")
    return found

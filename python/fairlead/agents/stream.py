"""A task as it happens: server-sent events of A2A, for `message/stream` and `tasks/resubscribe`.

The first event is the task. Changes of its state follow, then the answer as an artifact, and the last state.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import orjson
import structlog
from starlette.responses import StreamingResponse

from fairlead.agents import protocol
from fairlead.agents.runner import TaskRunner
from fairlead.agents.task import Message, Task
from fairlead.agents.task_table import find_task, messages_of
from fairlead.errors import FairleadError
from fairlead.store.file import Connection
from fairlead.store.services import Services

LOOK_EVERY_S: Final = 1.0
HEARTBEAT_S: Final = 10.0
STREAM_MAX_S: Final = 1800.0

log = structlog.get_logger("fairlead.agents")


def stream_answer(
    services: Services,
    task: Task,
    call_id: protocol.Id,
    form: Callable[[dict[str, Any]], dict[str, Any]],
) -> StreamingResponse:
    """The events of a task until it has ended, or `STREAM_MAX_S` are over. `form` writes an event in the version of the
    caller.
    """

    async def frames() -> AsyncIterator[bytes]:
        try:
            async for event in _events(services, task.id):
                if event is None:
                    yield b": nothing new\n\n"
                    continue
                frame = {"jsonrpc": "2.0", "id": call_id, "result": form(event)}
                yield b"data: " + orjson.dumps(frame) + b"\n\n"
        except FairleadError as error:
            log.warning("stream of a task ended early", task=task.id, error=error.kind)
            fault = {"code": protocol.INTERNAL_ERROR, "message": error.message}
            yield (
                b"data: "
                + orjson.dumps({"jsonrpc": "2.0", "id": call_id, "error": fault})
                + b"\n\n"
            )

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(frames(), media_type="text/event-stream", headers=headers)


async def _events(services: Services, task_id: str) -> AsyncIterator[dict[str, Any] | None]:
    """The events of a task; None where nothing has happened for a while."""
    ends_s = time.monotonic() + STREAM_MAX_S
    found = await _found(services, task_id)
    if found is None:
        return
    task, messages = found
    yield task.view(messages)
    spoke_s = time.monotonic()
    while task.is_active and time.monotonic() < ends_s:
        await TaskRunner.of(services).until_ended(task_id, LOOK_EVERY_S)
        before = task.state
        found = await _found(services, task_id)
        if found is None:
            return
        task, messages = found
        if task.state != before:
            spoke_s = time.monotonic()
            for event in change_events(task, messages):
                yield event
        elif time.monotonic() - spoke_s >= HEARTBEAT_S:
            spoke_s = time.monotonic()
            yield None


def change_events(task: Task, messages: list[Message]) -> list[dict[str, Any]]:
    """The events of a new state: the artifacts that came with it, and the state."""
    view = task.view(messages, 0)
    own = {"taskId": task.id, "contextId": task.context_id}
    artifacts = [
        {
            "kind": "artifact-update",
            **own,
            "artifact": artifact,
            "append": False,
            "lastChunk": True,
        }
        for artifact in view.get("artifacts", [])
    ]
    status = {
        "kind": "status-update",
        **own,
        "status": view["status"],
        "final": not task.is_active,
    }
    return [*artifacts, status]


async def _found(services: Services, task_id: str) -> tuple[Task, list[Message]] | None:
    def read_task(con: Connection) -> tuple[Task, list[Message]] | None:
        task = find_task(con, task_id)
        return None if task is None else (task, messages_of(con, task_id))

    return await services.state.read(read_task)

"""The runner of agents' tasks: takes up each task that has not ended, asks the agent's model and stores the
answer.

Retries a task that was in progress when the process died, as often as `store.runner` allows. Cancelling a task
cancels its call to the model.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final
from uuid import uuid4

import orjson
import structlog

from fairlead.agents.skill import DEFAULT_MODEL, Skill
from fairlead.agents.skill_table import find_skill, keys_of_skills
from fairlead.agents.task import Message, State, Task, text_part
from fairlead.agents.task_table import (
    Ending,
    active_tasks,
    begin_task,
    context_before,
    end_task,
    messages_of,
    sweep_tasks,
)
from fairlead.calls.model import Model
from fairlead.errors import FairleadError, StorageUnavailable, Unauthenticated
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.runner import Runner
from fairlead.store.services import Services

TASKS_AT_ONCE: Final = 32
TASK_DEADLINE_S: Final = 600.0
RETRY_S: Final = 2.0
CONTEXT_MAX_CHARS: Final = 200_000

log = structlog.get_logger("fairlead.agents")


class TaskRunner(Runner[Task]):
    """The runner of agents' tasks; endpoints call `wake`, `stop` and `until_ended`."""

    kind = "agent task"
    at_once = TASKS_AT_ONCE

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._ends: dict[str, asyncio.Event] = {}
        self._waiters: dict[str, int] = {}
        self._keys: dict[str, str] = {}

    async def active(self) -> list[Task]:
        def read_active(con: Connection) -> tuple[list[Task], dict[str, str]]:
            return active_tasks(con), keys_of_skills(con)

        tasks, self._keys = await self.services.state.read(read_active)
        return tasks

    def owner_of(self, item: Task) -> str:
        return item.owner

    def key_of(self, item: Task) -> str | None:
        return self._keys.get(item.skill_id)

    async def revoke(self, item: Task, reason: str) -> None:
        await self.stop_and_wait(item.id)
        advice = "give the agent skill a key in force, as its apiKeyId"
        await self._end(item, "failed", f"{reason} ({advice})")
        self._notify_waiters(item.id)

    async def sweep(self) -> None:
        await self.services.state.record(lambda con: sweep_tasks(con, now_ms()))

    def stop(self, item_id: str) -> None:
        super().stop(item_id)
        self._notify_waiters(item_id)

    def ended(self, item: Task) -> None:
        self._notify_waiters(item.id)

    async def until_ended(self, task_id: str, within_s: float) -> None:
        """Waits until work on the task ends, for at most `within_s` seconds.

        Call it before the task is stored, or read the task afterwards: an end in the past is not signalled
        again.
        """
        event = self._ends.setdefault(task_id, asyncio.Event())
        self._waiters[task_id] = self._waiters.get(task_id, 0) + 1
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await event.wait()
        finally:
            self._waiters[task_id] -= 1
            if not self._waiters[task_id]:
                del self._waiters[task_id]
                self._ends.pop(task_id, None)

    def _notify_waiters(self, task_id: str) -> None:
        if event := self._ends.get(task_id):
            event.set()

    async def process(self, task: Task) -> None:
        try:
            try:
                async with asyncio.timeout(TASK_DEADLINE_S):
                    answer = await self._call_model(task)
                if answer is not None:
                    await self._end(task, "completed", answer=answer)
            except StorageUnavailable:
                raise
            except Unauthenticated as error:
                advice = "give the agent skill a key in force, as its apiKeyId"
                await self._end(task, "failed", f"{error.message} ({advice})")
            except FairleadError as error:
                await self._end(task, "failed", error.message)
            except TimeoutError:
                await self._end(task, "failed", f"Not done within {TASK_DEADLINE_S:g} s.")
            except Exception as error:  # noqa: BLE001 - a defect ends this task, not the others
                log.error("agent task failed", task=task.id, error=type(error).__name__)
                reason = "This is a defect of fairlead; its log has more."
                await self._end(task, "failed", reason)
        except FairleadError as error:
            # The database does not answer: the task is unchanged and will be taken up again.
            log.error("agent task interrupted", task=task.id, error=error.kind)
            await asyncio.sleep(RETRY_S)

    async def give_up(self, task: Task, reason: str) -> None:
        await self._end(task, "failed", reason)
        self._notify_waiters(task.id)

    async def _call_model(self, task: Task) -> Message | None:
        """The model's answer; None when the task has ended meanwhile."""
        if not await self.services.state.record(lambda con: begin_task(con, task.id, now_ms())):
            return None

        def read_conversation(con: Connection) -> tuple[Skill | None, list[Message]]:
            messages = context_before(con, task) + messages_of(con, task.id)
            return find_skill(con, task.skill_id), messages

        skill, messages = await self.services.state.read(read_conversation)
        if skill is None:
            return None
        model = Model(
            self.services.config,
            skill.api_key_id,
            skill.model or DEFAULT_MODEL,
            temperature=skill.temperature,
            deadline_s=TASK_DEADLINE_S,
        )
        answer = await model.ask(conversation(skill.prompt, messages))
        return Message(str(uuid4()), "agent", (text_part(answer.text),), now_ms())

    async def _end(
        self, task: Task, state: State, reason: str | None = None, answer: Message | None = None
    ) -> None:
        at_ms = max(now_ms(), task.created_at_ms)
        ending = Ending(state, reason, answer)
        await self.services.state.record(lambda con: end_task(con, task.id, ending, at_ms))


def conversation(prompt: str, messages: list[Message]) -> list[dict[str, str]]:
    """The model's input: the prompt, then the newest messages that fit."""
    chosen: list[dict[str, str]] = []
    size = 0
    for message in reversed(messages):
        text = text_of(message.parts)
        size += len(text)
        if chosen and size > CONTEXT_MAX_CHARS:
            break
        role = "assistant" if message.role == "agent" else "user"
        chosen.append({"role": role, "content": text})
    return [{"role": "system", "content": prompt}, *reversed(chosen)]


def text_of(parts: tuple[dict[str, Any], ...]) -> str:
    """The parts of a message as one text; data as JSON."""
    return "\n\n".join(
        str(part["text"]) if part["kind"] == "text" else orjson.dumps(part["data"]).decode()
        for part in parts
    )

"""Commands of control to relay workers.

A command is sent with the response to a worker's poll, its report arrives with a later poll
(docs/explanation/contracts.md).
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from typing import Any

from pydantic import BaseModel, Field

from fairlead.control.workers import Workers
from fairlead.errors import StorageUnavailable

DEADLINE_S = 8.0


class Report(BaseModel):
    """The outcome of a command: `result`, or `error` as a sentence."""

    id: int = Field(ge=0, le=2**53)
    result: Any = None
    error: str | None = Field(None, max_length=300)


class Commands:
    """Pending commands, and the callers that wait for their reports."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._ids = itertools.count(1)
        self._pending: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._arrived = asyncio.Event()

    async def ask(self, kind: str, args: dict[str, Any]) -> list[Any]:
        """Sends a command to every live worker and returns their results. `StorageUnavailable` when a worker
        does not answer, or there is none.
        """
        live = [report.worker_id for report in self._workers.reports() if report.live]
        if not live:
            raise StorageUnavailable("No relay worker is connected.", retry_after_s=1)
        loop = asyncio.get_running_loop()
        answers: dict[int, asyncio.Future[Any]] = {}
        for worker_id in live:
            command_id = next(self._ids)
            answers[command_id] = self._waiting[command_id] = loop.create_future()
            self._pending[worker_id].append({"id": command_id, "kind": kind, "args": args})
        self._arrived.set()
        self._arrived = asyncio.Event()
        try:
            async with asyncio.timeout(DEADLINE_S):
                return [await answer for answer in answers.values()]
        except TimeoutError:
            raise StorageUnavailable(
                "A relay worker did not answer in time.", retry_after_s=1
            ) from None
        finally:
            for command_id in answers:
                self._waiting.pop(command_id, None)
            for worker_id in live:
                remaining = [each for each in self._pending[worker_id] if each["id"] not in answers]
                self._pending[worker_id] = remaining
                if not remaining:
                    del self._pending[worker_id]

    def take(self, worker_id: str) -> list[dict[str, Any]]:
        """Takes the commands that wait for this worker."""
        return self._pending.pop(worker_id, [])

    async def arrive(self, worker_id: str) -> None:
        """Waits until there is a command for this worker."""
        while worker_id not in self._pending:
            await self._arrived.wait()

    def report(self, done: list[Report]) -> None:
        """Delivers the reports of a worker. A report for which no caller waits any more is dropped."""
        for report in done:
            waiting = self._waiting.get(report.id)
            if waiting is None or waiting.done():
                continue
            if report.error is None:
                waiting.set_result(report.result)
            else:
                waiting.set_exception(
                    StorageUnavailable(f"A relay worker reports: {report.error}.")
                )

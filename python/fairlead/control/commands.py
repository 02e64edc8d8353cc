"""What control asks of the relay workers: a command goes with the answer to a worker's poll, its report comes with
a later one (docs/explanation/contracts.md).
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
    """What came of a command: `result`, or `error` in words."""

    id: int = Field(ge=0, le=2**53)
    result: Any = None
    error: str | None = Field(None, max_length=300)


class Commands:
    """Commands on their way to workers, and who waits for their reports."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._ids = itertools.count(1)
        self._pending: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._arrived = asyncio.Event()

    async def ask(self, kind: str, args: dict[str, Any]) -> list[Any]:
        """What each live worker answers. `StorageUnavailable` when one does not, or there is none."""
        live = [report.worker_id for report in self._workers.reports() if report.live]
        if not live:
            raise StorageUnavailable("No relay worker is connected.", retry_after_s=1)
        loop = asyncio.get_running_loop()
        asked: dict[int, asyncio.Future[Any]] = {}
        for worker_id in live:
            command_id = next(self._ids)
            asked[command_id] = self._waiting[command_id] = loop.create_future()
            self._pending[worker_id].append({"id": command_id, "kind": kind, "args": args})
        self._arrived.set()
        self._arrived = asyncio.Event()
        try:
            async with asyncio.timeout(DEADLINE_S):
                return [await answer for answer in asked.values()]
        except TimeoutError:
            raise StorageUnavailable(
                "A relay worker did not answer in time.", retry_after_s=1
            ) from None
        finally:
            for command_id in asked:
                self._waiting.pop(command_id, None)
            for worker_id in live:
                kept = [each for each in self._pending[worker_id] if each["id"] not in asked]
                self._pending[worker_id] = kept
                if not kept:
                    del self._pending[worker_id]

    def take(self, worker_id: str) -> list[dict[str, Any]]:
        """What this worker is to do now."""
        return self._pending.pop(worker_id, [])

    async def arrive(self, worker_id: str) -> None:
        """Returns once there is something for this worker."""
        while worker_id not in self._pending:
            await self._arrived.wait()

    def report(self, done: list[Report]) -> None:
        """A worker has carried commands out. A report that nobody waits for any more is let go."""
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

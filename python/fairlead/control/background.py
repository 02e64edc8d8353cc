"""Background tasks: one that ends is logged, fails readiness, and is restarted with backoff."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from fairlead.control.logs import where
from fairlead.store.services import TaskReport

BACKOFF_FIRST_S = 0.5
BACKOFF_MAX_S = 30.0
# A task that ran for this long restarts with the first backoff.
STEADY_S = 60.0
STOP_DEADLINE_S = 5.0

log = structlog.get_logger("fairlead.control")


@dataclass(slots=True)
class _Owned:
    name: str
    running: bool = False
    restarts: int = 0
    last_error: str | None = None


class Background:
    """Starts, restarts and stops background tasks."""

    def __init__(self) -> None:
        self._owned: list[_Owned] = []
        self._tasks: list[asyncio.Task[None]] = []

    def start(
        self,
        name: str,
        run: Callable[[], Awaitable[None]],
        *,
        backoff_max_s: float = BACKOFF_MAX_S,
    ) -> None:
        """Keeps `run` running until `stop`."""
        owned = _Owned(name)
        self._owned.append(owned)
        self._tasks.append(asyncio.create_task(_keep_going(owned, run, backoff_max_s), name=name))

    def reports(self) -> list[TaskReport]:
        """The state of each task."""
        return [TaskReport(o.name, o.running, o.restarts, o.last_error) for o in self._owned]

    async def stop(self) -> None:
        """Cancels every task and waits a few seconds for them."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=STOP_DEADLINE_S)
            for task in late:
                log.error("background task does not stop", task=task.get_name())


async def _keep_going(
    owned: _Owned, run: Callable[[], Awaitable[None]], backoff_max_s: float
) -> None:
    backoff_s = BACKOFF_FIRST_S
    while True:
        started = time.monotonic()
        owned.running = True
        try:
            await run()
            owned.last_error = "ended"
            log.error("background task ended", task=owned.name)
        except Exception as error:  # noqa: BLE001 - whatever ended the task, it is reported and restarted
            owned.last_error = type(error).__name__
            log.error(
                "background task failed",
                task=owned.name,
                error=owned.last_error,
                where=where(error),
            )
        finally:
            owned.running = False
        if time.monotonic() - started > STEADY_S:
            backoff_s = BACKOFF_FIRST_S
        await asyncio.sleep(backoff_s)
        backoff_s = min(backoff_s * 2, backoff_max_s)
        owned.restarts += 1

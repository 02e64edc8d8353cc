"""The relay workers that poll the link: liveness, applied snapshot version and latest report of each."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairlead.store.services import WorkerReport

LIVE_AFTER_ANSWER_S = 2.0
# One on another machine may have been cut off, or what connects it has ended, while it serves on. It gives this control
# up after seven seconds and asks another: until then a write must not say that it is in force everywhere.
REMOTE_LIVE_AFTER_ANSWER_S = 10.0
# How long a control that has just started waits for the workers of its node to poll it, before it answers a change.
# They try again four times a second.
SETTLE_S = 8.0
NEVER_S = -REMOTE_LIVE_AFTER_ANSWER_S
REMEMBERED_S = 300.0
WORKERS_MAX = 1024
# Members of a worker's report about connections: their states, and the newest reset of states that it knows.
_OF_CONNECTIONS = ("connections", "cleared")


@dataclass(slots=True)
class _Worker:
    pid: int = 0
    is_remote: bool = False
    applied_version: int = 0
    open_polls: int = 0
    has_answer: bool = False
    """Whether a poll of it was answered."""
    answered_at: float = NEVER_S
    heard_at: float = 0.0
    forwarded_at: float = 0.0
    stats: dict[str, Any] = field(default_factory=dict)

    @property
    def seen_at(self) -> float:
        return max(self.heard_at, self.forwarded_at)


class Workers:
    """The workers. One is live while it has an open poll, and for two seconds after the last was answered. One on
    another machine is so for ten seconds after its last one ended in any way, unless it was being drained.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, expected: int = 0) -> None:
        self._now = now
        self._expected = expected
        """The workers of this node, where it is known."""
        self._settles_until = now() + SETTLE_S
        self._workers: dict[str, _Worker] = {}
        self._polled = asyncio.Event()
        self._connections_changed = asyncio.Event()

    def poll_begins(
        self, worker_id: str, pid: int | None, applied_version: int, stats: dict[str, Any]
    ) -> None:
        """Records the start of a poll. `pid` is None for a worker on another machine."""
        self._forget_old()
        worker = self._workers.setdefault(worker_id, _Worker())
        worker.pid, worker.is_remote = pid or 0, pid is None
        worker.applied_version = applied_version
        if any(worker.stats.get(name) != stats.get(name) for name in _OF_CONNECTIONS):
            self._connections_changed.set()
            self._connections_changed = asyncio.Event()
        worker.stats = stats
        worker.heard_at = self._now()
        worker.open_polls += 1
        self._notify()

    def poll_ends(self, worker_id: str, *, answered: bool) -> None:
        """Records the end of a poll, answered or disconnected."""
        worker = self._workers.get(worker_id)
        if worker is None:
            return
        worker.open_polls -= 1
        worker.has_answer |= answered
        # A connection that ended says of a worker on this machine that it has ended.
        lives_on = worker.is_remote and not worker.stats.get("draining", False)
        worker.answered_at = self._now() if answered or lives_on else NEVER_S
        self._notify()

    def forwarded(self, worker_id: str) -> None:
        """Records a request that this worker forwarded.

        The worker is live even if a restarted control has had no poll of it yet, so a change that it brings
        waits for it. A worker that continues without a poll polls another control, which waits for it.
        """
        self._forget_old()
        now = self._now()
        worker = self._workers.setdefault(worker_id, _Worker(heard_at=now))
        worker.forwarded_at = now
        polls_elsewhere = worker.is_remote or now - worker.heard_at >= REMOTE_LIVE_AFTER_ANSWER_S
        if worker.open_polls == 0 and not polls_elsewhere:
            worker.answered_at = now

    async def applied(self, version: int, deadline_s: float) -> bool:
        """Waits until every live worker has polled with this version; False at the deadline.

        After a start it waits longer, and for the workers that have not polled yet: they serve by the snapshot of an
        earlier control.
        """
        if self._expected > 0:
            deadline_s = max(deadline_s, self._settles_until - self._now())
        try:
            async with asyncio.timeout(deadline_s):
                while self._is_settling() or any(
                    self._is_live(w) and w.applied_version < version for w in self._workers.values()
                ):
                    await self._polled.wait()
        except TimeoutError:
            return False
        return True

    def is_new(self, worker_id: str) -> bool:
        """Whether no poll of this worker has been answered yet."""
        worker = self._workers.get(worker_id)
        return worker is None or not worker.has_answer

    def _is_settling(self) -> bool:
        """Whether control has just started and some of this node's workers have not polled."""
        if self._now() >= self._settles_until:
            return False
        polled = sum(worker.has_answer for worker in self._workers.values())
        return polled < self._expected

    def applied_version(self) -> int | None:
        """The newest snapshot that every live worker has applied; None where none is live."""
        live = [each.applied_version for each in self._workers.values() if self._is_live(each)]
        return min(live, default=None)

    async def wait_for_poll(self, within_s: float) -> None:
        """Waits until a worker polls, for at most `within_s` seconds."""
        polled = self._polled
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await polled.wait()

    async def connections_changed(self, within_s: float) -> None:
        """Waits until a worker reports a change of its connections, for at most `within_s` seconds."""
        changed = self._connections_changed
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await changed.wait()

    def reports(self) -> list[WorkerReport]:
        """The reports of all workers seen in the last minutes."""
        now = self._now()
        return [
            WorkerReport(
                worker_id=worker_id,
                pid=worker.pid,
                live=self._is_live(worker),
                applied_version=worker.applied_version,
                age_ms=int((now - worker.heard_at) * 1000),
                stats=worker.stats,
            )
            for worker_id, worker in self._workers.items()
        ]

    def pids(self) -> dict[str, int]:
        """The process of each worker that said which it is."""
        return {worker_id: w.pid for worker_id, w in self._workers.items() if w.pid}

    def _is_live(self, worker: _Worker) -> bool:
        for_s = REMOTE_LIVE_AFTER_ANSWER_S if worker.is_remote else LIVE_AFTER_ANSWER_S
        return worker.open_polls > 0 or self._now() - worker.answered_at < for_s

    def _forget_old(self) -> None:
        old = self._now() - REMEMBERED_S
        gone = [i for i, w in self._workers.items() if w.open_polls == 0 and w.seen_at < old]
        if len(self._workers) - len(gone) >= WORKERS_MAX:
            idle = (i for i, w in self._workers.items() if w.open_polls == 0 and i not in gone)
            gone.append(next(idle, gone[0] if gone else ""))
        for worker_id in gone:
            self._workers.pop(worker_id, None)

    def _notify(self) -> None:
        self._polled.set()
        self._polled = asyncio.Event()

"""The delivery loop: takes due deliveries up to its capacity, and stores the results.

A delivery stays `pending` until its result is committed. If control dies before that, it is due again when
control is back, under its id. If storing a result fails, the worker ends with that error, and its owner starts
it again. If several controls share a database, each delivers to the endpoints whose lease it has
(`endpoint_leases.py`).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Final

import structlog

from fairlead.moment import now_ms
from fairlead.net.egress import Egress
from fairlead.store.peers import WorkLeases
from fairlead.store.state import State
from fairlead.webhooks.attempt import attempt
from fairlead.webhooks.due_deliveries import (
    CROWDED,
    IN_FLIGHT_MAX,
    DueDelivery,
    endpoints_due,
    find_due,
)
from fairlead.webhooks.endpoint_leases import ASK_AGAIN_S, EndpointLeases
from fairlead.webhooks.endpoint_queue import EndpointQueue
from fairlead.webhooks.settle import FinishedAttempt, settle

# Attempts that end within this time are stored together.
BATCH_S: Final = 0.02
# Changes wake the worker; this interval finds due deliveries without one.
READ_EVERY_S: Final = 30.0
# The clock by which deliveries are due may be set, which no timer notices.
CLOCK_CHECK_S: Final = 5.0
SHUTDOWN_S: Final = 2.0

log = structlog.get_logger("fairlead.webhooks")


class Worker:
    """The worker that sends all deliveries. `clock` gives UTC milliseconds, `spread` draws the
    jitter, `issuer` is our name for listeners that verify with our published key, `leases` are there
    if other controls are.
    """

    # Many parameters: each has a default, and tests replace some.
    def __init__(
        self,
        state: State,
        egress: Egress,
        *,
        clock: Callable[[], int] = now_ms,
        spread: Callable[[float, float], float] = random.uniform,
        issuer: str = "fairlead",
        leases: WorkLeases | None = None,
    ) -> None:
        self._state = state
        self._egress = egress
        self._clock = clock
        self._spread = spread
        self._issuer = issuer
        self._leases = None if leases is None else EndpointLeases(leases, self._mark_lost)
        self._taken: dict[str, DueDelivery] = {}
        self._queues: dict[str, EndpointQueue] = {}
        self._in_flight = 0
        self._read_at = -1
        self._is_all_taken = False
        self._next_ms: int | None = None
        self._read_s = 0.0
        self._ended: list[FinishedAttempt] = []
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Delivers until it is cancelled. Raises when the database does not answer; nothing is lost
        by that.
        """
        self._woken = self._state.watch()
        try:
            async with asyncio.TaskGroup() as attempts:
                while True:
                    self._woken.clear()
                    await self._settle()
                    wait_s = await self._take_up(attempts)
                    await self._wait(wait_s)
        except ExceptionGroup as group:
            # The owner needs the error itself, not its group.
            raise group.exceptions[0] from group
        finally:
            self._state.unwatch(self._woken)
            self._taken.clear()
            for queue in self._queues.values():
                queue.waiting.clear()
                queue.pool.close()
            self._queues.clear()
            await self._settle_last()

    def _mark_lost(self, endpoint_id: str) -> None:
        """Another control may have the endpoint: what has not gone out yet stays."""
        if (queue := self._queues.get(endpoint_id)) is not None:
            self._release(queue)
        self._is_all_taken = False
        self._woken.set()

    async def _take_up(self, attempts: asyncio.TaskGroup) -> float:
        if self._must_read():
            await self._read_due()
        for endpoint_id, queue in list(self._queues.items()):
            self._send_out(queue, attempts)
            if queue.is_idle():
                del self._queues[endpoint_id]
        longest_s = READ_EVERY_S
        if self._leases is not None:
            idle = [each for each in self._leases.by_endpoint if each not in self._queues]
            await self._leases.give_back(idle)
            if self._leases.waits_for_others():
                longest_s = ASK_AGAIN_S
        if self._next_ms is None:
            return longest_s
        return min((self._next_ms - self._clock()) / 1000, CLOCK_CHECK_S, longest_s)

    def _must_read(self) -> bool:
        """Whether something may be due that is not taken up. After a few results that were all
        there was, usually not.
        """
        is_due = self._next_ms is not None and self._clock() >= self._next_ms
        is_long_ago = time.monotonic() - self._read_s >= READ_EVERY_S
        is_changed = self._state.changes != self._read_at
        is_elsewhere = self._leases is not None and self._leases.waits_for_others()
        return is_elsewhere or is_changed or not self._is_all_taken or is_due or is_long_ago

    async def _read_due(self) -> None:
        if self._state.changes != self._read_at:
            # Deliveries in the queues may be of endpoints that were changed or deleted meanwhile.
            for queue in self._queues.values():
                self._release(queue)
        now, issuer, sealer = self._clock(), self._issuer, self._state.sealer
        read_at = self._state.changes
        # Read after they were leased: whoever had one before has stored what became of its deliveries.
        has_more, endpoints = await self._claim(now)
        taken = dict(self._taken)
        found = await self._state.read(
            lambda con: find_due(con, sealer, now, taken, issuer, endpoints)
        )
        self._read_at, self._read_s = read_at, time.monotonic()
        self._is_all_taken, self._next_ms = found.is_all and not has_more, found.next_ms
        # Failures during the read are not in its rows yet.
        failed = {each.due.endpoint_id for each in self._ended if each.answer.error is not None}
        for each in found.due:
            lease = None if self._leases is None else self._leases.by_endpoint.get(each.endpoint_id)
            if self._leases is not None and lease is None:
                # It was lost during the read.
                continue
            self._taken[each.id] = each
            queue = self._queues.setdefault(each.endpoint_id, EndpointQueue())
            queue.lease = lease
            queue.is_failing = each.failing or each.endpoint_id in failed
            queue.waiting.append(each)

    async def _claim(self, now_ms: int) -> tuple[bool, list[str] | None]:
        """Leases endpoints with due deliveries. Returns whether there may be more of them, and the endpoints
        whose deliveries are this control's (None: all).
        """
        leases = self._leases
        if leases is None:
            return False, None
        passed_over, most = leases.passed_over(), leases.free_slots()
        found = await self._state.read(lambda con: endpoints_due(con, now_ms, passed_over, most))
        await leases.take(found)
        return len(found) == most > 0, list(leases.by_endpoint)

    def _send_out(self, queue: EndpointQueue, attempts: asyncio.TaskGroup) -> None:
        """Sends as much of a queue as may go out now. Nothing that was read before the last change
        is sent: the loop was woken by it, and reads again.
        """
        while (
            self._state.changes == self._read_at
            and self._in_flight < IN_FLIGHT_MAX
            and queue.takes_more(is_crowded=self._in_flight >= CROWDED)
        ):
            queue.in_flight += 1
            self._in_flight += 1
            attempts.create_task(self._deliver(queue, queue.waiting.popleft(), attempts))

    async def _deliver(
        self, queue: EndpointQueue, due: DueDelivery, attempts: asyncio.TaskGroup
    ) -> None:
        lease = queue.lease
        try:
            answer = await attempt(due.message, self._egress, self._clock(), queue.pool)
        finally:
            queue.in_flight -= 1
            self._in_flight -= 1
        self._ended.append(FinishedAttempt(due, answer, self._clock(), lease))
        if answer.error is not None:
            # The endpoint gets no more deliveries until the result is stored.
            queue.is_failing = True
            self._release(queue)
        self._woken.set()
        self._send_out(queue, attempts)

    def _release(self, queue: EndpointQueue) -> None:
        """Drops deliveries that were not sent yet; they stay pending."""
        for each in queue.waiting:
            self._taken.pop(each.id, None)
        queue.waiting.clear()

    async def _settle(self) -> None:
        if not self._ended:
            return
        ended = list(self._ended)
        disabled = await self._state.database.write(lambda con: settle(con, ended, self._spread))
        del self._ended[: len(ended)]
        for each in ended:
            self._taken.pop(each.due.id, None)
            if each.answer.error is not None or each.due.failing:
                # The delivery is tried again, or others of its endpoint may go now.
                self._is_all_taken = False
            queue = self._queues.get(each.due.endpoint_id)
            if queue is not None and each.answer.error is not None:
                # The endpoint may have asked for a pause, or may be disabled now.
                self._release(queue)
        for endpoint in disabled:
            log.warning("a webhook was disabled", id=endpoint.id, reason=endpoint.reason)

    async def _wait(self, wait_s: float) -> None:
        try:
            async with asyncio.timeout(min(max(wait_s, 0), READ_EVERY_S)):
                await self._woken.wait()
        except TimeoutError:
            return
        await asyncio.sleep(BATCH_S)

    async def _settle_last(self) -> None:
        # Finished deliveries must not be sent again after an orderly stop.
        try:
            async with asyncio.timeout(SHUTDOWN_S):
                await self._settle()
                if self._leases is not None:
                    await self._leases.give_back(list(self._leases.by_endpoint))
        except Exception as error:  # noqa: BLE001 - it was already ending, and they are sent again
            log.error("outcomes are not kept", count=len(self._ended), error=type(error).__name__)
        finally:
            self._ended.clear()

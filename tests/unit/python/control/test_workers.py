"""Who is live: an open poll, or two seconds after one that was answered; never after going away."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.control.workers import (
    LIVE_AFTER_ANSWER_S,
    REMEMBERED_S,
    REMOTE_LIVE_AFTER_ANSWER_S,
    SETTLE_S,
    WORKERS_MAX,
    Workers,
)

pytestmark = pytest.mark.anyio


class Clock:
    s = 1000.0

    def __call__(self) -> float:
        return self.s


async def test_a_worker_that_forwards_lives() -> None:
    """A change waits for the worker through which it came, though it has not polled yet."""
    clock = Clock()
    workers = Workers(clock)
    workers.forwarded("a")
    assert live(workers) == ["a"]
    assert not await workers.applied(1, 0.01)
    clock.s += LIVE_AFTER_ANSWER_S
    assert live(workers) == []


async def test_a_worker_that_polls_elsewhere_and_forwards_here_is_waited_for_there() -> None:
    """Its kept connections lead here still, and nothing that this control compiles comes to it from here."""
    clock = Clock()
    workers = Workers(clock)
    workers.poll_begins("a", None, 4, {})
    workers.poll_ends("a", answered=False)
    workers.forwarded("b")
    began = clock.s
    while clock.s < began + REMEMBERED_S + 60:
        clock.s += 1
        workers.forwarded("a")
        workers.forwarded("b")
        if clock.s >= began + REMOTE_LIVE_AFTER_ANSWER_S + LIVE_AFTER_ANSWER_S:
            assert live(workers) == [], "nor again when it would be forgotten"
        elif clock.s < began + REMOTE_LIVE_AFTER_ANSWER_S:
            assert set(live(workers)) == {"a", "b"}
    assert await workers.applied(5, 0.01)
    workers.poll_begins("a", None, 5, {})
    assert live(workers) == ["a"]


def live(workers: Workers) -> list[str]:
    return [report.worker_id for report in workers.reports() if report.live]


@pytest.mark.parametrize(
    ("pid", "for_s"), [(1, LIVE_AFTER_ANSWER_S), (None, REMOTE_LIVE_AFTER_ANSWER_S)]
)
async def test_life_of_a_worker(pid: int | None, for_s: float) -> None:
    """One on another machine is waited for until it has given this control up."""
    clock = Clock()
    workers = Workers(clock)
    workers.poll_begins("a", pid, 0, {})
    clock.s += 1000
    assert live(workers) == ["a"]
    workers.poll_ends("a", answered=True)
    clock.s += for_s - 0.1
    assert live(workers) == ["a"]
    clock.s += 0.1
    assert live(workers) == []
    workers.poll_begins("a", pid, 0, {})
    workers.poll_ends("a", answered=False)
    assert live(workers) == ([] if pid else ["a"])
    workers.poll_begins("a", pid, 0, {"draining": True})
    workers.poll_ends("a", answered=False)
    assert live(workers) == []


async def test_waiting_ends_with_the_last_live_worker_s_poll() -> None:
    workers = Workers()
    for worker in ("a", "b"):
        workers.poll_begins(worker, 1, 4, {})
    waiting = asyncio.create_task(workers.applied(5, 10))
    await asyncio.sleep(0)
    workers.poll_ends("a", answered=True)
    workers.poll_begins("a", 1, 5, {})
    await asyncio.sleep(0)
    assert not waiting.done()
    workers.poll_ends("b", answered=False)
    assert await waiting
    assert not await workers.applied(6, 0.01)


async def test_workers_of_long_ago_are_forgotten_and_their_number_is_bounded() -> None:
    clock = Clock()
    workers = Workers(clock)
    for n in range(WORKERS_MAX + 10):
        workers.poll_begins(f"{n:x}", 1, 0, {})
        workers.poll_ends(f"{n:x}", answered=True)
    assert len(workers.reports()) <= WORKERS_MAX
    clock.s += REMEMBERED_S + 1
    workers.poll_begins("new", 1, 0, {})
    assert [report.worker_id for report in workers.reports()] == ["new"]


async def test_a_control_that_has_just_started_waits_for_the_workers_of_its_node() -> None:
    """They serve by an earlier snapshot, so a change is not in force before they have polled."""
    clock = Clock()
    workers = Workers(clock, expected=2)
    waiting = asyncio.create_task(workers.applied(5, 0.01))
    workers.poll_begins("a", 1, 4, {})
    assert workers.is_new("a")
    workers.poll_ends("a", answered=True)
    assert not workers.is_new("a")
    workers.poll_begins("a", 1, 5, {})
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done(), "the other worker has not polled"
    workers.poll_begins("b", 2, 4, {})
    workers.poll_ends("b", answered=True)
    workers.poll_begins("b", 2, 5, {})
    assert await asyncio.wait_for(waiting, 5)
    clock.s += SETTLE_S
    later = Workers(clock, expected=2)
    clock.s += SETTLE_S
    assert await later.applied(5, 0.01), "nobody waits for a worker that is away"

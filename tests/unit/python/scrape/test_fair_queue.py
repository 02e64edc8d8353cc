"""Places that several owners share: none of them has all, and each has its turn."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.scrape.page.fair_queue import FairQueue, QueueFull

pytestmark = pytest.mark.anyio


class Users:
    """Owners that hold places until they are told to leave, in the order in which they came in."""

    def __init__(self, turns: FairQueue) -> None:
        self.order: list[str] = []
        self._turns = turns
        self._leave: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, *names: str) -> None:
        """`a1` is the first of the owner a."""
        for name in names:
            self._leave[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._hold(name))
        await self._settle()

    async def leave(self, *names: str) -> None:
        for name in names:
            self._leave[name].set()
            await self._settle()

    async def give_up(self, name: str) -> None:
        self._tasks[name].cancel()
        await self._settle()

    async def end(self) -> None:
        for leave in self._leave.values():
            leave.set()
        await asyncio.wait(self._tasks.values())

    async def _hold(self, name: str) -> None:
        async with self._turns.slot(name[0]):
            self.order.append(name)
            await self._leave[name].wait()

    async def _settle(self) -> None:
        # Nothing here waits for anything but the loop.
        for _ in range(5):
            await asyncio.sleep(0)


async def test_one_owner_never_has_all_places() -> None:
    users = Users(FairQueue(3, 2, 100, 100))
    await users.come("a1", "a2", "a3", "a4", "b1")
    assert users.order == ["a1", "a2", "b1"]
    await users.leave("b1")
    assert users.order == ["a1", "a2", "b1"], "the place that is free is not for a"
    await users.leave("a1")
    assert users.order[-1] == "a3"
    await users.end()


async def test_owners_who_wait_take_turns_however_many_each_waits_with() -> None:
    users = Users(FairQueue(1, 1, 100, 100))
    await users.come("x1", "a1", "a2", "a3", "a4", "b1", "c1", "b2")
    await users.leave("x1", "a1", "b1", "c1", "a2", "b2", "a3")
    assert users.order == ["x1", "a1", "b1", "c1", "a2", "b2", "a3", "a4"]
    await users.end()


async def test_who_gives_up_leaves_no_place_taken() -> None:
    users = Users(FairQueue(1, 1, 100, 100))
    await users.come("a1", "b1", "c1")
    await users.give_up("b1")
    await users.give_up("a1")
    assert users.order == ["a1", "c1"]
    users._leave["c1"].set()
    await users.come("d1")
    # d1 is given the place and is gone in the same moment.
    await users.give_up("d1")
    await users.come("e1")
    assert users.order[-1] == "e1"
    await users.end()


async def test_so_many_wait_and_no_more() -> None:
    turns = FairQueue(1, 1, 3, 2)
    users = Users(turns)
    await users.come("x1", "a1", "a2")
    with pytest.raises(QueueFull):
        async with turns.slot("a"):
            raise AssertionError
    await users.come("b1")
    with pytest.raises(QueueFull):
        async with turns.slot("c"):
            raise AssertionError
    await users.end()
    assert users.order == ["x1", "a1", "b1", "a2"]

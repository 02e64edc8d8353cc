"""Working on what rows say has not ended: the loop that agents' tasks, batches, videos and jobs of scraping share.

A row is work from the moment that it is stored, so whatever was under way when the process died is
taken up again by the next one. What an item's work is, and what its rows are, each room says itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import partial
from typing import ClassVar, Generic, Protocol, Self, TypeVar

from fairlead.store.services import Services

LOOK_EVERY_S = 5.0


class Item(Protocol):
    @property
    def id(self) -> str: ...


ItemT = TypeVar("ItemT", bound=Item)


class Runner(ABC, Generic[ItemT]):
    """One for the process (`of`). `run` is a background task; routes call `wake` and `stop`."""

    kind: ClassVar[str]
    """What an item is, for names of tasks."""
    at_once: ClassVar[int | None] = None
    """How many are worked on at most; None: as many as there are."""
    sweep_every_s: ClassVar[float] = 60.0

    def __init__(self, services: Services) -> None:
        self.services = services
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._wanted = asyncio.Event()

    @classmethod
    def of(cls, services: Services) -> Self:
        """The process's runner, made when it is first needed."""
        runner = services.rooms.get(cls)
        if not isinstance(runner, cls):
            runner = services.rooms[cls] = cls(services)
        return runner

    @classmethod
    async def run_one(cls, services: Services) -> None:
        """As a background task: another start makes everything anew."""
        try:
            await cls.of(services).run()
        finally:
            services.rooms.pop(cls, None)

    # --- what a room says ---

    @abstractmethod
    async def active(self) -> Iterable[ItemT]:
        """What has not ended, in the order in which it is taken up."""

    @abstractmethod
    async def work(self, item: ItemT, /) -> None:
        """Until the item has ended, or is to be taken up again. What it raises nobody hears."""

    @abstractmethod
    async def sweep(self) -> None:
        """Lets go what is over: at the start, and then every `sweep_every_s`."""

    def has_room(self, item: ItemT) -> bool:  # noqa: ARG002 - for those that look at it
        """Whether this one may begin now, where room is kept by more than a number."""
        return True

    def began(self, item: ItemT) -> None:
        """Work on the item begins."""

    def ended(self, item: ItemT) -> None:
        """Work on the item has ended, one way or another."""

    # --- what is the same everywhere ---

    async def run(self) -> None:
        """Lasts until it is cancelled. Raises when the database does not answer."""
        loop = asyncio.get_running_loop()
        swept_s: float | None = None
        try:
            while True:
                self._wanted.clear()
                if swept_s is None or loop.time() - swept_s > self.sweep_every_s:
                    swept_s = loop.time()
                    await self.sweep()
                await self._take_up()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY_S):
                        await self._wanted.wait()
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def wake(self) -> None:
        """There is a new item."""
        self._wanted.set()

    def stop(self, item_id: str) -> None:
        """The item has ended otherwise: what is under way for it is dropped."""
        if task := self._tasks.get(item_id):
            task.cancel()

    def _is_full(self) -> bool:
        return self.at_once is not None and len(self._tasks) >= self.at_once

    async def _take_up(self) -> None:
        if self._is_full():
            return
        for item in await self.active():
            if self._is_full():
                return
            if item.id not in self._tasks and self.has_room(item):
                task = asyncio.create_task(self.work(item), name=f"{self.kind} {item.id}")
                self._tasks[item.id] = task
                self.began(item)
                task.add_done_callback(partial(self._done, item))

    def _done(self, item: ItemT, _: asyncio.Task[None]) -> None:
        self._tasks.pop(item.id, None)
        self.ended(item)
        self.wake()

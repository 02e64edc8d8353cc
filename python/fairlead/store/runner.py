"""The loop that works on stored items until they end: agents' tasks, batches, videos, scraping jobs.

An item is pending from the moment that its row is stored, so the next process resumes the items that were in
progress when one died. Each package defines its items and how they are processed.

An item may itself be what crashes the process. So each start is counted in the same file before the work
begins, and taken back when the process ends in good order: an item that two processes have begun and not
survived is given up with a reason. Work that runs for `PROVEN_S` is considered safe, and so is, up to a bound,
work that made progress in between.

Slots are shared fairly among owners (`shares.py`). Items of a key that is no longer in force are ended: within
a second if they are in progress (`key_watch.py`), at the next pass if they wait, also after a restart.

If several controls share a database, each has separate slots, and the control with the lease of an item works
on it (`work_leases.py`). An item whose lease is lost is stopped here; one that was ended elsewhere is stopped a
little later.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import partial
from typing import ClassVar, Generic, Protocol, Self, TypeVar

import structlog

from fairlead.errors import FairleadError, StorageUnavailable
from fairlead.store.key_state import keys_out_of_force
from fairlead.store.key_watch import end_with_keys
from fairlead.store.services import Services
from fairlead.store.shares import Shares
from fairlead.store.work_leases import Lease, working_under
from fairlead.store.work_starts import (
    count_starts,
    keep_starts,
    take_back_start,
    take_back_starts,
)

LOOK_EVERY_S = 5.0
STARTS_MAX = 2
PROVEN_S = 3600.0
TAKE_BACK_WITHIN_S = 3.0
# How long an item that has ended may still be tidied up by who worked on it.
GONE_FOR_S = 5.0
GIVEN_UP = (
    f"fairlead ended without warning {STARTS_MAX} times while it worked on this, so it is not started again. "
    "Its log says what happened."
)


log = structlog.get_logger("fairlead.store")


class Item(Protocol):
    @property
    def id(self) -> str: ...


ItemT = TypeVar("ItemT", bound=Item)


class Runner(ABC, Generic[ItemT]):
    """One runner per process (`of`). `run` is a background task; routes call `wake` and `stop`."""

    kind: ClassVar[str]
    """The kind of an item, for names of tasks."""
    at_once: ClassVar[int | None] = None
    """How many are worked on at most; None: as many as there are."""
    sweep_every_s: ClassVar[float] = 60.0

    def __init__(self, services: Services) -> None:
        self.services = services
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._begun_s: dict[str, float] = {}
        self._keys: dict[str, str] = {}
        """The keys of items in progress."""
        self._watching: asyncio.Task[None] | None = None
        """The watch over these keys, from the first of them on."""
        self._wanted = asyncio.Event()
        self._shares = Shares(self.at_once) if self.at_once is not None else None
        self._leases: dict[str, Lease] = {}
        self._given_up: list[Lease] = []
        """Leases of items on which work has ended; the next pass gives them back."""
        self._survived: set[str] = set()
        """Items that were lost to other controls, though this process did not die of them."""
        self._gone_s: dict[str, float] = {}
        """Items in progress that have ended elsewhere, and since when this is known."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The process's runner, created on first use."""
        return services.singleton(cls, lambda: cls(services))

    @classmethod
    async def run_one(cls, services: Services) -> None:
        """Runs a new runner as a background task: after a restart of the task, nothing of the failed one remains."""
        try:
            await cls.of(services).run()
        finally:
            services.discard(cls)

    # --- for a package to define ---

    @abstractmethod
    async def active(self) -> Iterable[ItemT]:
        """Items that have not ended, in the order in which they are taken up."""

    @abstractmethod
    async def process(self, item: ItemT, /) -> None:
        """Works on the item until it has ended or is to be taken up again. Must handle its own errors: its
        exceptions are lost.
        """

    @abstractmethod
    async def give_up(self, item: ItemT, reason: str, /) -> None:
        """Ends the item as failed without working on it. Raises when the database does not answer."""

    @abstractmethod
    async def sweep(self) -> None:
        """Deletes items that expired: at the start, and then every `sweep_every_s`."""

    def has_capacity(self, item: ItemT) -> bool:  # noqa: ARG002 - for those that look at it
        """Whether the item can start now, for packages with more limits than the number of slots."""
        return True

    def began(self, item: ItemT) -> None:
        """Called when work on the item begins."""

    def ended(self, item: ItemT) -> None:
        """Called when work on the item has ended, in whatever way."""

    def owner_of(self, item: ItemT) -> str:
        """The owner by which slots are shared; by default each item is its own."""
        return item.id

    def key_of(self, item: ItemT) -> str | None:  # noqa: ARG002 - for those that have one
        """The API key on whose behalf the item runs, if it must end with that key."""
        return None

    async def revoke(self, item: ItemT, reason: str) -> None:
        """Ends an item whose key is no longer in force, whether in progress or waiting."""

    async def steps_of(self, items: list[ItemT]) -> dict[str, int]:
        """The stored progress of each item in steps; 0 for rooms that store nothing before the end."""
        return {item.id: 0 for item in items}

    # --- what is the same everywhere ---

    async def run(self) -> None:
        """Runs until cancelled. Raises when the database does not answer."""
        loop = asyncio.get_running_loop()
        swept_s: float | None = None
        try:
            while True:
                self._wanted.clear()
                if self._watching is not None and self._watching.done():
                    # It ends with a defect alone, which fails this task.
                    await self._watching
                if swept_s is None or loop.time() - swept_s > self.sweep_every_s:
                    swept_s = loop.time()
                    await self.sweep()
                    await self._sweep_starts(swept_s)
                has_items = await self._take_up()
                # Without items there are no keys to check; the next item wakes this loop.
                within_s = LOOK_EVERY_S if has_items else self.sweep_every_s
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(within_s):
                        await self._wanted.wait()
        finally:
            ending = [*self._tasks.values(), *([self._watching] if self._watching else [])]
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)
            await self._take_back()
            await self._give_back_leases()

    def wake(self) -> None:
        """Tells the runner that there is a new item."""
        self._wanted.set()

    def stop(self, item_id: str) -> None:
        """Cancels the work on an item that was ended elsewhere."""
        if task := self._tasks.get(item_id):
            task.cancel()

    async def stop_and_wait(self, item_id: str) -> None:
        """Cancels the work on the item and waits until it has stopped."""
        if task := self._tasks.get(item_id):
            task.cancel()
            await asyncio.wait({task})

    async def _take_up(self) -> bool:
        """Starts items while slots are free; returns whether there is any item."""
        await self._give_back_leases()
        active = list(await self.active())
        items = await self._in_force(await self._not_elsewhere(active))
        waiting = {item.id: item for item in items if item.id not in self._tasks}
        chosen: list[ItemT] = []
        while (item := self._next(waiting.values())) is not None:
            del waiting[item.id]
            self._claim_slot(item)
            chosen.append(item)
        if not chosen:
            return bool(active)
        not_begun = {item.id: item for item in chosen}
        try:
            chosen = await self._claim(not_begun)
            starts = await self.count_starts(await self.steps_of(chosen)) if chosen else {}
            for item in chosen:
                if starts[item.id] <= STARTS_MAX:
                    self._begin(item)
                    del not_begun[item.id]
                    continue
                log.error(
                    "not started again", kind=self.kind, item=item.id, starts=starts[item.id] - 1
                )
                with working_under(self._leases.get(item.id)):
                    await self.give_up(item, GIVEN_UP)
        finally:
            for item in not_begun.values():
                self._release_slot(item)
                self._give_up_lease(item.id)
        return True

    def _next(self, waiting: Iterable[ItemT]) -> ItemT | None:
        fits = (item for item in waiting if self.has_capacity(item))
        if self._shares is None:
            return next(fits, None)
        return self._shares.next_of(fits, self.owner_of)

    def _watch_keys(self) -> None:
        if self._watching is None:
            self._watching = asyncio.create_task(
                end_with_keys(self.services.state, self._keys.values, self._look_at_keys),
                name=f"keys of {self.kind}",
            )
            self._watching.add_done_callback(lambda _: self.wake())

    async def _look_at_keys(self, _: dict[str, str]) -> None:
        """A key of work in progress is no longer in force: the next pass ends its items."""
        self.wake()

    async def _in_force(self, items: list[ItemT]) -> list[ItemT]:
        """The items whose keys are in force; the others are ended."""
        key_ids = {key_id for item in items if (key_id := self.key_of(item)) is not None}
        if not key_ids:
            return items
        reasons = await self.services.state.read(lambda con: keys_out_of_force(con, key_ids))
        in_force: list[ItemT] = []
        for item in items:
            reason = reasons.get(self.key_of(item) or "")
            if reason is None:
                in_force.append(item)
                continue
            try:
                await self._revoke_here(item, reason)
            except Exception as error:  # noqa: BLE001 - one that cannot be ended now holds up no others
                log.error(
                    "not ended with its key", kind=self.kind, id=item.id, error=type(error).__name__
                )
        return in_force

    def _claim_slot(self, item: ItemT) -> None:
        if self._shares is not None:
            self._shares.take(self.owner_of(item))
        self.began(item)

    def _release_slot(self, item: ItemT) -> None:
        if self._shares is not None:
            self._shares.give_back(self.owner_of(item))
        self.ended(item)

    def _begin(self, item: ItemT) -> None:
        with working_under(self._leases.get(item.id)):
            # The task has a copy of what is current here.
            task = asyncio.create_task(self.process(item), name=f"{self.kind} {item.id}")
        self._tasks[item.id] = task
        if (key_id := self.key_of(item)) is not None:
            self._keys[item.id] = key_id
            self._watch_keys()
        self._begun_s[item.id] = asyncio.get_running_loop().time()
        task.add_done_callback(partial(self._done, item))

    def _done(self, item: ItemT, _: asyncio.Task[None]) -> None:
        self._tasks.pop(item.id, None)
        self._begun_s.pop(item.id, None)
        self._keys.pop(item.id, None)
        self._gone_s.pop(item.id, None)
        self._release_slot(item)
        self._give_up_lease(item.id)
        self.wake()

    # --- several controls on one database

    async def _not_elsewhere(self, active: list[ItemT]) -> list[ItemT]:
        """The items that no other control works on. Those that others have ended are stopped here, when their own end
        had time to be written.
        """
        if (leases := self.services.leases) is None:
            return active
        now_s, active_ids = asyncio.get_running_loop().time(), {item.id for item in active}
        for item_id in self._tasks:
            if item_id in active_ids:
                self._gone_s.pop(item_id, None)
            elif now_s - self._gone_s.setdefault(item_id, now_s) > GONE_FOR_S:
                self.stop(item_id)
        try:
            elsewhere = await leases.held_elsewhere(self.kind)
        except StorageUnavailable:
            # Its connection is being renewed. Work in progress continues while its leases are valid.
            return [item for item in active if item.id in self._tasks]
        return [item for item in active if item.id not in elsewhere]

    async def _claim(self, slots: dict[str, ItemT]) -> list[ItemT]:
        """Leases items that got slots, and returns those that this control holds now, in their current state:
        another may have worked on one, or ended it, since it was read.
        """
        if (leases := self.services.leases) is None:
            return list(slots.values())
        taken = await leases.take(self.kind, list(slots))
        for item_id, lease in taken.items():
            lease.on_lost = partial(self._mark_lost, item_id)
            self._leases[item_id] = lease
        claimed = [item for item in await self.active() if item.id in taken] if taken else []
        for item in claimed:
            self._release_slot(slots[item.id])
            self._claim_slot(item)
            slots[item.id] = item
        return claimed

    async def _revoke_here(self, item: ItemT, reason: str) -> None:
        leases, lease = self.services.leases, self._leases.get(item.id)
        if leases is None or lease is not None:
            with working_under(lease):
                await self.revoke(item, reason)
            return
        lease = (await leases.take(self.kind, [item.id])).get(item.id)
        if lease is None:
            # Another control ends it.
            return
        try:
            with working_under(lease):
                await self.revoke(item, reason)
        finally:
            await leases.release([lease])

    def _mark_lost(self, item_id: str) -> None:
        self._survived.add(item_id)
        self._leases.pop(item_id, None)
        self.stop(item_id)
        self.wake()

    def _give_up_lease(self, item_id: str) -> None:
        if (lease := self._leases.pop(item_id, None)) is not None:
            self._given_up.append(lease)

    async def _give_back_leases(self) -> None:
        if (leases := self.services.leases) is None:
            return
        given_up, self._given_up = self._given_up, []
        await leases.release(given_up)
        for item_id in list(self._survived):
            await self.services.state.record(
                partial(take_back_start, kind=self.kind, item_id=item_id)
            )
            self._survived.discard(item_id)

    # --- starts

    async def count_starts(self, steps: Mapping[str, int]) -> dict[str, int]:
        """Records durably that these items are started, and how far each has come.

        Returns, for each, how many processes (this one included) have started it since it last made progress.
        """
        kind, process = self.kind, self.services.process
        return await self.services.state.record(lambda con: count_starts(con, kind, steps, process))

    async def keep_starts(self, active_ids: list[str], proven_ids: list[str]) -> None:
        """Deletes the recorded starts of items that have ended or are proven."""
        kind = self.kind
        await self.services.state.record(lambda con: keep_starts(con, kind, active_ids, proven_ids))

    async def take_back_starts(self) -> None:
        """Deletes this process's recorded starts, because it ends in good order."""
        kind, process = self.kind, self.services.process
        await self.services.state.record(
            lambda con: take_back_starts(con, kind, process), deadline_s=TAKE_BACK_WITHIN_S
        )

    async def _sweep_starts(self, now_s: float) -> None:
        proven = [each for each, since_s in self._begun_s.items() if now_s - since_s > PROVEN_S]
        await self.keep_starts([item.id for item in await self.active()], proven)

    async def _take_back(self) -> None:
        try:
            await self.take_back_starts()
        except FairleadError as error:
            # If this fails, the next process counts one start too many of the two that are allowed.
            log.error("starts not deleted", kind=self.kind, error=error.kind)

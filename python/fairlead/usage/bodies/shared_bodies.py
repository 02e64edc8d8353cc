"""Bodies that are kept in the store of files, where every node that has the same store reads them.

Each node brings there what its relay workers wrote. Before it does, names are judged by the bounds in force: what
waited in a spool while its key was deleted, or the history purged, is deleted and does not come back. Until the store
has a file, and says so, it stays in the spool; brought twice, it is there once. The bounds are held by one node for
all (`body_sweep.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

import structlog

from fairlead.errors import FairleadError, StorageUnavailable
from fairlead.moment import now_ms
from fairlead.records.kept_bodies import (
    FOLDER,
    BodyName,
    body_files,
    forget_parts,
    spool_of,
)
from fairlead.store.blobs.bounded_calls import BoundedCalls
from fairlead.store.blobs.location import blobs_of
from fairlead.store.services import Services
from fairlead.store.spool_watch import SpoolWatch
from fairlead.usage.bodies.body_bounds import PAUSE_S, SWEEP_EVERY_S, read_bounds, read_bounds_of
from fairlead.usage.bodies.body_sweep import BodySweep, stored_bodies

ROUND: Final = 200
# Less than a bucket has writes at once, so that callers' uploads continue meanwhile.
BRINGS_AT_ONCE: Final = 6
BRING_WITHIN_S: Final = 60.0
LOOKUPS_AT_ONCE: Final = 8
LOOKUP_WITHIN_S: Final = 5.0
SIZES_AT_ONCE: Final = 16
TURN_WITHIN_S: Final = 10.0
RETRY_AFTER_S: Final = 5.0

log = structlog.get_logger("fairlead.usage")

T = TypeVar("T")
SpooledBody = tuple[Path, BodyName]


class SharedBodyKeeper:
    """`BodyKeeper` over the store of files."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._blobs = blobs_of(services)
        self._former = services.data_dir / FOLDER
        self._busy = asyncio.Lock()
        is_elsewhere = self._blobs.path(FOLDER) is None
        # A folder that hangs holds a thread for each call.
        self._brings_at_once = BRINGS_AT_ONCE if is_elsewhere else 1
        self._brings = BoundedCalls(self._brings_at_once, BRING_WITHIN_S)
        self._lookups = BoundedCalls(LOOKUPS_AT_ONCE if is_elsewhere else 1, LOOKUP_WITHIN_S)
        self._sweep = BodySweep(self._blobs)
        self._faults: set[str] = set()

    @property
    def spool(self) -> Path:
        return spool_of(self._services.data_dir)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._bring_always())
            group.create_task(self._sweep_in_turn())

    # --- reading

    async def find(self, name: BodyName) -> bytes | None:
        # It leaves this machine when the store has it, so the store is asked last.
        sealed = await asyncio.to_thread(self._find_here, name)
        return sealed or await self._lookups.run(partial(self._fetch, name))

    async def has(self, names: Sequence[BodyName]) -> list[bool]:
        found = await asyncio.to_thread(
            lambda: [any(path.exists() for path in self._paths_here(name)) for name in names]
        )
        others = [name for name, is_here in zip(names, found, strict=True) if not is_here]
        try:
            stored = await self._lookups.run(partial(self._stored_of, others))
        except StorageUnavailable:
            # The log of usage is shown without it.
            return found
        return [is_here or name in stored for name, is_here in zip(names, found, strict=True)]

    def _paths_here(self, name: BodyName) -> tuple[Path, ...]:
        return (self.spool / name.file, self._services.data_dir / name.path)

    def _find_here(self, name: BodyName) -> bytes | None:
        for path in self._paths_here(name):
            with contextlib.suppress(FileNotFoundError):
                return path.read_bytes()
        return None

    async def _fetch(self, name: BodyName) -> bytes | None:
        try:
            return b"".join([chunk async for chunk in self._blobs.read(name.path)])
        except FileNotFoundError:
            return None

    async def _stored_of(self, names: Sequence[BodyName]) -> set[BodyName]:
        """The names that the store has, of these."""
        if self._blobs.path(FOLDER) is not None:
            paths = {name: self._blobs.path(name.path) for name in names}
            return await asyncio.to_thread(
                lambda: {name for name, path in paths.items() if path and path.exists()}
            )
        at_once = asyncio.Semaphore(SIZES_AT_ONCE)

        async def size_of(name: BodyName) -> int | None:
            async with at_once:
                return await self._blobs.size(name.path)

        sizes = await asyncio.gather(*map(size_of, names))
        return {name for name, size in zip(names, sizes, strict=True) if size is not None}

    # --- bringing

    async def take_in(self) -> None:
        await self._bring_some()

    async def _bring_always(self) -> None:
        with SpoolWatch(self.spool) as watch:
            while True:
                watch.begin_look()
                is_done = await self._try(
                    "kept bodies wait on this machine, as they cannot be brought",
                    self._bring_some,
                )
                if is_done is None:
                    await asyncio.sleep(RETRY_AFTER_S)
                elif is_done:
                    await asyncio.sleep(PAUSE_S)
                    await watch.wait()

    async def _bring_some(self) -> bool:
        """Brings one round of files to the store; whether that was all."""
        async with self._busy:
            files = await asyncio.to_thread(self._next_files)
            if not files:
                return True
            wanted = await self._judge(files)
            waiting = iter(wanted)
            results = await asyncio.gather(
                *(self._bring_each(waiting) for _ in range(self._brings_at_once)),
                return_exceptions=True,
            )
            for result in results:
                if result is not None:
                    raise result
        return len(files) < ROUND

    def _next_files(self) -> list[SpooledBody]:
        forget_parts(self.spool)
        files = list(islice(body_files(self.spool), ROUND))
        # Those from before there was a store of files.
        return files or list(islice(self._former_files(), ROUND))

    def _former_files(self) -> Iterator[SpooledBody]:
        if self._blobs.path(FOLDER) == self._former or not self._former.is_dir():
            return
        for hour in self._former.iterdir():
            if not hour.name.isdecimal():
                continue
            yield from body_files(hour)
            # One that holds something else stays.
            with contextlib.suppress(OSError):
                hour.rmdir()

    async def _judge(self, files: Sequence[SpooledBody]) -> list[SpooledBody]:
        """Deletes the files that may not be kept, and returns the others."""
        key_ids = {name.key_id for _, name in files if name.key_id is not None}
        bounds = await self._services.state.read(partial(read_bounds_of, key_ids=key_ids))
        before_ms = bounds.before_ms(now_ms())

        def may_stay(name: BodyName) -> bool:
            return name.ts_ms >= before_ms and (name.key_id is None or name.key_id in bounds.keys)

        unwanted = [path for path, name in files if not may_stay(name)]
        if unwanted:
            await asyncio.to_thread(_delete, unwanted)
        return [file for file in files if may_stay(file[1])]

    async def _bring_each(self, waiting: Iterator[SpooledBody]) -> None:
        for path, name in waiting:
            await self._brings.run(partial(self._blobs.take, name.path, path, durably=False))

    # --- bounds

    async def sweep(self) -> None:
        bounds = await self._services.state.read(read_bounds)
        deleted = await self._sweep.run(bounds, now_ms())
        if deleted:
            log.info("kept bodies deleted", files=deleted)

    async def delete_before(self, before_ms: int) -> int:
        def is_older(name: BodyName) -> bool:
            return name.ts_ms < before_ms

        async with self._alone():
            deleted = await asyncio.to_thread(self._delete_here, is_older)
        async for page in stored_bodies(self._blobs, FOLDER):
            old = [body.name.path for body in page if is_older(body.name)]
            await self._blobs.remove(*old)
            deleted += len(old)
            if len(old) < len(page):
                break
        return deleted

    def _delete_here(self, goes: Callable[[BodyName], bool]) -> int:
        files = [*body_files(self.spool), *self._former_files()]
        return _delete([path for path, name in files if goes(name)])

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """While nothing is brought. `StorageUnavailable` where that does not come to an end."""
        try:
            async with asyncio.timeout(TURN_WITHIN_S):
                await self._busy.acquire()
        except TimeoutError:
            raise StorageUnavailable(
                "Kept bodies are being moved, and the store of files does not answer.",
                retry_after_s=10,
            ) from None
        try:
            yield
        finally:
            self._busy.release()

    async def _sweep_in_turn(self) -> None:
        peers = self._services.peers
        if peers is None:
            await self._sweep_always()
        else:
            await peers.alone("usage.bodies", self._sweep_always)

    async def _sweep_always(self) -> None:
        # The sweeps of other nodes are not known here.
        self._sweep = BodySweep(self._blobs)
        while True:
            await self._try("kept bodies are not held to their bounds", self.sweep)
            await asyncio.sleep(SWEEP_EVERY_S)

    async def _try(self, fault: str, call: Callable[[], Awaitable[T]]) -> T | None:
        """The result; None where it fails, which is logged when it begins to, and when it no longer does."""
        try:
            result = await call()
        except (FairleadError, OSError) as error:
            if fault not in self._faults:
                self._faults.add(fault)
                log.warning(fault, reason=str(error) or type(error).__name__)
            return None
        if fault in self._faults:
            self._faults.discard(fault)
            log.info("the store of files has kept bodies again", after=fault)
        return result


def _delete(paths: Sequence[Path]) -> int:
    for path in paths:
        path.unlink(missing_ok=True)
    return len(paths)

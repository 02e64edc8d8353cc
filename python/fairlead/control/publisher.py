"""Publishes configuration changes: compile a snapshot, store it, offer it on the link, wait for the workers.

A single task compiles; changes that are committed meanwhile share its next round. Each waits for a round that
began after its commit, and so contains it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson
import structlog

from fairlead.control.snapshot_lag import note_lag
from fairlead.control.workers import Workers
from fairlead.errors import FairleadError, StorageUnavailable
from fairlead.process.fsync import write_whole
from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.store.peers import Peers

APPLIED_DEADLINE_S = 1.0
ROUND_DEADLINE_S = 15.0
RETRY_S = 1.0
FILE = "snapshot.json"

log = structlog.get_logger("fairlead.control")

# Compiles a snapshot in the writer; the number is the version that the result must exceed.
Compile = Callable[[Connection, int], tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class PublishedSnapshot:
    """The newest snapshot: its version and its JSON."""

    version: int
    document: bytes


class Publisher:
    """Compiles and publishes snapshots. `run` is its background task; `publish` is awaited by each commit."""

    def __init__(
        self, database: Database, compile_snapshot: Compile, data_dir: Path, workers: Workers
    ) -> None:
        self.current = PublishedSnapshot(0, b"null")
        self.closing = False
        self._database = database
        self._compile = compile_snapshot
        self._path = data_dir / FILE
        self._workers = workers
        self._floor = 0
        self._offering = asyncio.Lock()
        self._waiting: list[asyncio.Future[int]] = []
        self._wanted = asyncio.Event()
        self._wanted.set()
        self._changed = asyncio.Event()
        self.peers: Peers | None = None
        """The other controls, if there may be any."""

    async def publish(self) -> None:
        """Returns when everything committed so far is in force: applied by every live worker, or offered one
        second ago.

        Raises `StorageUnavailable` if the snapshot could not be compiled or stored; the change is kept, and is
        offered again soon.
        """
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._wanted.set()
        try:
            async with asyncio.timeout(ROUND_DEADLINE_S):
                version = await done
        except TimeoutError:
            raise StorageUnavailable(
                "The change is stored but not yet in force.", retry_after_s=5
            ) from None
        if not await self._applied(version):
            log.warning("a relay worker is slow to apply", version=version)
            note_lag()

    async def adopt(self, version: int, document: bytes) -> None:
        """Publishes a snapshot that another control has compiled, unless there is a newer one."""
        if version > self.current.version:
            await self._offer(version, document)

    async def run(self) -> None:
        """Compiles on demand, until cancelled."""
        self._floor = max(self._floor, await asyncio.to_thread(_version_on_disk, self._path))
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            waiting, self._waiting = self._waiting, []
            try:
                version = await self._round()
            except (FairleadError, OSError) as error:
                log.error("snapshot not published", error=type(error).__name__)
                _settle(
                    waiting,
                    StorageUnavailable(
                        "The change is stored but not yet in force.", retry_after_s=5
                    ),
                )
                self._wanted.set()
                await asyncio.sleep(RETRY_S)
            except BaseException:
                _settle(
                    waiting,
                    StorageUnavailable(
                        "The change is stored but not yet in force.", retry_after_s=5
                    ),
                )
                self._wanted.set()
                raise
            else:
                _settle(waiting, version)

    async def newer_than(self, version: int, deadline_s: float) -> bool:
        """Waits for a snapshot above this version; False at the deadline or when control stops."""
        if version > self.current.version:
            # The state database was restored from an older copy: continue from the relay's version.
            self._floor = max(self._floor, version)
            self._wanted.set()
        try:
            async with asyncio.timeout(deadline_s):
                while self.current.version <= version and not self.closing:
                    await self._changed.wait()
        except TimeoutError:
            return False
        return not self.closing

    def close(self) -> None:
        """Releases every open poll."""
        self.closing = True
        self._notify()

    async def _round(self) -> int:
        floor = self._floor
        version, document = await self._database.write(lambda con: self._compile(con, floor))
        await self._offer(version, document)
        return version

    async def _offer(self, version: int, document: bytes) -> None:
        # One at a time, since a newer one of another control may come while this one is written to the file.
        async with self._offering:
            if version <= self.current.version:
                return
            try:
                new = self._path.with_name(self._path.name + ".new")
                await asyncio.to_thread(write_whole, self._path, document, new=new)
            finally:
                # A full disk must not keep a revoked key alive, so the offer does not depend on the file.
                self.current = PublishedSnapshot(version, document)
                self._notify()

    async def _applied(self, version: int) -> bool:
        """Whether every live relay has applied it within a second, here and at the other controls."""
        if self.peers is None:
            return await self._workers.applied(version, APPLIED_DEADLINE_S)
        workers_applied, peers_applied = await asyncio.gather(
            self._workers.applied(version, APPLIED_DEADLINE_S),
            self.peers.applied(version, APPLIED_DEADLINE_S),
        )
        return workers_applied and peers_applied

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _settle(waiting: list[asyncio.Future[int]], outcome: int | StorageUnavailable) -> None:
    for done in waiting:
        if done.done():
            continue
        if isinstance(outcome, int):
            done.set_result(outcome)
        else:
            done.set_exception(outcome)


def _version_on_disk(path: Path) -> int:
    try:
        version = orjson.loads(path.read_bytes()).get("version", 0)
    except (OSError, ValueError, AttributeError):
        # Missing or unreadable: the database's count applies, and the file is written again.
        return 0
    return version if isinstance(version, int) else 0

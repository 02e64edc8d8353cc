"""A database with one writer thread and a few readers: a DuckDB file, or PostgreSQL (`engine.py`).

Concurrent DuckDB transactions conflict instead of waiting, so every write goes through one thread; over PostgreSQL
this keeps the order of a process's writes, and only those of other processes can conflict. The writer takes all
waiting jobs into one transaction, since a commit costs milliseconds however many share it. A write is answered
after COMMIT. If one job of a group raises, the group is rolled back and each job runs again alone, so that only
the failing one fails: a job may run twice and must have no effect outside the database.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import structlog

from fairlead.errors import Overloaded, StorageUnavailable
from fairlead.store.connection import Transaction as Transaction  # noqa: PLC0414 - imported here
from fairlead.store.engine import Engine, Fault
from fairlead.store.file import open_file
from fairlead.store.file_engine import FileEngine

T = TypeVar("T")

GROUP_MAX = 256
WRITES_WAITING_MAX = 1024
READERS = 3
READS_WAITING_MAX = 256
WRITE_DEADLINE_S = 10.0
READ_DEADLINE_S = 10.0


log = structlog.get_logger("fairlead.store")


@dataclass(slots=True)
class _Job:
    transaction: Transaction[Any]
    done: Future[Any] = field(default_factory=Future)


class Database:
    """An open database.

    Create it with `Database.open` or over an engine; `write`, `read` and `close` belong to one event loop. `fault`
    names the last failure of the engine: of a write until a write succeeds, of a read until a read or a write does,
    since a full disk still answers reads. After a damaged block a file takes no more writes,
    so that it is preserved as it is, and `fault` stays. After a fatal error the engine refuses everything until
    another process reopens the file; `on_fatal` is called then.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._write_fault: str | None = None
        self._read_fault: str | None = None
        self._is_damaged = False
        self.on_fatal: Callable[[], None] | None = None
        self._jobs: queue.Queue[_Job | None] = queue.Queue(maxsize=WRITES_WAITING_MAX)
        self._closing = False
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix=f"read-{self.stem}")
        self._reads_waiting = 0
        self._writer = threading.Thread(
            target=self._write_loop, name=f"write-{self.stem}", daemon=True
        )
        self._writer.start()

    @classmethod
    def open(cls, path: Path, migrations: Path, *, remembers_reads: bool = False) -> Database:
        """Opens or creates the file and migrates it; blocking, for the start of a process. `remembers_reads`: a read in
        the writer is answered from memory while its tables are unchanged.

        Raises `DamagedFile`, `LockedFile` or another `Refusal`, each with one sentence for the operator.
        """
        file = open_file(path, migrations)
        return cls(FileEngine(path, file, remembers_reads=remembers_reads))

    @property
    def name(self) -> str:
        """The store's name, for logs and operators."""
        return self._engine.name

    @property
    def stem(self) -> str:
        """Which of the databases it is: `state`, `usage` or `issuer`."""
        return self._engine.name.partition(".")[0]

    @property
    def path(self) -> Path | None:
        """The store's file, if it is one."""
        return self._engine.path

    @property
    def fault(self) -> str | None:
        """The failure that is not over; a write's before a read's."""
        return self._write_fault or self._read_fault

    async def write(
        self, transaction: Transaction[T], *, deadline_s: float = WRITE_DEADLINE_S
    ) -> T:
        """Runs `transaction` in the writer and returns its result after COMMIT.

        An exception of `transaction` is raised here and leaves no trace in the file. `Overloaded` when too many writes
        wait; `StorageUnavailable` when the engine fails or the deadline passes (a write that has begun may
        still be committed).
        """
        if self._closing:
            raise StorageUnavailable("The database is closed.")
        if self._is_damaged:
            raise StorageUnavailable(f"{self.name} is damaged and takes no more changes.")
        job = _Job(transaction)
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            raise Overloaded("Too many writes are waiting; try again.", retry_after_s=1) from None
        try:
            async with asyncio.timeout(deadline_s):
                result: T = await asyncio.wrap_future(job.done)
                return result
        except TimeoutError:
            raise StorageUnavailable(
                f"The write was not finished within {deadline_s:g} s.", retry_after_s=1
            ) from None
        except Exception as error:
            fault = self._engine.fault_of(error)
            if fault is None:
                raise
            self._write_fault = self._named(error)
            raise self._unavailable(error, fault) from error

    async def read(self, transaction: Transaction[T], *, deadline_s: float = READ_DEADLINE_S) -> T:
        """Runs `transaction` on a reader's cursor in one transaction with a consistent view, which is rolled back at
        its end.

        `Overloaded` when too many reads wait; `StorageUnavailable` when the engine fails or the deadline passes
        (the statement is then interrupted).
        """
        if self._closing:
            raise StorageUnavailable("The database is closed.")
        if self._reads_waiting >= READS_WAITING_MAX:
            raise Overloaded("Too many reads are waiting; try again.", retry_after_s=1)
        interrupts: list[Callable[[], None]] = []
        self._reads_waiting += 1
        task = self._readers.submit(self._engine.read, transaction, interrupts)
        task.add_done_callback(lambda _: interrupts.clear())
        try:
            async with asyncio.timeout(deadline_s):
                found = await asyncio.wrap_future(task)
        except TimeoutError:
            for interrupt in interrupts:
                interrupt()
            raise StorageUnavailable(
                f"The read was not finished within {deadline_s:g} s.", retry_after_s=1
            ) from None
        except Exception as error:
            fault = self._engine.fault_of(error)
            if fault is None:
                raise
            self._read_fault = self._named(error)
            if fault is not Fault.UNAVAILABLE:
                # A damaged or closed database is not repaired by a read of another part.
                self._write_fault = self._read_fault
            raise self._unavailable(error, fault) from error
        finally:
            self._reads_waiting -= 1
        self._read_fault = None
        return found

    async def close(self) -> None:
        """Finishes waiting jobs, checkpoints the log and closes the file."""
        if self._closing:
            return
        self._closing = True
        await asyncio.to_thread(self._finish)

    def _named(self, error: Exception) -> str:
        return f"{self.name}: {type(error).__name__}"

    def _unavailable(self, error: Exception, fault: Fault) -> StorageUnavailable:
        log.error("storage failed", file=self.name, error=type(error).__name__)
        if fault is Fault.DAMAGED and not self._is_damaged:
            self._is_damaged = True
            log.error("storage is damaged", advice=self._engine.advice())
        if fault is Fault.FATAL and self.on_fatal is not None:
            self.on_fatal()
        return StorageUnavailable("The database does not answer.", retry_after_s=5)

    def _write_loop(self) -> None:
        while (first := self._jobs.get()) is not None:
            group = [first]
            last = False
            while len(group) < GROUP_MAX and not last:
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if job is None:
                    last = True
                else:
                    group.append(job)
            self._write_group([job for job in group if job.done.set_running_or_notify_cancel()])
            if last:
                return

    def _write_group(self, group: list[_Job]) -> None:
        try:
            results = self._transact(group)
        except BaseException as error:  # noqa: BLE001 - handed to the waiting caller of the job
            if len(group) == 1:
                group[0].done.set_exception(error)
                return
            for job in group:
                self._write_group([job])
            return
        # Cleared before any waiter is answered, so that whoever learns of the write sees no fault.
        if group and not self._is_damaged:
            self._write_fault = self._read_fault = None
        for job, result in zip(group, results, strict=True):
            job.done.set_result(result)

    def _transact(self, group: list[_Job]) -> list[Any]:
        return self._engine.transact([job.transaction for job in group]) if group else []

    def _finish(self) -> None:
        self._readers.shutdown(wait=True, cancel_futures=True)
        self._jobs.put(None)
        self._writer.join()
        self._engine.close()

"""The state database, and the one way to change it.

The relay's snapshot is compiled from this database. So a change goes through `commit`, which returns when the
change is stored and in force: every live relay worker has applied a snapshot that contains it, or one second
has passed.

    def rename(con: Connection) -> str:
        con.execute("UPDATE nodes SET name = ? WHERE id = ?", [name, node_id])
        return name

    await state.commit(rename)

`transaction` runs in the writer's thread inside a transaction. It may run twice, so it has no effect outside the
database; an exception (a `Conflict`, a `NotFound`) rolls it back and reaches the caller of `commit`. Uniqueness
is checked there by a SELECT before the INSERT: with a single writer nothing comes between. Tables have no
secondary index and no UNIQUE constraint.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fairlead.store.audit_log import AuditRecord, current_record, insert_entry
from fairlead.store.database import WRITE_DEADLINE_S, Database, Transaction
from fairlead.store.file import Connection
from fairlead.store.sealer import Sealer
from fairlead.store.work_leases import fenced

T = TypeVar("T")


class State:
    """The state database. `changes` increases with each change; caches compare it to know whether they are stale."""

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self.database = database
        self.sealer = sealer
        self._publish: Callable[[], Awaitable[None]] | None = None
        self._watchers: list[asyncio.Event] = []
        self.changes = 0

    def on_commit(self, publish: Callable[[], Awaitable[None]]) -> None:
        """Sets the callback that a commit awaits after the write: control's publisher."""
        self._publish = publish

    async def commit(self, transaction: Transaction[T]) -> T:
        """Runs `transaction` in the writer and returns its result once the change is stored and in force."""
        result = await self.record(transaction)
        if self._publish is not None:
            await self._publish()
        return result

    async def record(
        self, transaction: Transaction[T], *, deadline_s: float = WRITE_DEADLINE_S
    ) -> T:
        """Runs `transaction` in the writer and returns its result once the change is stored, without publishing a
        snapshot.

        The first write of an audited request stores its entry of the audit log too. A write of who works on an item
        raises `LeaseLost` once another control has taken the item over.
        """
        transaction = fenced(transaction)
        record = current_record.get()
        is_first = record is not None and not record.is_stored
        try:
            result = await self.database.write(
                _with_entry(transaction, record)
                if record is not None and is_first
                else transaction,
                deadline_s=deadline_s,
            )
            if record is not None:
                record.is_stored = True
        finally:
            # Counted after a failure too: past its deadline, the write may have been committed.
            self.changes += 1
        self._wake_watchers()
        return result

    def note_change(self) -> None:
        """Another process has changed the same database: caches are stale, and watchers are woken."""
        self.changes += 1
        self._wake_watchers()

    def _wake_watchers(self) -> None:
        for watcher in self._watchers:
            watcher.set()

    def watch(self) -> asyncio.Event:
        """An event that is set after each change; the waiter clears it."""
        watcher = asyncio.Event()
        self._watchers.append(watcher)
        return watcher

    def unwatch(self, watcher: asyncio.Event) -> None:
        """Removes an event returned by `watch`."""
        self._watchers.remove(watcher)

    async def read(self, transaction: Transaction[T]) -> T:
        """Runs `transaction` on a reader in a consistent transaction that is rolled back."""
        return await self.database.read(transaction)


def _with_entry(transaction: Transaction[T], record: AuditRecord) -> Transaction[T]:
    def change_and_record(con: Connection) -> T:
        result = transaction(con)
        insert_entry(con, record)
        return result

    return change_and_record

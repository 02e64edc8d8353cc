"""The precious database, and the one way to change it.

Everything that is read by the relay plane is compiled from here into a snapshot. So a change goes
through `commit`, which returns when the change is stored and in force: every live relay worker has
the snapshot that contains it, or one second has passed.

    def rename(con: Connection) -> str:
        con.execute("UPDATE nodes SET name = ? WHERE id = ?", [name, node_id])
        return name

    await state.commit(rename)

`work` runs in the writer's thread inside a transaction. It may run twice, so it does nothing
outside of the database; what it raises (a `Conflict`, a `NotFound`) undoes it and reaches the
caller of `commit`. Uniqueness is checked there, by a SELECT before the INSERT: there is one writer,
so nothing comes between. Rows carry no secondary index and no UNIQUE.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fairlead.store.audit_log import AuditRecord, current_record, insert_entry
from fairlead.store.database import WRITE_DEADLINE_S, Database, Work
from fairlead.store.file import Connection
from fairlead.store.sealer import Sealer

T = TypeVar("T")


class State:
    """The state database with what makes a change count. `changes` grows with each: whoever keeps
    what was read compares it.
    """

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self.database = database
        self.sealer = sealer
        self._publish: Callable[[], Awaitable[None]] | None = None
        self._watchers: list[asyncio.Event] = []
        self.changes = 0

    def on_commit(self, publish: Callable[[], Awaitable[None]]) -> None:
        """What a commit awaits after the write: control's publisher."""
        self._publish = publish

    async def commit(self, work: Work[T]) -> T:
        """Runs `work` in the writer and returns its result once it is stored and in force."""
        result = await self.record(work)
        if self._publish is not None:
            await self._publish()
        return result

    async def record(self, work: Work[T], *, deadline_s: float = WRITE_DEADLINE_S) -> T:
        """Runs `work` in the writer and returns its result once it is stored: for what the relay
        does not need to know.

        The first write of an audited request stores its entry of the audit log too.
        """
        record = current_record.get()
        is_first = record is not None and not record.is_stored
        try:
            result = await self.database.write(
                _with_entry(work, record) if record is not None and is_first else work,
                deadline_s=deadline_s,
            )
            if record is not None:
                record.is_stored = True
        finally:
            # Also when it failed: past its deadline it may have happened.
            self.changes += 1
        for watcher in self._watchers:
            watcher.set()
        return result

    def watch(self) -> asyncio.Event:
        """An event that is set after each change; whoever waits for it clears it."""
        watcher = asyncio.Event()
        self._watchers.append(watcher)
        return watcher

    def unwatch(self, watcher: asyncio.Event) -> None:
        """Ends a `watch`."""
        self._watchers.remove(watcher)

    async def read(self, work: Work[T]) -> T:
        """Runs `work` on a reader: one consistent moment, nothing it does is kept."""
        return await self.database.read(work)


def _with_entry(work: Work[T], record: AuditRecord) -> Work[T]:
    def change_and_record(con: Connection) -> T:
        result = work(con)
        insert_entry(con, record)
        return result

    return change_and_record

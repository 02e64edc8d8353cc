"""Writes of many requests in one commit: while one batch is being committed the next one gathers.

A request is answered after its batch is committed. After a failed batch the content of the file is
unknown (the deadline may have passed inside COMMIT), so everything that waits fails too, and
`is_behind` says that memory must be read again before it is used.
"""

from __future__ import annotations

import asyncio
from functools import partial

from fairlead.errors import Overloaded
from fairlead.identity.oauth.table import Change, apply
from fairlead.store.database import Database
from fairlead.store.file import Connection

WAITING_MAX = 1024


class Batches:
    """The queue of changes to the database. `store` returns once the change is committed."""

    def __init__(self, database: Database) -> None:
        self.is_behind = False
        self._database = database
        self._waiting: list[tuple[Change, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    def evict_oldest(self) -> None:
        """`Overloaded` when too many changes wait; to be called before memory is changed."""
        if len(self._waiting) >= WAITING_MAX:
            raise Overloaded("Too many writes are waiting; try again.", retry_after_s=1)

    async def store(self, change: Change) -> None:
        """Stores a change. `StorageUnavailable` or `Overloaded` when it cannot."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, done))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write(), name="oauth-writes")
        # A caller that disconnects must not cancel the batch of the others.
        await asyncio.shield(done)

    async def _write(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                whole = Change()
                for change, _ in batch:
                    whole.add(change)
                try:
                    await self._database.write(partial(_apply, whole))
                except BaseException as error:
                    self.is_behind = True
                    batch += self._waiting
                    self._waiting = []
                    _settle(batch, error)
                    if not isinstance(error, Exception):
                        raise
                else:
                    _settle(batch, None)
        finally:
            self._writing = None


def _apply(change: Change, con: Connection) -> None:
    apply(con, change)


def _settle(batch: list[tuple[Change, asyncio.Future[None]]], error: BaseException | None) -> None:
    for _, done in batch:
        if done.done():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
            # Marks the error as seen, or asyncio would log it when this request's caller is gone.
            done.exception()

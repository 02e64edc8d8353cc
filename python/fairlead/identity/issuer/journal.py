"""Writes of tokens to the file: all that wait go into one commit, and are valid once it is done.

While a commit is in progress the next batch gathers, so the load sets the size of a batch and a lone caller
waits for one commit. A caller that disconnects does not stop a write that was begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from fairlead.identity.issuer import table
from fairlead.identity.issuer.fault import unavailable
from fairlead.identity.issuer.token import Token
from fairlead.store.database import Database
from fairlead.store.file import Connection

WAITING_MAX: Final = 4096
Waiter = asyncio.Future[None]
T = TypeVar("T")


class TokenJournal:
    """Writes tokens and their revocations. `on_stored` is called for each token, in the loop, right
    after its commit and before its caller continues.
    """

    def __init__(self, database: Database, on_stored: Callable[[Token], None]) -> None:
        self._database = database
        self._on_stored = on_stored
        self._issued: list[tuple[Token, Waiter]] = []
        self._ended: list[tuple[bytes, Waiter]] = []
        self._writing: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """The number of tokens that are not stored yet."""
        return len(self._issued)

    async def store(self, token: Token) -> None:
        """Returns once the token is stored and valid. `FairleadError` when it could not be stored."""
        await self._wait(self._issued, token)

    async def end(self, digest: bytes) -> None:
        """Returns once the token's revocation is stored."""
        await self._wait(self._ended, digest)

    async def close(self) -> None:
        """Waits for writes in progress."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)

    async def _wait(self, lot: list[tuple[T, Waiter]], entry: T) -> None:
        if len(self._issued) + len(self._ended) >= WAITING_MAX:
            raise unavailable("Too many requests are waiting; try again shortly.")
        waiter: Waiter = asyncio.get_running_loop().create_future()
        lot.append((entry, waiter))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write(), name="issuer journal")
        await waiter

    async def _write(self) -> None:
        try:
            while self._issued or self._ended:
                issued, self._issued = self._issued, []
                ended, self._ended = self._ended, []
                await self._write_lot(issued, ended)
        finally:
            self._writing = None

    async def _write_lot(
        self, issued: list[tuple[Token, Waiter]], ended: list[tuple[bytes, Waiter]]
    ) -> None:
        tokens = [token for token, _ in issued]
        hashes = [digest for digest, _ in ended]

        def write(con: Connection) -> None:
            if tokens:
                table.insert_tokens(con, tokens)
            if hashes:
                table.delete_tokens(con, hashes)

        waiters = [waiter for _, waiter in issued] + [waiter for _, waiter in ended]
        try:
            await self._database.write(write)
        except BaseException as error:
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(error if isinstance(error, Exception) else unavailable(""))
            if not isinstance(error, Exception):
                raise
            return
        for token in tokens:
            self._on_stored(token)
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

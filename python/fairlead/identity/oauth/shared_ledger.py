"""The ledger for several processes on one database: each decision uses the current rows.

The records of a decision are read, the ledger decides over these alone, and its change is stored only if they
are unchanged, in one SERIALIZABLE transaction. Otherwise another process has decided meanwhile, and the
decision is repeated. So a code is spent once and a refresh token is rotated once, however many processes are
asked, and the rules are those of `Ledger`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar
from uuid import uuid4
from weakref import WeakValueDictionary

from fairlead import _core
from fairlead.errors import StorageUnavailable
from fairlead.identity.oauth.ledger import GRACE_S, IssuedTokens, Ledger, surplus_clients
from fairlead.identity.oauth.people import People
from fairlead.identity.oauth.records import (
    SPENT_CODE_KEPT_MS,
    UNAPPROVED_CLIENT_KEPT_MS,
    AccessToken,
    Client,
    Grant,
)
from fairlead.identity.oauth.slices import (
    Slice,
    about_client,
    about_code,
    about_grant,
    about_token,
    about_token_alone,
    about_user,
    sweep_all,
)
from fairlead.identity.oauth.table import Change, apply
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.state import State

T = TypeVar("T")

ATTEMPTS_MAX: Final = 8
Read = Callable[[Connection], Slice]


class _StaleRecords(Exception):
    """The records are not those that were decided about."""


@dataclass(slots=True)
class _GuardedWrites:
    """`Batches` of one decision: its change is stored if the records are unchanged."""

    state: State
    read: Read
    seen: Slice
    is_behind: bool = False

    def evict_oldest(self) -> None:
        """The database's own queue has a bound."""

    async def store(self, change: Change) -> None:
        await self.state.database.write(partial(self._store, change))

    def _store(self, change: Change, con: Connection) -> None:
        if self.read(con) != self.seen:
            raise _StaleRecords
        apply(con, change)


class SharedLedger(Ledger):
    """`Ledger` for several processes."""

    def __init__(
        self, state: State, grace_s: float = GRACE_S, clock: Callable[[], int] = now_ms
    ) -> None:
        super().__init__(state, grace_s, clock)
        # Requests of this process about one thing wait for each other, so that only other processes can be in the way.
        self._deciding: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.people = People(state, is_shared=True)

    async def load(self) -> None:
        """Nothing is kept between decisions."""

    async def sweep(self) -> None:
        at_ms = self._clock()
        await self._state.database.write(
            lambda con: sweep_all(
                con, at_ms, at_ms - SPENT_CODE_KEPT_MS, at_ms - UNAPPROVED_CLIENT_KEPT_MS
            )
        )

    async def register(self, name: str, redirect_uri: str) -> Client:
        client = Client(str(uuid4()), name, redirect_uri, self._clock())

        def store(con: Connection) -> None:
            waiting = con.execute(
                "SELECT count(*) FROM oauth_clients WHERE approved_at_ms IS NULL"
            ).fetchone()
            surplus = con.execute(
                "SELECT id FROM oauth_clients WHERE approved_at_ms IS NULL "
                "ORDER BY created_at_ms, id LIMIT ?",
                [surplus_clients(int(waiting[0]) if waiting else 0)],
            ).fetchall()
            apply(con, Change(clients=[client], forgotten=[row[0] for row in surplus]))

        await self._state.database.write(store)
        return client

    async def client(self, client_id: str) -> Client | None:
        return await self._decide(about_client(client_id), lambda one: one.client(client_id))

    async def issue_code(
        self, client: Client, user_id: str, redirect_uri: str, challenge: str, resource: str
    ) -> str:
        return await self._decide(
            about_client(client.id),
            lambda one: one.issue_code(client, user_id, redirect_uri, challenge, resource),
        )

    async def exchange(
        self, text: str, client_id: str, redirect_uri: str, verifier: str, resource: str
    ) -> IssuedTokens | None:
        digest = _core.hash_secret(text)
        return await self._decide_in_turn(
            digest,
            about_code(digest),
            lambda one: one.exchange(text, client_id, redirect_uri, verifier, resource),
        )

    async def refresh(self, text: str, client_id: str, resource: str) -> IssuedTokens | None:
        digest = _core.hash_secret(text)
        return await self._decide_in_turn(
            digest,
            about_token(digest, self._clock()),
            lambda one: one.refresh(text, client_id, resource),
        )

    async def revoke(self, text: str, client_id: str | None) -> None:
        await self._decide(
            about_token(_core.hash_secret(text), self._clock()),
            lambda one: one.revoke(text, client_id),
        )

    async def granted(self, text: str, resource: str) -> tuple[Grant, AccessToken] | None:
        return await self._decide(
            about_token_alone(_core.hash_secret(text)), lambda one: one.granted(text, resource)
        )

    async def grants_of(self, user_id: str) -> list[tuple[Grant, Client | None]]:
        return await self._decide(about_user(user_id), lambda one: one.grants_of(user_id))

    async def end(self, grant_id: str, user_id: str) -> bool:
        return await self._decide(about_grant(grant_id), lambda one: one.end(grant_id, user_id))

    async def _decide_in_turn(
        self, about: str, read: Read, decide: Callable[[Ledger], Awaitable[T]]
    ) -> T:
        turn = self._deciding.setdefault(about, asyncio.Lock())
        async with turn:
            return await self._decide(read, decide)

    async def _decide(self, read: Read, decide: Callable[[Ledger], Awaitable[T]]) -> T:
        for _ in range(ATTEMPTS_MAX):
            seen = await self._state.read(read)
            writes = _GuardedWrites(self._state, read, seen)
            try:
                return await decide(self._over(writes))
            except _StaleRecords:
                continue
        raise StorageUnavailable(
            "Too many requests are about the same approval at once; try again.", retry_after_s=1
        )

    def _over(self, writes: _GuardedWrites) -> Ledger:
        """The rules over one slice of the records, for one decision."""
        return _OneDecision(self._state, self._grace_ms / 1000, self._clock, self.people, writes)


class _OneDecision(Ledger):
    def __init__(
        self,
        state: State,
        grace_s: float,
        clock: Callable[[], int],
        people: People,
        writes: _GuardedWrites,
    ) -> None:
        super().__init__(state, grace_s, clock)
        self.people = people
        self._batches: Any = writes
        self._take(writes.seen.records())
        self._is_loaded = True

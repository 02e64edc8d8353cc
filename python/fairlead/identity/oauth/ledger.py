"""Codes, tokens and approvals: in memory for decisions, in the database for durability.

One process and one event loop: a decision between two awaits is made once, so of fifty requests
with one code a single one finds it unused. A decision changes memory first and is answered only
after its commit; after a crash the file knows everything that was answered. If a commit fails,
memory is read again before the next decision.

A request that is wrong in any part spends nothing. A code that is used again, by a request that is
otherwise right, ends everything issued for it. So does a rotated refresh token, except the last one
within a grace period, because clients with several windows send that.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from uuid import uuid4

from fairlead import _core
from fairlead.identity.oauth.batches import Batches
from fairlead.identity.oauth.people import People, user_ids
from fairlead.identity.oauth.records import (
    ACCESS_LIFETIME_MS,
    ACCESS_PER_GRANT_MAX,
    CODE_LIFETIME_MS,
    GRANTS_PER_USER_MAX,
    REFRESH_LIFETIME_MS,
    REFRESH_PER_GRANT_MAX,
    SPENT_CODE_KEPT_MS,
    UNAPPROVED_CLIENT_KEPT_MS,
    UNAPPROVED_CLIENTS_MAX,
    AccessToken,
    Client,
    Code,
    Grant,
    RefreshToken,
)
from fairlead.identity.oauth.table import Change, StoredRecords, read_all, sweep
from fairlead.moment import now_ms
from fairlead.store.state import State

GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    """The texts of new tokens, which are not stored. Within the grace period there is no refresh
    token.
    """

    access_token: str
    refresh_token: str | None


class Ledger:
    """All approvals of this gateway. `load` before use."""

    def __init__(
        self, state: State, grace_s: float = GRACE_S, clock: Callable[[], int] = now_ms
    ) -> None:
        self._state = state
        self._grace_ms = int(grace_s * 1000)
        self._clock = clock
        self._batches = Batches(state.database)
        self.people = People(state)
        self._loading = asyncio.Lock()
        self._is_loaded = False
        self._take(StoredRecords([], [], [], [], []))

    # --- memory

    async def load(self) -> None:
        """Reads everything, unless it was read already and no write has failed since."""
        if self._is_loaded and not self._batches.is_behind:
            return
        async with self._loading:
            if self._is_loaded and not self._batches.is_behind:
                return
            self._batches.is_behind = False
            self._is_loaded = False
            at_ms = self._clock()
            # Read by the writer, so after any write that timed out.
            self._take(await self._state.database.write(lambda con: read_all(con, at_ms)))
            self._is_loaded = True

    def _take(self, records: StoredRecords) -> None:
        self._clients = {client.id: client for client in records.clients}
        self._grants = {grant.id: grant for grant in records.grants}
        self._codes = {code.hash: code for code in records.codes}
        self._access: dict[str, AccessToken] = {}
        self._refresh: dict[str, RefreshToken] = {}
        for access in records.access:
            if grant := self._grants.get(access.grant_id):
                self._access[access.hash] = access
                grant.access.append(access.hash)
        for refresh in records.refresh:
            if grant := self._grants.get(refresh.grant_id):
                if refresh.generation == grant.generation + 1 and grant.refresh:
                    self._refresh[grant.refresh[-1]].rotated_at_ms = refresh.created_at_ms
                self._refresh[refresh.hash] = refresh
                grant.refresh.append(refresh.hash)
                grant.generation = refresh.generation

    async def sweep(self) -> None:
        """Deletes what has expired, approvals without tokens, and clients that nobody approved."""
        await self.load()
        at_ms = self._clock()
        codes_before_ms = at_ms - SPENT_CODE_KEPT_MS
        await self._state.database.write(lambda con: sweep(con, at_ms, codes_before_ms))
        for access in [each for each in self._access.values() if each.expires_at_ms <= at_ms]:
            self._drop_access(access.hash)
        for refresh in [each for each in self._refresh.values() if each.expires_at_ms <= at_ms]:
            del self._refresh[refresh.hash]
            self._grants[refresh.grant_id].refresh.remove(refresh.hash)
        for code in [
            each for each in self._codes.values() if each.expires_at_ms <= codes_before_ms
        ]:
            del self._codes[code.hash]
        change = Change()
        known = await self._state.read(user_ids)
        for grant in [
            each
            for each in self._grants.values()
            if not (each.refresh or each.access) or each.user_id not in known
        ]:
            self._end(grant, change)
        before_ms = at_ms - UNAPPROVED_CLIENT_KEPT_MS
        for client in [
            each
            for each in self._clients.values()
            if each.approved_at_ms is None and each.created_at_ms <= before_ms
        ]:
            self._forget(client, change)
        await self._batches.store(change)

    # --- clients

    async def register(self, name: str, redirect_uri: str) -> Client:
        """Registers a client, which becomes permanent once somebody approves it. When too many wait
        for approval, the oldest is deleted.
        """
        await self.load()
        self._batches.evict_oldest()
        change = Change()
        waiting = [each for each in self._clients.values() if each.approved_at_ms is None]
        for old in waiting[: surplus_clients(len(waiting))]:
            self._forget(old, change)
        client = Client(str(uuid4()), name, redirect_uri, self._clock())
        self._clients[client.id] = client
        change.clients.append(client)
        await self._batches.store(change)
        return client

    async def client(self, client_id: str) -> Client | None:
        """The client with this id."""
        await self.load()
        return self._clients.get(client_id)

    # --- codes

    async def issue_code(
        self, client: Client, user_id: str, redirect_uri: str, challenge: str, resource: str
    ) -> str:
        """The text of a new code after a person's approval; only its hash is stored."""
        await self.load()
        self._batches.evict_oldest()
        text = secrets.token_urlsafe(32)
        at_ms = self._clock()
        code = Code(
            _core.hash_secret(text),
            str(uuid4()),
            client.id,
            user_id,
            redirect_uri,
            challenge,
            resource,
            at_ms + CODE_LIFETIME_MS,
        )
        self._codes[code.hash] = code
        change = Change(codes=[code])
        known = self._clients.get(client.id)
        if known is None:
            # A client known by its document is stored from its first approval on, to be named in the
            # list of approvals.
            client.approved_at_ms = at_ms
            self._clients[client.id] = client
            change.clients.append(client)
        elif known.approved_at_ms is None:
            known.approved_at_ms = at_ms
            change.approved.append(known)
        await self._batches.store(change)
        return text

    async def exchange(
        self, text: str, client_id: str, redirect_uri: str, verifier: str, resource: str
    ) -> IssuedTokens | None:
        """New tokens for a code, or None when anything about the request is wrong."""
        await self.load()
        self._batches.evict_oldest()
        code = self._codes.get(_core.hash_secret(text))
        if (
            code is None
            or code.client_id != client_id
            or code.redirect_uri != redirect_uri
            or code.resource != resource
            or not hmac.compare_digest(code.challenge, challenge_of(verifier))
        ):
            return None
        user = await self.people.find(code.user_id)
        if code.is_spent:
            await self._end_by_replay(code.grant_id)
            return None
        at_ms = self._clock()
        if user is None or code.expires_at_ms <= at_ms or self._codes.get(code.hash) is not code:
            return None
        code.is_spent = True
        grant = Grant(code.grant_id, client_id, code.user_id, resource, at_ms)
        self._grants[grant.id] = grant
        change = Change(grants=[grant], spent=[code.hash])
        self._keep_few_grants(grant, change)
        issued = IssuedTokens(
            self._mint_access(grant, at_ms, change), self._mint_refresh(grant, at_ms, change)
        )
        await self._batches.store(change)
        return issued

    # --- tokens

    async def refresh(self, text: str, client_id: str, resource: str) -> IssuedTokens | None:
        """New tokens for a refresh token, or None when anything about the request is wrong."""
        await self.load()
        self._batches.evict_oldest()
        token = self._refresh.get(_core.hash_secret(text))
        grant = self._grants.get(token.grant_id) if token else None
        if (
            token is None
            or grant is None
            or grant.client_id != client_id
            or grant.resource != resource
        ):
            return None
        user = await self.people.find(grant.user_id)
        at_ms = self._clock()
        if (
            user is None
            or token.expires_at_ms <= at_ms
            or self._refresh.get(token.hash) is not token
        ):
            return None
        change = Change()
        if token.rotated_at_ms is None:
            token.rotated_at_ms = at_ms
            issued = IssuedTokens(
                self._mint_access(grant, at_ms, change), self._mint_refresh(grant, at_ms, change)
            )
        elif (
            token.generation == grant.generation - 1
            and at_ms - token.rotated_at_ms < self._grace_ms
        ):
            issued = IssuedTokens(self._mint_access(grant, at_ms, change), None)
        else:
            await self._end_by_replay(grant.id)
            return None
        await self._batches.store(change)
        return issued

    async def revoke(self, text: str, client_id: str | None) -> None:
        """Revokes a refresh token with its whole approval, or one access token; does nothing for a
        token that is unknown or another client's.
        """
        await self.load()
        digest = _core.hash_secret(text)
        token = self._refresh.get(digest) or self._access.get(digest)
        grant = self._grants.get(token.grant_id) if token else None
        if token is None or grant is None or client_id not in (None, grant.client_id):
            return
        change = Change()
        if isinstance(token, RefreshToken):
            self._end(grant, change)
        else:
            self._drop_access(digest)
            change.dropped.append(digest)
        await self._batches.store(change)

    async def granted(self, text: str, resource: str) -> tuple[Grant, AccessToken] | None:
        """The grant of a valid access token for this resource, or None."""
        await self.load()
        token = self._access.get(_core.hash_secret(text))
        grant = self._grants.get(token.grant_id) if token else None
        if (
            token is None
            or grant is None
            or token.expires_at_ms <= self._clock()
            or grant.resource != resource
        ):
            return None
        return grant, token

    # --- approvals

    async def grants_of(self, user_id: str) -> list[tuple[Grant, Client | None]]:
        """A user's approvals, newest first."""
        await self.load()
        mine = [grant for grant in self._grants.values() if grant.user_id == user_id]
        return [(grant, self._clients.get(grant.client_id)) for grant in reversed(mine)]

    async def end(self, grant_id: str, user_id: str) -> bool:
        """Ends a user's approval; whether there was one."""
        await self.load()
        grant = self._grants.get(grant_id)
        if grant is None or grant.user_id != user_id:
            return False
        change = Change()
        self._end(grant, change)
        await self._batches.store(change)
        return True

    # --- in memory, with what must be written of it

    def _mint_access(self, grant: Grant, at_ms: int, change: Change) -> str:
        text = secrets.token_urlsafe(32)
        token = AccessToken(_core.hash_secret(text), grant.id, at_ms, at_ms + ACCESS_LIFETIME_MS)
        for old in grant.access[: max(0, len(grant.access) - ACCESS_PER_GRANT_MAX + 1)]:
            self._drop_access(old)
            change.dropped.append(old)
        self._access[token.hash] = token
        grant.access.append(token.hash)
        change.access.append(token)
        return text

    def _mint_refresh(self, grant: Grant, at_ms: int, change: Change) -> str:
        text = secrets.token_urlsafe(32)
        grant.generation += 1
        token = RefreshToken(
            _core.hash_secret(text), grant.id, grant.generation, at_ms, at_ms + REFRESH_LIFETIME_MS
        )
        for old in grant.refresh[: max(0, len(grant.refresh) - REFRESH_PER_GRANT_MAX + 1)]:
            self._refresh.pop(old)
            grant.refresh.remove(old)
            change.dropped.append(old)
        self._refresh[token.hash] = token
        grant.refresh.append(token.hash)
        change.refresh.append(token)
        return text

    def _keep_few_grants(self, newest: Grant, change: Change) -> None:
        mine = [grant for grant in self._grants.values() if grant.user_id == newest.user_id]
        for old in mine[: max(0, len(mine) - GRANTS_PER_USER_MAX)]:
            self._end(old, change)

    async def _end_by_replay(self, grant_id: str) -> None:
        grant = self._grants.get(grant_id)
        if grant is not None:
            change = Change()
            self._end(grant, change)
            await self._batches.store(change)

    def _end(self, grant: Grant, change: Change) -> None:
        self._grants.pop(grant.id, None)
        for digest in grant.access:
            self._access.pop(digest, None)
        for digest in grant.refresh:
            self._refresh.pop(digest, None)
        change.ended.append(grant.id)

    def _drop_access(self, digest: str) -> None:
        token = self._access.pop(digest)
        self._grants[token.grant_id].access.remove(digest)

    def _forget(self, client: Client, change: Change) -> None:
        self._clients.pop(client.id, None)
        change.forgotten.append(client.id)


def surplus_clients(waiting: int) -> int:
    """The number of unapproved clients that are evicted for a new one."""
    return max(0, waiting - UNAPPROVED_CLIENTS_MAX + 1)


def challenge_of(verifier: str) -> str:
    """S256 of a verifier (RFC 7636)."""
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()

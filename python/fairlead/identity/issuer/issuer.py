"""The issuer: clients and tokens in memory, each change acknowledged once it is in the file.

A token is valid from its commit on. Revoked tokens and deleted clients are removed from memory
first, so they stop being valid at once, and the removal is acknowledged after the commit.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import structlog

from fairlead.errors import FairleadError
from fairlead.identity.issuer import table
from fairlead.identity.issuer.client import (
    CLIENT_CREDENTIALS,
    Client,
    SecretHasher,
    patched,
    register,
    replaced,
)
from fairlead.identity.issuer.fault import IssuerFault, unavailable, unknown_client
from fairlead.identity.issuer.journal import TokenJournal
from fairlead.identity.issuer.token import TOKENS_MAX, Token, TokenTable, hash_of, new_text
from fairlead.store.database import Database, Transaction
from fairlead.store.file import Connection
from fairlead.store.prepare import MIGRATIONS, issuer_path

CLIENTS_MAX: Final = 20_000
SWEEP_EVERY_S: Final = 30.0

log = structlog.get_logger("fairlead.identity")


def _now_s() -> int:
    return int(time.time())


class Issuer:
    """The issuer of the process that has the file open. `url` is its public address."""

    def __init__(
        self,
        database: Database,
        hasher: SecretHasher,
        url: str,
        token_ttl_s: int,
        now_s: Callable[[], int] = _now_s,
    ) -> None:
        self.database = database
        self.url = url
        self._hasher = hasher
        self._token_ttl_s = token_ttl_s
        self._now_s = now_s
        self._clients: dict[str, Client] = {}
        self._by_key: dict[str, Client] = {}
        self._tokens = TokenTable()
        self._journal = TokenJournal(database, self._count)
        self._changing = asyncio.Lock()

    async def load(self) -> None:
        """Reads clients and tokens from the file."""
        now_s = self._now_s()

        def prepare(con: Connection) -> None:
            table.check_key(con, self._hasher)
            table.delete_expired(con, now_s)

        await self.database.write(prepare)

        def read_rows(con: Connection) -> tuple[list[Client], list[Token]]:
            return table.all_clients(con), table.live_tokens(con, now_s, TOKENS_MAX)

        clients, tokens = await self.database.read(read_rows)
        for client in clients:
            self._clients[client.client_id] = self._by_key[client.key] = client
        for token in tokens:
            self._tokens.add(token)

    async def close(self) -> None:
        """Waits for writes in progress."""
        await self._journal.close()

    # --- tokens

    def authenticate(self, client_id: str, secret: str, method: str) -> Client:
        """The client with this secret, sent by the method that it registered. `invalid_client`."""
        client = self._clients.get(client_id)
        if not self._hasher.fits(secret, client) or client is None:
            raise IssuerFault(401, "invalid_client", "The client id or its secret is wrong.")
        if client.token_endpoint_auth_method != method:
            raise IssuerFault(
                401,
                "invalid_client",
                f"This client authenticates with {client.token_endpoint_auth_method}.",
            )
        return client

    async def issue(
        self, client: Client, wanted: tuple[str, ...], audience: tuple[str, ...] = ()
    ) -> tuple[str, Token]:
        """Issues and stores a token; returns its text and its record. Without `wanted` it has every
        scope of the client, without `audience` every audience.
        """
        if CLIENT_CREDENTIALS not in client.grant_types:
            raise IssuerFault(
                400, "unauthorized_client", "The client is not registered for client_credentials."
            )
        for name in wanted:
            if name not in client.scopes:
                raise IssuerFault(
                    400, "invalid_scope", f"The client is not registered for the scope {name}."
                )
        for name in audience:
            if name not in client.audience:
                raise IssuerFault(
                    400, "invalid_target", f"The client is not registered for the audience {name}."
                )
        if not self._tokens.has_capacity(client.key, self._journal.waiting):
            raise unavailable("Too many access tokens are live: use one until it expires.")
        text, now_s = new_text(), self._now_s()
        lifespan_s = self._token_ttl_s if client.lifespan_s is None else client.lifespan_s
        scope = " ".join(wanted) if wanted else client.scope
        token = Token(
            hash_of(text),
            client.key,
            client.client_id,
            scope,
            now_s,
            now_s + lifespan_s,
            " ".join(audience),
        )
        await self._stored(token)
        if self._tokens.get(token.hash) is None:
            raise IssuerFault(401, "invalid_client", "The client was deleted or revoked meanwhile.")
        return text, token

    def introspect(self, text: str, scopes: tuple[str, ...] = ()) -> dict[str, Any] | None:
        """The introspection of an active token (RFC 7662), or None; with `scopes`, active only if
        all of them are granted.
        """
        token = self._tokens.get(hash_of(text))
        if token is None or token.expires_at_s <= self._now_s():
            return None
        client = self._by_key.get(token.client_key)
        if client is None:
            return None
        scope = token.scope
        if scope != client.scope:
            # Scopes that an operator took from the client are lost by its tokens too.
            scope = " ".join(name for name in scope.split(" ") if name in client.scopes)
        if scopes and not set(scope.split(" ")).issuperset(scopes):
            return None
        audience = list(client.audience)
        if token.audience:
            granted = token.audience.split(" ")
            audience = [name for name in granted if name in client.audience]
            if not audience:
                # The client lost every audience of the token; an empty list would mean any audience.
                return None
        return {
            "active": True,
            "client_id": token.client_id,
            "sub": token.client_id,
            "scope": scope,
            "exp": token.expires_at_s,
            "iat": token.issued_at_s,
            "nbf": token.issued_at_s,
            "iss": self.url,
            "aud": audience,
            "token_type": "Bearer",
            "token_use": "access_token",
        }

    async def revoke(self, text: str, client: Client | None = None) -> None:
        """Revokes a token (RFC 7009); with `client`, only a token of that client."""
        digest = hash_of(text)
        token = self._tokens.get(digest)
        if token is None:
            return
        if client is not None and token.client_key != client.key:
            raise IssuerFault(400, "unauthorized_client", "The token is another client's.")
        self._tokens.drop(digest)
        try:
            await self._journal.end(digest)
        except FairleadError as error:
            raise unavailable(error.message) from None

    async def revoke_all(self, client_id: str) -> None:
        """Revokes every token of a client, also those that are being stored right now: tokens
        belong to the client's internal key, and the client gets a new one.
        """
        async with self._changing:
            old = self.client(client_id)
            new = dataclasses.replace(old, key=str(uuid4()))
            del self._by_key[old.key]
            self._keep(new)
            self._tokens.drop_client(old.key)
            try:
                await self._write(lambda con: table.rekey_client(con, old.key, new.key))
            except IssuerFault:
                del self._by_key[new.key]
                self._keep(old)
                raise
        log.info("tokens revoked", client_id=client_id)

    # --- clients

    def client(self, client_id: str) -> Client:
        """The client with this id; 404 if there is none."""
        client = self._clients.get(client_id)
        if client is None:
            raise unknown_client()
        return client

    def clients(self, after: str, most: int) -> list[Client]:
        """A page of clients by id, after `after`."""
        behind = sorted(client_id for client_id in self._clients if client_id > after)
        return [self._clients[client_id] for client_id in behind[:most]]

    async def create(self, body: dict[str, Any]) -> tuple[Client, str]:
        """Registers a client; returns it with its secret, which is not stored. 409 if the id is
        taken.
        """
        client, secret = register(body, self._hasher)
        async with self._changing:
            if client.client_id in self._clients:
                raise IssuerFault(
                    409,
                    "Unable to insert or update resource",
                    "There is a client with this id already.",
                )
            if len(self._clients) >= CLIENTS_MAX:
                raise IssuerFault(409, "too_many_clients", f"There are {CLIENTS_MAX} clients.")
            await self._write(lambda con: table.insert_client(con, client))
            self._keep(client)
        log.info("client registered", client_id=client.client_id, scope=client.scope)
        return client, secret

    async def replace(self, client_id: str, body: dict[str, Any]) -> Client:
        """Replaces a client's registration; its tokens stay valid, with the scopes that are left."""
        return await self._change(client_id, lambda old: replaced(old, body, self._hasher))

    async def patch(self, client_id: str, operations: Any) -> Client:
        """Changes fields of a client by JSON Patch."""
        return await self._change(client_id, lambda old: patched(old, operations, self._hasher))

    async def delete(self, client_id: str) -> None:
        """Deletes a client; its tokens end at once."""
        async with self._changing:
            client = self.client(client_id)
            del self._clients[client_id]
            del self._by_key[client.key]
            self._tokens.drop_client(client.key)
            try:
                await self._write(lambda con: table.delete_client(con, client.key))
            except IssuerFault:
                # The write failed, so the client is listed again and can be deleted again. Its tokens
                # stay revoked.
                self._keep(client)
                raise
        log.info("client deleted", client_id=client_id)

    async def sweep(self) -> None:
        """Deletes expired tokens every half minute; runs until it is cancelled."""
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            now_s = self._now_s()
            if self._tokens.forget_expired(now_s):
                await self.database.write(partial(table.delete_expired, now_s=now_s))

    async def _change(self, client_id: str, change: Callable[[Client], Client]) -> Client:
        async with self._changing:
            client = change(self.client(client_id))
            await self._write(lambda con: table.update_client(con, client))
            self._keep(client)
        return client

    def _keep(self, client: Client) -> None:
        self._clients[client.client_id] = self._by_key[client.key] = client

    def _count(self, token: Token) -> None:
        # The client was deleted while its token was being stored, so the token is not given out.
        if token.client_key in self._by_key:
            self._tokens.add(token)

    async def _stored(self, token: Token) -> None:
        try:
            await self._journal.store(token)
        except FairleadError as error:
            raise unavailable(error.message) from None

    async def _write(self, transaction: Transaction[None]) -> None:
        try:
            await self.database.write(transaction)
        except FairleadError as error:
            raise unavailable(error.message) from None


@asynccontextmanager
async def open_issuer(
    data_dir: Path, secret_key: bytes, url: str, token_ttl_s: int
) -> AsyncIterator[Issuer]:
    """The issuer over its file, until the end of the block. `Refusal` says why the file cannot be
    opened: another process has it open, or it is damaged.
    """
    database = await asyncio.to_thread(Database.open, issuer_path(data_dir), MIGRATIONS / "issuer")
    try:
        issuer = Issuer(database, SecretHasher(secret_key), url, token_ttl_s)
        await issuer.load()
        try:
            yield issuer
        finally:
            await issuer.close()
    finally:
        await database.close()

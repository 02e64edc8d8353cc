"""Codes and refresh tokens are spent once, however many processes of one database are asked."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from fairlead.identity.oauth.ledger import IssuedTokens, challenge_of
from fairlead.identity.oauth.records import Client
from fairlead.identity.oauth.shared_ledger import SharedLedger
from fairlead.identity.users import ensure_owner
from fairlead.store.database import Database
from fairlead.store.postgresql.engine import PostgresqlEngine
from fairlead.store.sealer import Sealer
from fairlead.store.state import State

pytestmark = pytest.mark.anyio

REDIRECT = "http://127.0.0.1:9/callback"
RESOURCE = "http://127.0.0.1:20128/mcp"


@dataclass
class Nodes:
    """The ledgers of two processes, a user, and a client that the first has registered."""

    ledgers: tuple[SharedLedger, SharedLedger]
    user_id: str
    client: Client

    async def code(self, verifier: str) -> str:
        return await self.ledgers[0].issue_code(
            self.client, self.user_id, REDIRECT, challenge_of(verifier), RESOURCE
        )

    async def exchange(self, at: int, code: str, verifier: str) -> IssuedTokens | None:
        return await self.ledgers[at % 2].exchange(
            code, self.client.id, REDIRECT, verifier, RESOURCE
        )

    async def refresh(self, at: int, token: str | None) -> IssuedTokens | None:
        assert token is not None
        return await self.ledgers[at % 2].refresh(token, self.client.id, RESOURCE)


@pytest.fixture
async def nodes(database_url: str) -> AsyncIterator[Nodes]:
    states = [
        State(Database(PostgresqlEngine(database_url, name)), Sealer(bytes(32)))
        for name in ("one", "two")
    ]
    await states[0].database.write(ensure_owner)
    user_id = await states[1].read(lambda con: con.execute("SELECT id FROM users").fetchall()[0][0])
    first, second = (SharedLedger(state, grace_s=0) for state in states)
    yield Nodes((first, second), user_id, await first.register("tool", REDIRECT))
    for state in states:
        await state.database.close()


async def test_a_code_is_exchanged_once_and_its_replay_ends_what_it_gave(nodes: Nodes) -> None:
    verifier = secrets.token_urlsafe(32)
    code = await nodes.code(verifier)
    answers = await asyncio.gather(*(nodes.exchange(at, code, verifier) for at in range(12)))
    [issued] = [each for each in answers if each is not None]
    # The others were replays: what was issued has ended, at both nodes.
    for ledger in nodes.ledgers:
        assert await ledger.granted(issued.access_token, RESOURCE) is None
    assert await nodes.refresh(1, issued.refresh_token) is None


async def test_a_refresh_token_is_rotated_once(nodes: Nodes) -> None:
    verifier = secrets.token_urlsafe(32)
    issued = await nodes.exchange(0, await nodes.code(verifier), verifier)
    assert issued is not None
    answers = await asyncio.gather(*(nodes.refresh(at, issued.refresh_token) for at in range(12)))
    assert len([each for each in answers if each is not None]) == 1


async def test_in_turns_every_node_goes_on_where_the_other_was(nodes: Nodes) -> None:
    verifier = secrets.token_urlsafe(32)
    issued = await nodes.exchange(0, await nodes.code(verifier), verifier)
    for at in range(1, 6):
        assert issued is not None
        for ledger in nodes.ledgers:
            assert await ledger.granted(issued.access_token, RESOURCE) is not None
        issued = await nodes.refresh(at, issued.refresh_token)
    assert issued is not None
    [(grant, client)] = await nodes.ledgers[1].grants_of(nodes.user_id)
    assert client is not None
    assert client.approved_at_ms is not None
    assert await nodes.ledgers[0].end(grant.id, nodes.user_id)
    assert not await nodes.ledgers[1].end(grant.id, nodes.user_id)
    for ledger in nodes.ledgers:
        assert await ledger.granted(issued.access_token, RESOURCE) is None


async def test_a_revoked_token_counts_nowhere_at_once(nodes: Nodes) -> None:
    verifier = secrets.token_urlsafe(32)
    issued = await nodes.exchange(0, await nodes.code(verifier), verifier)
    assert issued is not None
    await nodes.ledgers[1].revoke(issued.access_token, nodes.client.id)
    assert await nodes.ledgers[0].granted(issued.access_token, RESOURCE) is None
    again = await nodes.refresh(0, issued.refresh_token)
    assert again is not None


async def test_the_sweep_takes_what_has_ended_and_nothing_else(nodes: Nodes) -> None:
    verifier = secrets.token_urlsafe(32)
    issued = await nodes.exchange(0, await nodes.code(verifier), verifier)
    waiting = await nodes.code(verifier)
    await asyncio.gather(*(ledger.sweep() for ledger in nodes.ledgers))
    assert issued is not None
    assert await nodes.ledgers[1].granted(issued.access_token, RESOURCE) is not None
    assert await nodes.exchange(1, waiting, verifier) is not None
    late = SharedLedger(nodes.ledgers[0]._state, 0, clock=lambda: 2**45)
    await late.sweep()
    assert await nodes.ledgers[0].grants_of(nodes.user_id) == []
    assert await nodes.ledgers[0].client(nodes.client.id) is not None

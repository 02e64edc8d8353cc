"""Refreshing tokens: what is due, and what is done when the provider or the database says no."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import pytest

from fairlead.errors import StorageUnavailable
from fairlead.gateway.resilience.table import (
    PersistedState,
    put_persisted_state,
    read_persisted_states,
)
from fairlead.gateway.sign_in.refresher import LOST, TASKS, Refresher
from fairlead.gateway.sign_in.table import SignIn, due_sign_ins, find_sign_in, put_sign_in
from fairlead.moment import now_ms
from fairlead.store.due_rows import PAUSE_MAX_MS, pause_ms
from fairlead.store.file import Connection
from fairlead.store.seal_purposes import refresh_token_of
from tests.support.management import Management
from tests.support.oauth_server import OAuthServer

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

OAUTH = "/api/oauth/openai"


@pytest.fixture
def server() -> Iterator[OAuthServer]:
    with OAuthServer() as running:
        yield running


async def sign_in(management: Management, server: OAuthServer) -> str:
    """A connection of a person who has signed in: its id."""
    await management.ask("PUT", f"{OAUTH}/settings", server.section())
    begun = await management.ask("POST", f"{OAUTH}/authorize", {})
    back = {"code": server.sign_in(begun["authorizationUrl"])}
    made = await management.ask("POST", f"{OAUTH}/exchange", back)
    connection_id: str = made["connection"]["id"]
    return connection_id


async def stored(management: Management, connection_id: str) -> SignIn:
    found = await management.services.state.read(lambda con: find_sign_in(con, connection_id))
    assert found is not None
    return found


async def put(management: Management, sign_in: SignIn) -> None:
    await management.services.state.record(lambda con: put_sign_in(con, sign_in))


async def test_a_token_that_is_refused_early_is_refreshed(
    management: Management, server: OAuthServer
) -> None:
    connection_id = await sign_in(management, server)
    state, refresher = management.services.state, Refresher.of(management.services)
    await refresher.refresh_due()
    assert server.asked == 1, "it is young, and nobody refuses it"
    found = await stored(management, connection_id)
    await put(management, replace(found, refreshed_at_ms=now_ms() - 120_000))
    held = PersistedState(connection_id, "terminal", "expired", None)
    await state.record(lambda con: put_persisted_state(con, held))
    await refresher.refresh_due()
    assert server.asked == 2
    assert await state.read(read_persisted_states) == {}
    assert (await state.read(lambda con: due_sign_ins(con, now_ms()))) == []


async def test_tokens_wait_for_a_database_that_does_not_take_them(
    management: Management, server: OAuthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection_id = await sign_in(management, server)
    state, refresher = management.services.state, Refresher.of(management.services)
    await put(management, replace(await stored(management, connection_id), next_at_ms=0))
    commit, failed = state.commit, []

    async def full(transaction: Any) -> Any:
        if not failed:
            failed.append(transaction)
            raise StorageUnavailable("The disk is full.")
        return await commit(transaction)

    monkeypatch.setattr(state, "commit", full)
    await refresher.refresh_due()
    assert list(refresher.unwritten) == [connection_id]
    assert (await stored(management, connection_id)).failures == 1
    await refresher.refresh_due()
    after = await stored(management, connection_id)
    assert (refresher.unwritten, after.failures, server.asked) == ({}, 0, 2)


async def test_one_odd_row_does_not_stop_the_refreshes_of_others(
    management: Management, server: OAuthServer
) -> None:
    odd, healthy = [await sign_in(management, server) for _ in range(2)]
    state, refresher = management.services.state, Refresher.of(management.services)
    no_text = state.sealer.seal(refresh_token_of(odd), b"\xff\xfe")
    await put(
        management, replace(await stored(management, odd), refresh_sealed=no_text, next_at_ms=0)
    )
    await put(management, replace(await stored(management, healthy), next_at_ms=0))
    await refresher.refresh_due()
    after = await stored(management, odd)
    assert (after.failures, after.last_error) == (1, "internal: UnicodeDecodeError")
    assert (after.next_at_ms or 0) > now_ms(), "it waits for its turn like any failed refresh"
    assert ((await stored(management, healthy)).failures, server.asked) == (0, 3)


async def test_tokens_that_cannot_be_stored_stop_no_other_refresh(
    management: Management, server: OAuthServer
) -> None:
    """The credential beside them was written by a version that knew another kind of it."""
    odd, healthy = [await sign_in(management, server) for _ in range(2)]
    state, refresher = management.services.state, Refresher.of(management.services)
    unknown = state.sealer.seal(odd, b'{"unknown_kind": "x"}')
    await state.record(
        lambda con: con.execute(
            "UPDATE provider_connections SET credentials_sealed = ? WHERE id = ?", [unknown, odd]
        ).fetchall()
    )
    await put(management, replace(await stored(management, odd), next_at_ms=0))
    await refresher.refresh_due()
    assert list(refresher.unwritten) == [odd]
    await put(management, replace(await stored(management, healthy), next_at_ms=0))
    await refresher.refresh_due()
    assert ((await stored(management, healthy)).failures, server.asked) == (0, 4)
    assert list(refresher.unwritten) == [odd], "they wait for a credential that can be read"


@pytest.mark.parametrize(
    "answer",
    [
        b'{"access_token": "a", "expires_in": 1e400}',
        b'["access_token"]',
        b'{"access_token": {"a": 1}}',
        b'{"error": "\\ud800"}',
        b'{"access_token": "a", "refresh_token": "\\u0000"}',
    ],
)
async def test_a_token_service_that_answers_oddly_is_asked_again_later(
    management: Management, server: OAuthServer, answer: bytes
) -> None:
    connection_id = await sign_in(management, server)
    await put(management, replace(await stored(management, connection_id), next_at_ms=0))
    server.refuse_with = answer
    await Refresher.of(management.services).refresh_due()
    after = await stored(management, connection_id)
    assert (server.asked, after.failures, after.status) == (2, 1, "active")
    assert not (after.last_error or "").startswith("internal"), after.last_error


async def test_a_secret_of_the_same_connection_is_no_refresh_token(
    management: Management, server: OAuthServer
) -> None:
    """Whoever can write to the database cannot have the connection's credential sent to the token service."""
    connection_id = await sign_in(management, server)
    state = management.services.state

    def credential(con: Connection) -> bytes:
        row = con.execute(
            "SELECT credentials_sealed FROM provider_connections WHERE id = ?", [connection_id]
        ).fetchone()
        assert row is not None
        return bytes(row[0])

    swapped = await state.read(credential)
    await put(
        management,
        replace(await stored(management, connection_id), refresh_sealed=swapped, next_at_ms=0),
    )
    await Refresher.of(management.services).refresh_due()
    after = await stored(management, connection_id)
    assert (server.asked, after.failures, after.last_error) == (1, 1, "internal")


async def test_a_lost_answer_is_told_when_the_old_token_counts_no_more(
    management: Management, server: OAuthServer
) -> None:
    """The process ended between the provider's answer and its storage: only that it asked was written."""
    connection_id = await sign_in(management, server)
    refresher = Refresher.of(management.services)
    found = await stored(management, connection_id)
    assert found.asked_at_ms is None
    await refresher.refresh(connection_id)
    # What the database would hold, had the answer been lost: the token that counted once.
    assert (await stored(management, connection_id)).asked_at_ms is None
    await put(management, replace(found, asked_at_ms=now_ms(), next_at_ms=0))
    assert await refresher.refresh(connection_id) == LOST
    after = await stored(management, connection_id)
    assert (after.status, after.last_error, after.asked_at_ms) == ("expired", LOST, None)
    shown = (await management.ask("GET", f"/api/providers/{connection_id}"))["connection"]
    assert shown["testStatus"] == "expired"
    assert LOST in shown["lastError"]


async def test_only_an_answer_that_may_be_lost_is_remembered(
    management: Management, server: OAuthServer
) -> None:
    connection_id = await sign_in(management, server)
    refresher = Refresher.of(management.services)
    server.refuse_with = 500
    await refresher.refresh(connection_id)
    assert (await stored(management, connection_id)).asked_at_ms is not None
    server.refuse_with = "temporarily_unavailable"
    await refresher.refresh(connection_id)
    assert (await stored(management, connection_id)).asked_at_ms is None
    server.refuse_with = "invalid_grant"
    assert await refresher.refresh(connection_id) == "invalid_grant"


async def test_a_sign_in_of_a_deleted_connection_is_gone(
    management: Management, server: OAuthServer
) -> None:
    connection_id = await sign_in(management, server)
    await management.ask("DELETE", f"/api/providers/{connection_id}")

    def count(con: Connection) -> int:
        row = con.execute("SELECT count(*) FROM provider_sign_ins").fetchone()
        return row[0] if row else -1

    assert await management.services.state.read(count) == 0


def test_pauses_grow_to_a_bound() -> None:
    for failures, expected in ((0, 5_000), (3, 40_000), (50, PAUSE_MAX_MS)):
        assert 0.8 * expected <= pause_ms(failures) <= 1.2 * expected


class Watched(asyncio.Event):
    """An event that tells when it is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.is_awaited = asyncio.Event()

    async def wait(self) -> Literal[True]:
        self.is_awaited.set()
        return await super().wait()


async def test_it_stops_although_it_is_told_of_a_change(
    management: Management, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed, state = Watched(), management.services.state
    monkeypatch.setattr(state, "watch", lambda: changed)
    monkeypatch.setattr(state, "unwatch", lambda _: None)
    (watching,) = [task for task in TASKS if task.name == "gateway.sign-ins"]
    task = asyncio.ensure_future(watching.run(management.services))
    async with asyncio.timeout(10):
        await changed.is_awaited.wait()
    # The wait has begun when this coroutine is on again; the change and the end come in one turn of the loop.
    await asyncio.sleep(0)
    changed.set()
    task.cancel()
    ended, _ = await asyncio.wait({task}, timeout=5)
    assert ended
    assert task.cancelled()

"""Which other controls a change waits for when the database was away for a while, perhaps for all of them."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from fairlead.store.postgresql.nodes import LIVE_FOR_MS, Nodes

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


class Node:
    """A control whose relays have applied the snapshot 7."""

    def applied_version(self) -> int:
        return 7

    def report(self) -> str:
        return "{}"

    async def wait_for_poll(self, within_s: float) -> None:
        await asyncio.sleep(within_s)

    def state_changed(self) -> None:
        pass

    async def published(self, version: int) -> None:
        pass


async def connected(nodes: Nodes, con: psycopg.AsyncConnection) -> asyncio.Task[None]:
    """Runs `nodes` as its background task does, until others see it."""
    task = asyncio.create_task(nodes.run())
    async with asyncio.timeout(20):
        while not await is_seen(con) or not await nodes.applied(0, 1.0):
            await asyncio.sleep(0.02)
    return task


async def is_seen(con: psycopg.AsyncConnection) -> bool:
    found = await con.execute("SELECT 1 FROM fairlead.control_nodes WHERE id = 'this'")
    return await found.fetchone() is not None


async def put_other(con: psycopg.AsyncConnection) -> None:
    """Another control, seen now, whose relays have an older snapshot."""
    await con.execute(
        "INSERT INTO fairlead.control_nodes "
        "(id, host, fairlead_version, started_at_ms, seen_at_ms, applied_version, report) "
        "VALUES ('other', 'h', '1', 0, fairlead.epoch_ms(clock_timestamp()), 6, '{}')"
    )


async def end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_who_lived_before_the_database_was_away_is_waited_for_when_it_is_back(
    database_url: str,
) -> None:
    """It comes back at its own time, and serves by what it knew before until then."""
    nodes = Nodes(database_url, "this", Node())
    con = await psycopg.AsyncConnection.connect(database_url, autocommit=True)
    async with con:
        first = await connected(nodes, con)
        await put_other(con)
        assert not await nodes.applied(7, 0.2)
        await end(first)
        # Nobody was seen for longer than a control is remembered.
        await asyncio.sleep(LIVE_FOR_MS / 1000 + 1)
        again = await connected(nodes, con)
        assert not await nodes.applied(7, 0.2)
        # It does not come back, and is not waited for any more.
        async with asyncio.timeout(30):
            while not await nodes.applied(7, 0.2):
                await asyncio.sleep(0.2)
        await end(again)

"""Two controls on one PostgreSQL: an endpoint is delivered to by one, and goes to the other when that stands still."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest

from fairlead import _core
from fairlead.moment import now_ms
from fairlead.net.egress import Egress
from fairlead.records.webhook_endpoints import Endpoint, insert_endpoint, new_endpoint
from fairlead.store.database import Database
from fairlead.store.outbox import Event, emit
from fairlead.store.postgresql.engine import PostgresqlEngine
from fairlead.store.postgresql.leases import Leases
from fairlead.store.sealer import Sealer
from fairlead.store.state import State
from fairlead.webhooks.history import Page, attempts_of, list_deliveries
from fairlead.webhooks.worker import Worker
from tests.support.listener import Listener

pytestmark = pytest.mark.anyio

LENGTH_MS = 1500


class Node:
    """A control, as far as deliveries are concerned. Changes of the other are found by looking."""

    def __init__(self, url: str, name: str) -> None:
        self.leases = Leases(url, name, LENGTH_MS)
        self.state = State(Database(PostgresqlEngine(url, name)), Sealer(bytes(32)))
        self.egress = Egress("127.0.0.0/8")
        self.worker = Worker(self.state, self.egress, leases=self.leases)
        self.renewing = asyncio.create_task(self.leases.run())
        self.delivering: asyncio.Task[None] | None = None
        self.had: set[str] = set()

    async def connected(self) -> None:
        async with asyncio.timeout(10):
            while self.leases._raw is None:
                await asyncio.sleep(0.01)

    def start(self) -> None:
        self.delivering = asyncio.create_task(self.worker.run())

    async def pause(self) -> None:
        """It renews nothing, and notices nothing."""
        self.renewing.cancel()
        await asyncio.gather(self.renewing, return_exceptions=True)

    async def close(self) -> None:
        for task in (self.delivering, self.renewing):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        self.egress.close()
        await self.state.database.close()

    async def add(self, url: str) -> Endpoint:
        endpoint = new_endpoint("gateway", url, ["*"], now_ms())
        secret = _core.new_webhook_secret()
        await self.state.record(
            lambda con: insert_endpoint(con, self.state.sealer, endpoint, secret)
        )
        return endpoint

    async def raise_events(self, count: int) -> int:
        events = [
            Event("key.created", {"id": str(n), "name": "laptop"}, now_ms()) for n in range(count)
        ]
        return await self.state.record(lambda con: emit(con, *events))

    def wake(self) -> None:
        """As the message of another control's write does."""
        self.had |= set(self.worker._leases.by_endpoint if self.worker._leases else ())
        self.state.note_change()

    async def attempts(self, endpoint: Endpoint) -> dict[str, list[str | None]]:
        """The errors of each delivery's attempts, and its state last."""
        found, _ = await self.state.read(
            lambda con: list_deliveries(con, endpoint.id, None, Page(1000))
        )
        tried = await self.state.read(lambda con: attempts_of(con, [each.id for each in found]))
        return {
            each.message_id: [*(one.error for one in tried.get(each.id, [])), each.state]
            for each in found
        }


@pytest.fixture
async def nodes(database_url: str) -> AsyncIterator[list[Node]]:
    async with AsyncExitStack() as stack:
        made = [Node(database_url, name) for name in ("one", "two")]
        for node in made:
            stack.push_async_callback(node.close)
            await node.connected()
        yield made


async def until(is_so: Callable[[], bool], nodes: list[Node], within_s: float = 20.0) -> None:
    async with asyncio.timeout(within_s):
        while not is_so():
            for node in nodes:
                if node.delivering is not None and not node.renewing.done():
                    assert not node.delivering.done(), node.delivering
                node.wake()
            await asyncio.sleep(0.05)


async def test_both_deliver_each_delivery_once(nodes: list[Node], listener: Listener) -> None:
    one, two = nodes
    endpoints = [await one.add(f"{listener.url}/ok") for _ in range(80)]
    sent = await one.raise_events(4)
    assert sent == 320
    for node in nodes:
        node.start()
    await until(lambda: listener.count() >= sent, nodes)
    await until(lambda: not any(node.worker._taken for node in nodes), nodes)
    assert listener.count() == sent
    for endpoint in endpoints:
        assert list((await two.attempts(endpoint)).values()) == [[None, "delivered"]] * 4
    assert all(node.had for node in nodes), "both had endpoints"
    assert not one.had & two.had


async def test_a_control_that_stood_still_stores_nothing_for_what_another_has_delivered(
    nodes: list[Node], listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.webhooks.attempt.DEADLINE_S", 4.0)
    one, two = nodes
    listener.answer("stall")
    endpoint = await one.add(f"{listener.url}/switch")
    assert await one.raise_events(3) == 3
    one.start()
    await until(lambda: listener.count() == 3, [one])
    await one.pause()
    listener.answer("204")
    two.start()
    await until(lambda: listener.count() == 6, [two], within_s=LENGTH_MS / 1000 + 10)
    await until(lambda: not two.worker._taken, [two])
    # The attempts of the first come to their deadline.
    await until(lambda: not (one.worker._in_flight or one.worker._taken), [])
    assert list((await two.attempts(endpoint)).values()) == [[None, "delivered"]] * 3
    by_id = Counter(each.message_id for each in listener.received("/switch"))
    assert set(by_id.values()) == {2}, "each came again under its id"


async def test_an_endpoint_goes_to_another_when_a_control_stops_in_good_order(
    nodes: list[Node], listener: Listener
) -> None:
    one, two = nodes
    await one.add(f"{listener.url}/ok")
    for node in nodes:
        node.start()
    assert await one.raise_events(1) == 1
    await until(lambda: listener.count() == 1, [one])
    assert one.delivering is not None
    one.delivering.cancel()
    await asyncio.gather(one.delivering, return_exceptions=True)
    assert not one.leases.lease_counts()
    assert await two.raise_events(1) == 1
    await until(lambda: listener.count() == 2, [two], within_s=LENGTH_MS / 1000)

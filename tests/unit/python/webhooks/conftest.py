from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from fairlead import _core
from fairlead.moment import now_ms
from fairlead.net.egress import Egress
from fairlead.records.webhook_endpoints import (
    Endpoint,
    endpoints_by_id,
    insert_endpoint,
    new_endpoint,
)
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.store.state import State
from fairlead.webhooks.history import Attempt, Delivery, Page, attempts_of, list_deliveries
from fairlead.webhooks.worker import Worker

LOOPBACK = "127.0.0.0/8"
# In the middle of what it is drawn from.
NO_JITTER = 1.0


class Engine:
    """A worker on a clock that stands still until it is moved."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.at_ms = now_ms()
        self.secret = _core.new_webhook_secret()
        self.egress = Egress(LOOPBACK)
        self.worker = Worker(
            state, self.egress, clock=lambda: self.at_ms, spread=lambda low, high: (low + high) / 2
        )
        self.task = asyncio.create_task(self.worker.run())

    async def pass_time(self, seconds: float) -> None:
        """Moves the clock, and tells the worker that something may be due."""
        self.at_ms += round(seconds * 1000)
        await self.state.record(lambda con: con.execute("SELECT 1").fetchall())

    async def add(self, url: str, *events: str, **columns: object) -> Endpoint:
        endpoint = new_endpoint("gateway", url, events or ("*",), self.at_ms, **columns)
        await self.state.record(
            lambda con: insert_endpoint(con, self.state.sealer, endpoint, self.secret)
        )
        return endpoint

    async def raise_events(self, count: int = 1) -> int:
        events = [
            Event("key.created", {"id": str(n), "name": "laptop"}, self.at_ms) for n in range(count)
        ]
        return await self.state.record(lambda con: emit(con, *events))

    async def deliveries(self, endpoint: Endpoint, limit: int = 1000) -> list[Delivery]:
        found, _ = await self.state.read(
            lambda con: list_deliveries(con, endpoint.id, None, Page(limit))
        )
        return found

    async def attempts(self, delivery_id: str) -> list[Attempt]:
        found = await self.state.read(lambda con: attempts_of(con, [delivery_id]))
        return found.get(delivery_id, [])

    async def endpoint(self, endpoint: Endpoint) -> Endpoint:
        def look(con: Connection) -> Endpoint:
            return endpoints_by_id(con, [endpoint.id])[endpoint.id]

        return await self.state.read(look)

    async def until(self, endpoint: Endpoint, **columns: object) -> Delivery:
        """The newest delivery, once it has these columns."""
        deadline = asyncio.get_running_loop().time() + 10
        while True:
            found = await self.deliveries(endpoint, 1)
            if found and all(getattr(found[0], name) == value for name, value in columns.items()):
                return found[0]
            assert asyncio.get_running_loop().time() < deadline, (columns, found)
            await asyncio.sleep(0.01)


@pytest.fixture
async def engine(state: State) -> AsyncIterator[Engine]:
    engine = Engine(state)
    yield engine
    assert not engine.task.done(), engine.task
    engine.task.cancel()
    await asyncio.wait([engine.task], timeout=5)
    engine.egress.close()

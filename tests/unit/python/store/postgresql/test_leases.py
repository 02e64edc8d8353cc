"""Leases of work over a real PostgreSQL: one node at a time, and nothing is written by who has lost one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fairlead.settings import ControlConfig
from fairlead.store.connection import Connection
from fairlead.store.database import Database
from fairlead.store.postgresql.engine import PostgresqlEngine
from fairlead.store.postgresql.leases import Leases
from fairlead.store.runner import Runner
from fairlead.store.sealer import Sealer
from fairlead.store.services import Services
from fairlead.store.state import State
from fairlead.store.work_leases import LeaseLost, check_lease, working_under
from tests.support.databases import open_fresh_database

pytestmark = pytest.mark.anyio

LENGTH_MS = 1500


@dataclass(frozen=True)
class Item:
    id: str
    owner: str


class Items(Runner[Item]):
    """Works on rows of `meta`: `item:OWNER:NUMBER` is waiting, or names who has done it, each time."""

    kind = "item"
    at_once = 4

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.begun: list[str] = []
        self.lost: list[str] = []
        self.goes_on = asyncio.Event()

    async def active(self) -> list[Item]:
        def read(con: Connection) -> list[Item]:
            rows = con.execute(
                "SELECT name FROM meta WHERE name LIKE 'item:%' AND value = '' ORDER BY name"
            ).fetchall()
            return [Item(name, name.split(":")[1]) for (name,) in rows]

        return await self.services.state.read(read)

    def owner_of(self, item: Item) -> str:
        return item.owner

    async def sweep(self) -> None:
        return

    async def give_up(self, item: Item, reason: str) -> None:
        raise AssertionError(f"{item.id}: {reason}")

    async def process(self, item: Item) -> None:
        self.begun.append(item.id)
        await self.goes_on.wait()
        await self.end(item)

    async def end(self, item: Item) -> None:
        holder = self.services.process
        try:
            await self.services.state.record(
                lambda con: con.execute(
                    "UPDATE meta SET value = value || ? || ' ' WHERE name = ?", [holder, item.id]
                ).fetchall()
            )
        except LeaseLost:
            self.lost.append(item.id)


class OnlyLeases:
    """The other controls, as far as runners need them."""

    def __init__(self, leases: Leases) -> None:
        self.leases = leases

    async def applied(self, version: int, deadline_s: float) -> bool:
        raise AssertionError(version, deadline_s)

    async def alone(self, name: str, run: Any) -> Any:
        raise AssertionError(name, run)


class Node:
    def __init__(self, folder: Path, url: str, name: str) -> None:
        folder.mkdir()
        config = ControlConfig(
            data_dir=folder, link_token="t" * 32, control_socket=folder / "s", database_url=url
        )
        self.leases = Leases(url, name, LENGTH_MS)
        self.services = Services(
            config=config,
            data_dir=folder,
            state=State(Database(PostgresqlEngine(url, name)), Sealer(bytes(32))),
            usage=open_fresh_database(folder, "usage"),
            peers=OnlyLeases(self.leases),
            process=name,
        )
        self.runner = Items(self.services)
        self.renewing = asyncio.create_task(self.leases.run())
        self.running: asyncio.Task[None] | None = None

    async def connected(self) -> None:
        async with asyncio.timeout(10):
            while self.leases._raw is None:
                assert not self.renewing.done()
                await asyncio.sleep(0.01)

    def start(self) -> None:
        self.running = asyncio.create_task(self.runner.run())

    async def close(self) -> None:
        for task in (self.running, self.renewing):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self.services.usage.close()
        await self.services.state.database.close()


@pytest.fixture
async def nodes(tmp_path: Path, database_url: str) -> AsyncIterator[list[Node]]:
    async with AsyncExitStack() as stack:
        made = [Node(tmp_path / name, database_url, name) for name in ("one", "two")]
        for node in made:
            stack.push_async_callback(node.close)
            await node.connected()
        yield made


async def store(node: Node, *items: str) -> None:
    def insert(con: Connection) -> None:
        for item in items:
            con.execute("INSERT INTO meta (name, value) VALUES (?, '')", [f"item:{item}"])

    await node.services.state.record(insert)


async def done(node: Node) -> dict[str, str]:
    """Who has ended each item, as often as that happened."""

    def read(con: Connection) -> dict[str, str]:
        rows = con.execute("SELECT name, value FROM meta WHERE name LIKE 'item:%'").fetchall()
        return {name: value.strip() for name, value in rows}

    return await node.services.state.read(read)


async def until(is_so: Callable[[], bool], within_s: float = 20.0) -> None:
    async with asyncio.timeout(within_s):
        while not is_so():
            await asyncio.sleep(0.02)


async def test_an_item_is_taken_by_one_however_many_ask(nodes: list[Node]) -> None:
    one, two = nodes
    ids = [f"i{number}" for number in range(40)]
    answers = await asyncio.gather(
        *(node.leases.take("race", ids[at : at + 20]) for at in range(0, 40, 5) for node in nodes)
    )
    holders: dict[str, set[str]] = {}
    for at, answer in enumerate(answers):
        for item_id in answer:
            holders.setdefault(item_id, set()).add(nodes[at % 2].leases.holder)
    assert set(holders) == set(ids)
    assert all(len(each) == 1 for each in holders.values())
    mine = {each for each, who in holders.items() if who == {"one"}}
    assert await two.leases.held_elsewhere("race") == mine
    # What is renewed is kept beyond its length.
    await asyncio.sleep(LENGTH_MS / 1000 * 1.5)
    assert await two.leases.held_elsewhere("race") == mine
    await one.leases.release([lease for answer in answers for lease in answer.values()])
    assert await two.leases.held_elsewhere("race") == set()


async def test_two_nodes_work_on_items_together_each_once_and_newcomers_find_room(
    nodes: list[Node],
) -> None:
    one, two = nodes
    await store(one, *(f"many:{number:03}" for number in range(30)))
    for node in nodes:
        node.start()
    # Half of each node's slots: who has many items does not get all.
    await until(lambda: [len(node.runner.begun) for node in nodes] == [2, 2])
    await store(two, "few:000")
    for node in nodes:
        node.runner.wake()
    await until(lambda: "item:few:000" in one.runner.begun + two.runner.begun)
    for node in nodes:
        node.runner.goes_on.set()

    async def all_done() -> bool:
        return all((await done(one)).values())

    async with asyncio.timeout(30):
        while not await all_done():
            await asyncio.sleep(0.05)
    ended = await done(one)
    assert len(ended) == 31
    assert set(ended.values()) == {"one", "two"}
    assert len(one.runner.begun) + len(two.runner.begun) == 31


async def test_a_node_that_stood_still_does_not_write_when_it_comes_back(
    nodes: list[Node],
) -> None:
    one, two = nodes
    await store(one, "a:0")
    one.start()
    await until(lambda: one.runner.begun == ["item:a:0"])
    lease = one.runner._leases["item:a:0"]
    # As if it was paused: it renews nothing, and notices nothing.
    one.renewing.cancel()
    await asyncio.gather(one.renewing, return_exceptions=True)
    two.start()
    two.runner.goes_on.set()
    await until(lambda: two.runner.begun == ["item:a:0"], within_s=LENGTH_MS / 1000 + 10)

    async def is_done() -> bool:
        return (await done(two))["item:a:0"] == "two"

    async with asyncio.timeout(10):
        while not await is_done():
            await asyncio.sleep(0.02)
    with working_under(lease):
        await one.runner.end(Item("item:a:0", "a"))
    assert one.runner.lost == ["item:a:0"]
    assert await done(two) == {"item:a:0": "two"}
    # Nor does it write to a file.
    with working_under(lease), pytest.raises(LeaseLost):
        check_lease()


async def test_work_is_stopped_when_its_lease_cannot_be_renewed(
    nodes: list[Node], database_url: str
) -> None:
    one, two = nodes
    await store(one, "a:0")
    one.start()
    await until(lambda: one.runner.begun == ["item:a:0"])
    task = one.runner._tasks["item:a:0"]
    await one.services.state.database.write(
        lambda con: con.execute("UPDATE work_leases SET holder = 'x', token = 'y'").fetchall()
    )
    await until(task.cancelled, within_s=10)
    # It lives, so the start does not count against the item.
    await until(lambda: not one.runner._survived)
    starts = await two.services.state.read(
        lambda con: con.execute("SELECT starts FROM work_starts").fetchall()
    )
    assert starts in ([(0,)], [(1,)])


async def test_what_is_ended_elsewhere_is_stopped(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.store.runner.GONE_FOR_S", 0.2)
    one, two = nodes
    await store(one, "a:0")
    one.start()
    await until(lambda: one.runner.begun == ["item:a:0"])
    task = one.runner._tasks["item:a:0"]
    await two.services.state.record(
        lambda con: con.execute("UPDATE meta SET value = 'cancelled' WHERE name LIKE 'item:%'")
    )

    def is_stopped() -> bool:
        one.runner.wake()
        return task.cancelled()

    await until(is_stopped)
    assert await done(two) == {"item:a:0": "cancelled"}
    await until(lambda: not one.leases.lease_counts())

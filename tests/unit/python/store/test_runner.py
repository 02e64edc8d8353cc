"""The loop that takes up what rows say has not ended."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from fairlead.store.runner import Runner

pytestmark = pytest.mark.anyio

# Of a test that hangs, not of one that waits.
PATIENCE_S = 10.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass(frozen=True)
class Row:
    id: str


class Rows(Runner[Row]):
    kind = "row"
    at_once = 2

    def __init__(self, services: Any) -> None:
        super().__init__(services)
        self.rows = [Row("a"), Row("b"), Row("c")]
        self.told: list[str] = []
        self.heard = asyncio.Condition()
        self.goes_on = {row.id: asyncio.Event() for row in self.rows}
        self.refused = ""

    async def _tell(self, what: str) -> None:
        async with self.heard:
            self.told.append(what)
            self.heard.notify_all()

    async def active(self) -> list[Row]:
        return self.rows

    async def sweep(self) -> None:
        await self._tell("swept")

    def has_room(self, item: Row) -> bool:
        return item.id != self.refused

    async def work(self, item: Row) -> None:
        await self._tell(f"{item.id} begins")
        await self.goes_on[item.id].wait()
        self.rows.remove(item)

    def ended(self, item: Row) -> None:
        self.told.append(f"{item.id} ended")

    async def until(self, what: str) -> None:
        async with asyncio.timeout(PATIENCE_S), self.heard:
            await self.heard.wait_for(lambda: what in self.told)


async def test_so_many_are_worked_on_at_once_and_an_end_makes_room() -> None:
    rows = Rows(None)
    running = asyncio.create_task(rows.run())
    await rows.until("b begins")
    assert rows.told == ["swept", "a begins", "b begins"]
    rows.goes_on["b"].set()
    await rows.until("c begins")
    assert rows.told[3:] == ["b ended", "c begins"]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(0)
    assert set(rows.told[5:]) == {"a ended", "c ended"}


async def test_what_has_no_room_waits_behind_nobody_and_what_is_stopped_is_dropped() -> None:
    rows = Rows(None)
    rows.refused = "a"
    running = asyncio.create_task(rows.run())
    await rows.until("c begins")
    assert rows.told == ["swept", "b begins", "c begins"]
    rows.refused = ""
    rows.rows.remove(Row("b"))
    rows.stop("b")
    await rows.until("a begins")
    assert rows.told[3:] == ["b ended", "a begins"]
    rows.goes_on["a"].set()
    rows.goes_on["c"].set()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_database_that_does_not_answer_ends_it_for_whoever_starts_it_again() -> None:
    class Silent(Rows):
        async def sweep(self) -> None:
            raise OSError

    with pytest.raises(OSError):
        await Silent(None).run()

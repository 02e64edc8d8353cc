"""The loop that takes up what rows say has not ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead.store.runner import GIVEN_UP, Runner
from fairlead.store.work_starts import (
    TOTAL_MAX,
    count_starts,
    keep_starts,
    take_back_starts,
)
from tests.support.databases import open_fresh_database

pytestmark = pytest.mark.anyio

# Of a test that hangs, not of one that waits.
PATIENCE_S = 10.0


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
        self.starts: dict[str, int] = {}
        self.kept: list[tuple[list[str], list[str]]] = []
        self.is_taken_back = False

    async def _tell(self, what: str) -> None:
        async with self.heard:
            self.told.append(what)
            self.heard.notify_all()

    async def active(self) -> list[Row]:
        return self.rows

    async def sweep(self) -> None:
        await self._tell("swept")

    async def count_starts(self, steps: Mapping[str, int]) -> dict[str, int]:
        return {each: self.starts.get(each, 0) + 1 for each in steps}

    async def keep_starts(self, active_ids: list[str], proven_ids: list[str]) -> None:
        self.kept.append((active_ids, proven_ids))

    async def take_back_starts(self) -> None:
        self.is_taken_back = True

    async def give_up(self, item: Row, reason: str) -> None:
        self.rows.remove(item)
        await self._tell(f"{item.id} given up: {reason}")

    def has_capacity(self, item: Row) -> bool:
        return item.id != self.refused

    async def process(self, item: Row) -> None:
        await self._tell(f"{item.id} begins")
        await self.goes_on[item.id].wait()
        self.rows.remove(item)

    def ended(self, item: Row) -> None:
        self.told.append(f"{item.id} ended")

    async def until(self, what: str) -> None:
        async with asyncio.timeout(PATIENCE_S), self.heard:
            await self.heard.wait_for(lambda: what in self.told)


async def test_so_many_are_worked_on_at_once_and_an_end_makes_room() -> None:
    rows = Rows(SimpleNamespace(leases=None))
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
    rows = Rows(SimpleNamespace(leases=None))
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
        await Silent(SimpleNamespace(leases=None)).run()


async def test_what_two_processes_did_not_survive_is_given_up_and_the_others_go_on() -> None:
    rows = Rows(SimpleNamespace(leases=None))
    rows.starts = {"a": 2, "b": 1}
    running = asyncio.create_task(rows.run())
    await rows.until("c begins")
    assert rows.told == [
        "swept",
        f"a given up: {GIVEN_UP}",
        "a ended",
        "b begins",
        "c begins",
    ]
    assert rows.kept == [(["a", "b", "c"], [])]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert rows.is_taken_back


async def test_starts_are_counted_by_process_and_taken_back_by_one_that_ends_in_good_order(
    tmp_path: Path,
) -> None:
    database = open_fresh_database(tmp_path, "state")

    async def begin(process: str, *ids: str) -> dict[str, int]:
        return await database.write(
            lambda con: count_starts(con, "row", dict.fromkeys(ids, 0), process)
        )

    try:
        assert await begin("one", "a", "b") == {"a": 1, "b": 1}
        assert await begin("one", "a") == {"a": 1}, "it was interrupted, not killed"
        await database.write(lambda con: count_starts(con, "other", {"a": 0}, "one"))
        assert await begin("two", "a", "c") == {"a": 2, "c": 1}
        await database.write(lambda con: take_back_starts(con, "row", "two"))
        assert await begin("three", "a", "b", "c") == {"a": 2, "b": 2, "c": 1}
        await database.write(lambda con: keep_starts(con, "row", ["a", "c"], ["c"]))
        assert await begin("four", "a", "b", "c") == {"a": 3, "b": 1, "c": 1}
        assert await database.write(lambda con: count_starts(con, "other", {"a": 0}, "two")) == {
            "a": 2
        }
    finally:
        await database.close()


async def test_work_that_came_further_between_two_ends_begins_its_count_again_up_to_a_bound(
    tmp_path: Path,
) -> None:
    database = open_fresh_database(tmp_path, "state")

    async def begin(process: int, steps: int) -> int:
        counts = await database.write(
            lambda con: count_starts(con, "row", {"a": steps}, f"process {process}")
        )
        return counts["a"]

    try:
        assert [await begin(1, 0), await begin(2, 0)] == [1, 2]
        assert [await begin(3, 5), await begin(4, 5)] == [1, 2]
        further = [await begin(process, process + 1) for process in range(5, TOTAL_MAX + 3)]
        assert further == [1] * (TOTAL_MAX - 4) + [2, 3], "it came further each time"
    finally:
        await database.close()

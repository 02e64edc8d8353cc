"""Segments that go along with the next round, each stored once whatever becomes of that round."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.errors import StorageUnavailable
from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.usage.ingestion.record import parse_lines
from fairlead.usage.ingestion.segment_store import Batch, SegmentStore

pytestmark = pytest.mark.anyio


@pytest.fixture
def batch(lines: Callable[..., bytes]) -> Callable[[str], Batch]:
    def make(name: str) -> Batch:
        data = lines(f"r-{name}")
        return Batch(name, data, parse_lines(data).rows)

    return make


@pytest.fixture
def store(usage: Database, tmp_path: Path) -> SegmentStore:
    return SegmentStore(usage, tmp_path)


@pytest.fixture
def rounds(store: SegmentStore, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of the segments of each round."""
    seen: list[list[str]] = []
    insert = store._insert

    def note_round(batches: list[Batch], con: Connection) -> None:
        seen.append([each.name for each in batches])
        insert(batches, con)

    monkeypatch.setattr(store, "_insert", note_round)
    return seen


async def stored(usage: Database) -> list[str]:
    def look(con: Connection) -> list[Any]:
        return con.execute("SELECT request_id FROM requests ORDER BY request_id").fetchall()

    return [row[0] for row in await usage.read(look)]


async def waits(store: SegmentStore) -> None:
    """Until a segment waits for a round."""
    while store._waiting is None:
        await asyncio.sleep(0)


async def test_segments_in_no_hurry_go_along_with_the_next_round(
    store: SegmentStore, usage: Database, batch: Any, rounds: list[list[str]]
) -> None:
    await store.take_in([batch("a")])
    along = asyncio.create_task(store.take_in_with_next([batch("x"), batch("y")]))
    await waits(store)
    assert [each.name for each in await store.take_in([batch("b")])] == ["b"]
    await along
    assert rounds == [["a"], ["b", "x", "y"]]
    assert await stored(usage) == ["r-a", "r-b", "r-x", "r-y"]


async def test_without_a_round_lately_none_is_waited_for(
    store: SegmentStore, usage: Database, batch: Any, rounds: list[list[str]]
) -> None:
    await store.take_in_with_next([batch("x")])
    assert rounds == [["x"]]
    assert await stored(usage) == ["r-x"]


async def test_without_a_next_round_they_are_stored_by_themselves(
    store: SegmentStore, usage: Database, batch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.take_in([batch("a")])
    monkeypatch.setattr("fairlead.usage.ingestion.segment_store.NEXT_ROUND_WITHIN_S", 0.01)
    store._round_s += 60
    await store.take_in_with_next([batch("x")])
    assert await stored(usage) == ["r-a", "r-x"]


async def test_a_round_that_fails_takes_nobody_along(
    store: SegmentStore, usage: Database, batch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.take_in([batch("a")])
    along = asyncio.create_task(store.take_in_with_next([batch("x")]))
    await waits(store)
    with monkeypatch.context() as patch:

        async def fail(*_: object, **__: object) -> None:
            raise StorageUnavailable("The database does not answer.", retry_after_s=5)

        patch.setattr(usage, "write", fail)
        with pytest.raises(StorageUnavailable):
            await store.take_in([batch("b")])
    await along
    assert await stored(usage) == ["r-a", "r-x"]


async def test_who_no_longer_waits_is_not_taken_along(
    store: SegmentStore, usage: Database, batch: Any
) -> None:
    await store.take_in([batch("a")])
    along = asyncio.create_task(store.take_in_with_next([batch("x")]))
    await waits(store)
    along.cancel()
    await asyncio.gather(along, return_exceptions=True)
    await store.take_in([batch("b")])
    assert await stored(usage) == ["r-a", "r-b"]

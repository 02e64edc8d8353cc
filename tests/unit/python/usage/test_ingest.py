"""Each settled request is counted exactly once, whatever dies in between."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairlead.errors import StorageUnavailable
from fairlead.store import segment
from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.store.prepare import MIGRATIONS
from fairlead.usage.budgets.spent import Question, sum_spent
from fairlead.usage.ingestion import ingest as module
from fairlead.usage.ingestion import rejected, segment_store
from fairlead.usage.ingestion.ingest import ROUND_EVERY_S, Ingest
from fairlead.usage.ingestion.segment_store import SegmentStore
from fairlead.usage.sums.facts import Selection, add_up, sums_of
from fairlead.usage.sums.rollup import SUM_MAX, merge_rollups
from fairlead.usage.sums.span import Span

pytestmark = pytest.mark.anyio


async def counted(usage: Database) -> list[str]:
    def look(con: Connection) -> list[str]:
        rows = con.execute("SELECT request_id FROM requests ORDER BY request_id").fetchall()
        return [row[0] for row in rows]

    return await usage.read(look)


def files(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


async def test_sealed_segments_are_moved_in(usage: Database, spool: Path, lines: Any) -> None:
    (spool / "w-00000001.ndjson").write_bytes(lines("r2", "r3"))
    (spool / "w-00000000.ndjson").write_bytes(lines("r1"))
    (spool / "w-00000002.ndjson").write_bytes(b"")

    assert await Ingest(SegmentStore(usage, spool), spool).ingest() == 3

    assert await counted(usage) == ["r1", "r2", "r3"]
    assert files(spool) == []


async def test_every_field_arrives(usage: Database, spool: Path, record: Any, lines: Any) -> None:
    (spool / "w-0.ndjson").write_bytes(lines("r1", ttft_ms=1.25, session_tag="ä\n"))
    await Ingest(SegmentStore(usage, spool), spool).ingest()

    def look(con: Connection) -> Any:
        result = con.execute("SELECT * FROM requests")
        names = [column[0] for column in result.description or ()]
        return dict(zip(names, result.fetchone() or (), strict=True))

    assert await usage.read(look) == record("r1", ttft_ms=1.25, session_tag="ä\n")


async def test_without_a_spool_there_is_nothing_to_do(usage: Database, tmp_path: Path) -> None:
    assert await Ingest(SegmentStore(usage, tmp_path / "none"), tmp_path / "none").ingest() == 0


async def test_killed_after_the_commit_it_only_deletes(
    usage: Database, spool: Path, lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (spool / "w-0.ndjson").write_bytes(lines("r1"))
    with monkeypatch.context() as patch:
        patch.setattr(module, "_delete", lambda _: None)
        await Ingest(SegmentStore(usage, spool), spool).ingest()
    (spool / "w-1.ndjson").write_bytes(lines("r2"))
    assert files(spool) == ["w-0.ndjson", "w-1.ndjson"]

    await Ingest(SegmentStore(usage, spool), spool).ingest()

    assert await counted(usage) == ["r1", "r2"]
    assert files(spool) == []


async def test_killed_before_the_commit_nothing_is_lost(
    usage: Database, spool: Path, lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (spool / "w-0.ndjson").write_bytes(lines("r1"))

    def fail(_store: SegmentStore, _batches: Any, _con: Connection) -> None:
        raise StorageUnavailable("killed")

    with monkeypatch.context() as patch:
        patch.setattr(SegmentStore, "_insert", fail)
        with pytest.raises(StorageUnavailable):
            await Ingest(SegmentStore(usage, spool), spool).ingest()
    assert files(spool) == ["w-0.ndjson"]

    await Ingest(SegmentStore(usage, spool), spool).ingest()
    assert await counted(usage) == ["r1"]


async def test_the_name_outlives_the_process(
    usage: Database, spool: Path, lines: Any, tmp_path: Path
) -> None:
    (spool / "w-0.ndjson").write_bytes(lines("r1"))
    await Ingest(SegmentStore(usage, spool), spool).ingest()
    await usage.close()
    (spool / "w-0.ndjson").write_bytes(lines("r1"))

    reopened = Database.open(tmp_path / "usage.duckdb", MIGRATIONS / "usage")
    try:
        await Ingest(SegmentStore(reopened, spool), spool).ingest()
        assert await counted(reopened) == ["r1"]
        assert files(spool) == []
    finally:
        await reopened.close()


async def test_an_open_segment_is_its_writers_until_that_is_gone(
    usage: Database, spool: Path, lines: Any
) -> None:
    path = spool / "w-0.open"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    os.write(handle, lines("r1"))
    ingest = Ingest(SegmentStore(usage, spool), spool)
    assert await ingest.ingest() == 0

    os.write(handle, lines("r2") + b'{"request_id": "r3", "ts_')
    os.close(handle)

    assert await ingest.ingest() == 1
    assert await counted(usage) == ["r1", "r2"]
    assert files(spool) == []


async def test_adopted_or_sealed_it_is_the_same_segment(
    usage: Database, spool: Path, lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (spool / "w-0.open").write_bytes(lines("r1"))
    with monkeypatch.context() as patch:
        patch.setattr(module, "_delete", lambda _: None)
        await Ingest(SegmentStore(usage, spool), spool).ingest()
    (spool / "w-0.open").rename(spool / "w-0.ndjson")

    await Ingest(SegmentStore(usage, spool), spool).ingest()

    assert await counted(usage) == ["r1"]


async def test_a_segment_that_is_sealed_while_it_is_adopted_is_left_for_the_next_round(
    usage: Database, spool: Path, lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = spool / "w-0.open"
    path.write_bytes(lines("r1"))
    flock = fcntl.flock

    def seal_first(handle: int, operation: int) -> None:
        path.rename(spool / "w-0.ndjson")
        flock(handle, operation)

    with monkeypatch.context() as patch:
        patch.setattr(segment.fcntl, "flock", seal_first)
        assert await Ingest(SegmentStore(usage, spool), spool).ingest() == 0

    assert await Ingest(SegmentStore(usage, spool), spool).ingest() == 1
    assert await counted(usage) == ["r1"]


async def test_bad_lines_are_set_aside_and_hold_nothing_up(
    usage: Database, spool: Path, lines: Any
) -> None:
    (spool / "w-0.ndjson").write_bytes(b"nonsense\n" + lines("r1") + b'{"request_id": 1}\n')
    (spool / "w-1.ndjson").write_bytes(lines("r2"))

    await Ingest(SegmentStore(usage, spool), spool).ingest()

    assert await counted(usage) == ["r1", "r2"]
    assert files(spool) == ["rejected"]
    aside = spool / "rejected" / "w-0"
    assert aside.read_bytes() == b'nonsense\n{"request_id": 1}\n'
    assert aside.stat().st_mode & 0o777 == 0o600


async def test_what_is_set_aside_is_bounded(
    usage: Database, spool: Path, lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejected, "REJECTED_BYTES_MAX", 10)
    for name in ("w-0", "w-1"):
        (spool / f"{name}.ndjson").write_bytes(b"nonsense and more\n" + lines(name))

    await Ingest(SegmentStore(usage, spool), spool).ingest()

    assert files(spool / "rejected") == ["w-0"]
    assert await counted(usage) == ["w-0", "w-1"]


async def test_a_round_is_bounded_and_the_next_goes_on(
    usage: Database, spool: Path, lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment, "ROUND_SEGMENTS", 2)
    for n in range(5):
        (spool / f"w-{n}.ndjson").write_bytes(lines(f"r{n}"))
    ingest = Ingest(SegmentStore(usage, spool), spool)

    assert [await ingest.ingest() for _ in range(4)] == [2, 2, 1, 0]
    assert len(await counted(usage)) == 5

    monkeypatch.setattr(segment, "ROUND_BYTES", 1)
    for n in range(2):
        (spool / f"v-{n}.ndjson").write_bytes(lines(f"v{n}"))
    assert await ingest.ingest() == 1


async def test_names_are_forgotten_when_their_files_are_long_gone(
    usage: Database, spool: Path, lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (spool / "w-0.ndjson").write_bytes(lines("r1"))
    monkeypatch.setattr(segment_store, "NAMES_KEPT_MS", -1)
    monkeypatch.setattr(module, "FORGET_EVERY_S", 0.0)

    async def names_left() -> int:
        return await usage.read(
            lambda con: len(con.execute("SELECT name FROM segments").fetchall())
        )

    running = asyncio.create_task(Ingest(SegmentStore(usage, spool), spool).run())
    try:
        deadline = time.monotonic() + 5
        while await counted(usage) != ["r1"] or await names_left() > 0:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_what_is_sealed_is_counted_within_a_second(
    usage: Database, spool: Path, lines: Any
) -> None:
    running = asyncio.create_task(Ingest(SegmentStore(usage, spool), spool).run())
    try:
        for n in range(3):
            # As a worker does it: written under another name, then renamed.
            (spool / f"w-{n}.new").write_bytes(lines(f"r{n}"))
            (spool / f"w-{n}.new").rename(spool / f"w-{n}.ndjson")
            sealed_at = time.monotonic()
            while f"r{n}" not in await counted(usage):
                assert (
                    time.monotonic() - sealed_at < ROUND_EVERY_S + 1.5
                )  # slack for a busy machine
                await asyncio.sleep(0.01)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_segments_that_follow_each_other_are_counted_together_unless_somebody_waits(
    usage: Database, spool: Path, lines: Any
) -> None:
    ingest = Ingest(SegmentStore(usage, spool), spool)

    async def rounds(prefix: str) -> int:
        """In how many rounds four segments go in that are sealed one after the other."""
        for number in range(4):
            name = f"{prefix}{number}"
            (spool / f"{name}.new").write_bytes(lines(name))
            (spool / f"{name}.new").rename(spool / f"{name}.ndjson")
            # Time itself is what is tested.
            await asyncio.sleep(0.15)
        async with asyncio.timeout(10):
            while any(spool.glob("*.ndjson")):
                await asyncio.sleep(0.02)
        found = await usage.read(
            lambda con: con.execute(
                "SELECT count(DISTINCT ingested_at_ms) FROM segments WHERE starts_with(name, ?)",
                [prefix],
            ).fetchone()
        )
        return int(found[0]) if found else 0

    running = asyncio.create_task(ingest.run())
    assert await rounds("a") <= 2
    assert not ingest.wanted.is_set()
    began_s = time.monotonic()
    (spool / "b.new").write_bytes(lines("b"))
    (spool / "b.new").rename(spool / "b.ndjson")
    ingest.wanted.set()
    async with asyncio.timeout(10):
        while (spool / "b.ndjson").exists():
            ingest.wanted.set()
            await asyncio.sleep(0.02)
    assert time.monotonic() - began_s < ROUND_EVERY_S / 2
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_what_cannot_be_told_is_told_in_the_next_round(
    usage: Database, spool: Path, record: Any
) -> None:
    """The rows count once, however often it takes until listeners are told of them."""
    told: list[list[str]] = []

    async def announce(batches: Sequence[pl.DataFrame]) -> None:
        told.append([each for batch in batches for each in batch["request_id"]])
        if len(told) == 1:
            raise StorageUnavailable("not now")

    (spool / "w-00000001.ndjson").write_text(json.dumps(record("r1")) + "\n")
    ingest = Ingest(SegmentStore(usage, spool), spool, announce)
    with pytest.raises(StorageUnavailable):
        await ingest.ingest()
    assert [each.name for each in spool.glob("*.ndjson")] == ["w-00000001.ndjson"]
    assert await ingest.ingest() == 1
    assert told == [["r1"], ["r1"]]
    assert not list(spool.glob("*.ndjson"))
    count = await usage.read(lambda con: con.execute("SELECT count(*) FROM requests").fetchone())
    assert count == (1,)


async def totals(usage: Database) -> list[int]:
    """What the minutes, hours and days say that was spent."""

    def look(con: Connection) -> list[int]:
        rows = [
            con.execute(f"SELECT sum(cost_usd_micros) FROM rollup_{level}").fetchone()
            for level in ("minute", "hour", "day")
        ]
        return [int(row[0]) for row in rows if row]

    return await usage.read(look)


async def test_absurd_sums_stay_at_their_bounds_and_hold_nothing_up(
    usage: Database, spool: Path, lines: Any
) -> None:
    absurd = 9_000_000_000_000_000_000
    (spool / "w-0.ndjson").write_bytes(
        lines("a1", "a2", cost_usd_micros=absurd, tokens_input=absurd, latency_ms=9e15)
    )
    (spool / "w-1.ndjson").write_bytes(lines("r1"))
    ingest = Ingest(SegmentStore(usage, spool), spool)

    assert await ingest.ingest() == 2
    (spool / "w-2.ndjson").write_bytes(lines("a3", cost_usd_micros=absurd))
    assert await ingest.ingest() == 1

    assert await counted(usage) == ["a1", "a2", "a3", "r1"]
    assert files(spool) == []
    assert await merge_rollups(usage, 1_800_000_000_000 + 10 * 86_400_000) > 0
    assert await totals(usage) == [SUM_MAX] * 3
    question = Question(key_id="k", unit="tokens", from_ms=0)
    assert await usage.read(lambda con: sum_spent(con, [question], {})) == [SUM_MAX + 20]
    by_key = Selection({"model": "model", "key_id": "key_id"})
    rows = await usage.read(lambda con: sums_of(con, Span(0, 2_000_000_000_000), by_key))
    assert add_up(pl.concat([rows] * 20), []).row(0, named=True)["cost_usd_micros"] == SUM_MAX


async def test_a_segment_that_the_engine_refuses_is_set_aside_alone(
    usage: Database, spool: Path, lines: Any
) -> None:
    for n in range(5):
        # No number of microseconds is so large.
        bad = {"latency_ms": 1e300} if n == 2 else {}
        (spool / f"w-{n}.ndjson").write_bytes(lines(f"r{n}", f"s{n}", **bad))
    told: list[str] = []

    async def announce(batches: Sequence[pl.DataFrame]) -> None:
        told.extend(each for rows in batches for each in rows["request_id"].to_list())

    ingest = Ingest(SegmentStore(usage, spool), spool, announce)
    assert await ingest.ingest() == 5
    assert await ingest.ingest() == 0

    rest = ["r0", "r1", "r3", "r4", "s0", "s1", "s3", "s4"]
    assert await counted(usage) == rest
    assert sorted(told) == rest
    assert files(spool) == ["rejected"]
    assert files(spool / "rejected") == ["w-2.ndjson", "w-2.reason"]
    assert "can't be cast" in (spool / "rejected" / "w-2.reason").read_text()

    # Put right by an operator, it is taken in as any other.
    (spool / "rejected" / "w-2.ndjson").rename(spool / "w-2.ndjson")
    (spool / "w-2.ndjson").write_bytes(lines("r2", "s2"))
    assert await ingest.ingest() == 1
    assert len(await counted(usage)) == 10


async def test_a_record_that_cannot_be_announced_holds_nothing_up(
    usage: Database, spool: Path, lines: Any
) -> None:
    for n in range(4):
        (spool / f"w-{n}.ndjson").write_bytes(lines(f"r{n}"))
    told: list[str] = []

    async def announce(batches: Sequence[pl.DataFrame]) -> None:
        ids = [each for rows in batches for each in rows["request_id"].to_list()]
        if "r1" in ids:
            raise ValueError("a record that nobody can tell of")
        told.extend(ids)

    assert await Ingest(SegmentStore(usage, spool), spool, announce).ingest() == 4

    assert sorted(told) == ["r0", "r2", "r3"]
    assert len(await counted(usage)) == 4
    assert files(spool) == []

"""Rollups say what the records say: whatever comes late, twice or in pieces, merged or not, over any
span.
"""

from __future__ import annotations

import asyncio
import json
import random
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.usage.ingestion import ingest as module
from fairlead.usage.ingestion.ingest import Ingest
from fairlead.usage.ingestion.retention import delete_before
from fairlead.usage.ingestion.segment_store import SegmentStore
from fairlead.usage.sums.facts import LATENCIES, Selection, bins_of, sums_of
from fairlead.usage.sums.rollup import (
    BUCKET_MS,
    DIMENSIONS,
    MAXES,
    ROLLUPS,
    SUMS,
    delete_rollups_before,
    forget_dimensions,
    measures,
    merge_rollups,
)
from fairlead.usage.sums.span import Span, cut
from tests.support.databases import open_fresh_database, open_fresh_file
from tests.support.rollups import assert_levels_agree

HOUR = 3_600_000
DAY = 24 * HOUR
START = 1_800_000_000_000 - 1_800_000_000_000 % DAY
# Each record has a row of sums and two of histograms, on three levels.
ROWS = 9

moments = st.integers(START, START + 3 * DAY)
records = st.fixed_dictionaries(
    {
        "ts_ms": moments,
        "key_id": st.sampled_from([None, "k1", "k2"]),
        "provider": st.sampled_from([None, "lab", "other"]),
        "model": st.sampled_from([None, "lab/m", "lab/n"]),
        "outcome": st.sampled_from(["completed", "upstream_failed", "refused", "shed"]),
        "latency_ms": st.sampled_from([0.0, 0.001, 12.345, 60_000.5]),
        "ttft_ms": st.sampled_from([None, 0.5]),
        "tokens_cached": st.integers(0, 3),
        "tokens_cache_write": st.integers(0, 3),
        "cache": st.sampled_from([None, "hit", "miss"]),
        "stream": st.booleans(),
    }
)
rounds = st.lists(
    st.tuples(
        st.lists(st.lists(records, max_size=5), min_size=1, max_size=3),
        st.booleans(),  # the files stay, as if control had died after the commit
        st.one_of(st.none(), moments),  # merged at this time
    ),
    min_size=1,
    max_size=4,
)
spans = st.lists(st.tuples(moments, moments), min_size=1, max_size=3)


def assert_span_agrees(con: Connection, span: Span) -> None:
    """A span's sums are those of its records."""
    where = "WHERE ts_ms >= ? AND ts_ms < ? GROUP BY ALL ORDER BY ALL"
    expected = con.execute(
        f"SELECT key_id, {measures()} FROM request_facts {where}", [span.from_ms, span.until_ms]
    ).fetchall()
    got = sums_of(con, span, Selection({"key_id": "key_id"})).rows()
    assert sorted(got, key=str) == sorted(expected, key=str)
    for wanted in (LATENCIES, ("cache_write",)):
        expected = con.execute(
            "SELECT bin, count(*), sum(value) FROM request_values WHERE list_contains(?, measure) "
            "AND ts_ms >= ? AND ts_ms < ? GROUP BY ALL",
            [list(wanted), span.from_ms, span.until_ms],
        ).fetchall()
        assert sorted(bins_of(con, span, Selection(), wanted).rows()) == sorted(expected)


async def arrive(folder: Path, make: Any, plan: Any, asked: Any) -> None:
    usage = open_fresh_database(folder, "usage")
    spool = folder / "spool"
    spool.mkdir()
    number = 0
    try:
        for segments, files_stay, merged_at_ms in plan:
            for rows in segments:
                number += 1
                lines = [make(f"{number}-{at}", **row) for at, row in enumerate(rows)]
                data = "".join(json.dumps(line) + "\n" for line in lines)
                (spool / f"w-{number:08}.ndjson").write_text(data)
            with pytest.MonkeyPatch.context() as patch:
                if files_stay:
                    patch.setattr(module, "_delete", lambda _: None)
                await Ingest(SegmentStore(usage, spool), spool).ingest()
            if merged_at_ms is not None:
                await merge_rollups(usage, merged_at_ms)
        await usage.read(assert_levels_agree)
        for first, last in asked:
            span = Span(min(first, last), max(first, last))
            await usage.read(lambda con, span=span: assert_span_agrees(con, span))
    finally:
        await usage.close()


@pytest.mark.parametrize(
    "examples", [8, pytest.param(120, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_rollups_equal_the_records(record: Any, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, derandomize=examples < 10)
    @given(plan=rounds, asked=spans)
    def check(plan: Any, asked: Any) -> None:
        with TemporaryDirectory() as folder:
            asyncio.run(arrive(Path(folder), record, plan, asked))

    check()


@pytest.mark.anyio
async def test_merging_leaves_one_row_for_each_group(
    usage: Database, spool: Path, lines: Any
) -> None:
    for number in range(5):
        (spool / f"w-{number}.ndjson").write_bytes(lines(f"r{number}", ts_ms=START + number))
        await Ingest(SegmentStore(usage, spool), spool).ingest()

    assert await merge_rollups(usage, START + 60_000) == 0, "nothing is closed yet"
    assert await merge_rollups(usage, START + 2 * DAY) == ROWS * 4
    assert await merge_rollups(usage, START + 2 * DAY) == 0
    await usage.read(assert_levels_agree)

    (spool / "w-9.ndjson").write_bytes(lines("late", ts_ms=START))
    await Ingest(SegmentStore(usage, spool), spool).ingest()
    await usage.read(assert_levels_agree)
    assert await merge_rollups(usage, START + 2 * DAY) == ROWS
    await usage.read(assert_levels_agree)


@pytest.mark.anyio
async def test_what_finer_levels_have_lost_the_coarser_ones_still_tell(
    usage: Database, spool: Path, lines: Any
) -> None:
    data = b"".join(lines(f"r{hour}", ts_ms=START + hour * HOUR + 5) for hour in range(72))
    (spool / "w-0.ndjson").write_bytes(data)
    await Ingest(SegmentStore(usage, spool), spool).ingest()
    await delete_before(usage, START + 60 * HOUR)
    await delete_rollups_before(usage, "minute", START + 50 * HOUR + 17)
    await delete_rollups_before(usage, "hour", START + 30 * HOUR)
    await forget_dimensions(usage)

    async def requests(first: int, last: int) -> int:
        rows = await usage.read(
            lambda con: sums_of(con, Span(START + first, START + last), Selection())
        )
        return int(rows["requests"].sum())

    assert await requests(0, 72 * HOUR) == 72
    assert await requests(61 * HOUR + 6, 62 * HOUR + 6) == 1, "to the millisecond"
    assert await requests(51 * HOUR + 6, 52 * HOUR) == 1, "whole minutes"
    assert await requests(40 * HOUR + 6, 41 * HOUR) == 1, "whole hours"
    assert await requests(6, HOUR) == 24, "whole days"


def test_a_span_is_cut_into_whole_buckets_without_gap_or_overlap() -> None:
    dice = random.Random(5)
    kept = {"requests": 0, "minute": 0, "hour": 0, "day": 0}
    for _ in range(500):
        first = START + dice.randrange(3 * DAY)
        span = Span(first, first + dice.choice([1, 59_999, 60_000, HOUR, DAY, 3 * DAY + 1]))
        parts = cut(span, kept)  # type: ignore[arg-type]
        assert parts[0].from_ms == span.from_ms
        assert parts[-1].until_ms == span.until_ms
        for part, following in pairwise(parts):
            assert part.until_ms == following.from_ms
        for part in parts:
            assert (
                part.from_ms % BUCKET_MS[part.level] == part.until_ms % BUCKET_MS[part.level] == 0
            )
        assert len(parts) <= 7


def test_columns_are_those_of_the_tables(tmp_path: Path) -> None:
    connection = open_fresh_file(tmp_path, "usage")
    try:
        for level in ROLLUPS:
            columns = [row[0] for row in connection.execute(f"DESCRIBE rollup_{level}").fetchall()]
            # Rows are inserted by name: a column that was added later is the last of its table.
            assert columns[:3] == ["bucket_ms", "dimension_id", "is_delta"]
            assert sorted(columns[3:]) == sorted([*SUMS, *MAXES])
        columns = [row[0] for row in connection.execute("DESCRIBE dimensions").fetchall()]
        assert columns == ["id", *DIMENSIONS]
    finally:
        connection.close()

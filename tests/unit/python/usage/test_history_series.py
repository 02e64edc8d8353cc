"""The largest groups over time come with the page of all groups, and are those of a statement of their own."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from fairlead.moment import now_ms
from fairlead.store.database import Database
from fairlead.usage.ingestion.ingest import Ingest
from fairlead.usage.ingestion.segment_store import SegmentStore
from fairlead.usage.sums.closed_bins import BinsReader, ClosedBins
from fairlead.usage.sums.history import HistoryQuery, read_history
from fairlead.usage.sums.history_series import HistoryWithSeries, SeriesQuery, read_with_series
from fairlead.usage.sums.rollup import delete_rollups_before
from fairlead.usage.sums.span import Span

pytestmark = pytest.mark.anyio

HOUR = 3_600_000
DAY = 24 * HOUR
START = 1_800_000_000_000 - 1_800_000_000_000 % DAY  # midnight, 15 January 2027
THREE_DAYS = Span(START, START + 3 * DAY)
_numbers = itertools.count()


async def fill(
    usage: Database, spool: Path, segment: bytes, closed: ClosedBins | None = None
) -> None:
    # A segment of a name that was read before is left out.
    (spool / f"w-{next(_numbers)}.ndjson").write_bytes(segment)
    await Ingest(SegmentStore(usage, spool, closed), spool).ingest()


async def read(
    usage: Database, query: HistoryQuery, series: SeriesQuery, closed: ClosedBins | None = None
) -> HistoryWithSeries:
    reader = BinsReader.over(closed or ClosedBins())
    return await usage.read(lambda con: read_with_series(con, query, series, reader))


def models(lines: Any, day: int, **many: int) -> bytes:
    return b"".join(
        lines(
            *(f"{model}{day}{n}" for n in range(count)),
            model=model,
            upstream_model=None,
            ts_ms=START + day * DAY + HOUR,
            cost_usd_micros={"a": 1, "b": 100, "c": 10, "d": 0, "e": 0}[model],
        )
        for model, count in many.items()
    )


async def test_the_largest_stand_alone_bucket_by_bucket(
    usage: Database, spool: Path, lines: Any
) -> None:
    await fill(usage, spool, models(lines, 0, a=3, b=2, c=1) + models(lines, 2, a=1, b=1, d=2))
    query = HistoryQuery(THREE_DAYS, ["model"], order="cost", has_totals=True)

    page, (buckets, groups) = await read(usage, query, SeriesQuery("day", 2))

    assert buckets == [START, START + DAY, START + 2 * DAY]
    assert [(group.names, group.is_other) for group in groups] == [
        ({"model": "b"}, False),
        ({"model": "c"}, False),
        ({}, True),
    ]
    assert [group.sums["requests"] for group in groups] == [[2, 0, 1], [1, 0, 0], [3, 0, 3]]
    assert [group.sums["cost_usd_micros"] for group in groups] == [
        [200, 0, 100],
        [10, 0, 0],
        [3, 0, 1],
    ]
    assert page == await usage.read(lambda con: read_history(con, query))


async def test_groups_that_cost_the_same_are_in_the_order_of_their_requests(
    usage: Database, spool: Path, lines: Any
) -> None:
    await fill(usage, spool, models(lines, 0, d=1, e=3))
    query = HistoryQuery(THREE_DAYS, ["model"], order="cost")

    (rows, *_), (_, groups) = await read(usage, query, SeriesQuery("day", 1))

    assert [row["model"] for row in rows] == ["e", "d"]
    assert [(group.names, group.is_other) for group in groups] == [
        ({"model": "e"}, False),
        ({}, True),
    ]


async def test_without_groups_there_is_one_series_and_of_nothing_none(
    usage: Database, spool: Path, lines: Any
) -> None:
    query = HistoryQuery(THREE_DAYS, [], has_totals=True)
    page, series = await read(usage, query, SeriesQuery("day", 7))
    assert (page, series.groups) == (([], 0, None), [])

    await fill(usage, spool, models(lines, 0, a=3, b=2) + models(lines, 1, b=1))

    (rows, *_), (_, groups) = await read(usage, query, SeriesQuery("day", 7))
    assert [row["requests"] for row in rows] == [6]
    assert [(group.is_other, group.sums["requests"]) for group in groups] == [(False, [5, 1, 0])]


async def test_a_page_has_all_of_its_time_where_short_buckets_are_gone(
    usage: Database, spool: Path, lines: Any
) -> None:
    await fill(usage, spool, models(lines, 0, a=3) + models(lines, 2, a=1))
    await delete_rollups_before(usage, "minute", START + 2 * DAY)
    await delete_rollups_before(usage, "hour", START + 2 * DAY)
    await usage.write(lambda con: con.execute("DELETE FROM requests").fetchall())
    await usage.write(
        lambda con: con.execute(
            "UPDATE kept SET from_ms = ? WHERE level = 'requests'", [START + 2 * DAY]
        ).fetchall()
    )
    query = HistoryQuery(THREE_DAYS, ["model"])

    (rows, *_), (_, groups) = await read(usage, query, SeriesQuery("hour", 7))

    assert [row["requests"] for row in rows] == [4]
    assert [sum(group.sums["requests"]) for group in groups] == [1]


async def test_an_answer_is_kept_until_a_record_arrives_in_its_time(
    usage: Database, spool: Path, lines: Any
) -> None:
    today = now_ms() - now_ms() % DAY
    closed = ClosedBins()
    query = HistoryQuery(Span(today - DAY, now_ms() + 1, is_open=True), ["provider"])

    async def answers() -> tuple[Any, Any]:
        def both(con: Any) -> tuple[Any, Any]:
            reader = BinsReader.over(closed)
            with_series = read_with_series(con, query, SeriesQuery("day", 7), reader)
            return read_history(con, query, reader), with_series

        return await usage.read(both)

    await fill(usage, spool, lines("a", ts_ms=today - HOUR), closed)
    first = await answers()
    await fill(usage, spool, lines("long ago", ts_ms=START - 5000 * DAY), closed)
    page, with_series = await answers()
    assert page is first[0]
    assert with_series is first[1]
    await fill(usage, spool, lines("b", ts_ms=today + 1), closed)
    page, with_series = await answers()
    assert page.rows[0]["requests"] == with_series.page.rows[0]["requests"] == 2
    assert with_series.series.groups[0].sums["requests"] == [1, 1]


async def test_what_single_records_answer_is_read_every_time(
    usage: Database, spool: Path, lines: Any
) -> None:
    closed = ClosedBins()
    query = HistoryQuery(Span(START + 1, START + 2000), ["provider"])

    async def requests() -> list[int]:
        reader = BinsReader.over(closed)
        page = await usage.read(lambda con: read_history(con, query, reader))
        return [row["requests"] for row in page.rows]

    await fill(usage, spool, lines("a", "b", ts_ms=START + 5), closed)
    assert await requests() == [2]
    # Retention deletes records without a word to anybody.
    await usage.write(lambda con: con.execute("DELETE FROM requests").fetchall())
    assert await requests() == []


async def test_quarters_of_an_hour_are_added_up_from_minutes(
    usage: Database, spool: Path, lines: Any
) -> None:
    minute = HOUR // 60
    await fill(
        usage,
        spool,
        b"".join(
            lines(f"r{at}", ts_ms=START + at * minute, outcome=outcome)
            for at, outcome in ((0, "completed"), (14, "refused"), (15, "completed"), (59, "shed"))
        ),
    )
    query = HistoryQuery(Span(START, START + HOUR), ["provider"])

    _, (buckets, groups) = await read(usage, query, SeriesQuery("quarter", 2))

    assert buckets == [START + at * 15 * minute for at in range(4)]
    (group,) = groups
    assert group.sums["requests"] == [2, 1, 0, 1]
    assert group.sums["errors"] == [1, 0, 0, 1]

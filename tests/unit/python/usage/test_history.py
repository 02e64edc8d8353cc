"""Sums are exact, percentiles right to one per cent, groups as asked for."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairlead.moment import now_ms
from fairlead.records.key_uses import forget_other_uses, read_last_uses
from fairlead.store.database import Database
from fairlead.usage.ingestion.ingest import Ingest
from fairlead.usage.ingestion.segment_store import SegmentStore
from fairlead.usage.sums import closed_bins
from fairlead.usage.sums.closed_bins import ROWS_OF_ONE, BinsReader, ClosedBins
from fairlead.usage.sums.facts import TooManyGroups, parts_of
from fairlead.usage.sums.history import (
    HistoryFilter,
    HistoryPage,
    HistoryQuery,
    page_of,
    read_history,
    source_of,
)
from fairlead.usage.sums.span import Part, Span

pytestmark = pytest.mark.anyio

HOUR = 3_600_000
DAY = 24 * HOUR
START = 1_800_000_000_000 - 1_800_000_000_000 % DAY  # midnight, 15 January 2027
ALL = Span(0, START + 1000 * DAY)


async def fill(usage: Database, spool: Path, segment: bytes) -> None:
    (spool / "w-0.ndjson").write_bytes(segment)
    await Ingest(SegmentStore(usage, spool), spool).ingest()


async def test_groups_and_sums(usage: Database, spool: Path, lines: Any) -> None:
    await fill(
        usage,
        spool,
        lines("a", "b", ts_ms=START)
        + lines("c", ts_ms=START + HOUR, outcome="upstream_failed", status=502, no_log=True)
        + lines("d", ts_ms=START + DAY, provider="other", upstream_model=None, key_id=None),
    )

    rows, total, _ = await usage.read(
        lambda con: read_history(con, HistoryQuery(ALL, ["day", "provider", "model", "key"]))
    )

    assert total == 2
    assert [(row["bucket_ms"], row["provider"], row["model"], row["key_id"]) for row in rows] == [
        (START + DAY, "other", "lab/m", None),
        (START, "lab", "m", "k"),
    ]
    first_day = rows[1]
    assert (first_day["requests"], first_day["errors"]) == (3, 1)
    assert first_day["tokens_input"] == 30
    assert first_day["tokens_cache_write"] == 3
    assert first_day["cost_usd_micros"] == 9
    assert first_day["avg_latency_ms"] == pytest.approx(12.5)
    by_hour, *_ = await usage.read(lambda con: read_history(con, HistoryQuery(ALL, ["hour"])))
    assert [(row["bucket_ms"] - START, row["requests"]) for row in by_hour] == [
        (DAY, 1),
        (HOUR, 1),
        (0, 2),
    ]


@pytest.mark.parametrize(
    ("dimension", "bucket"), [("hour", START + HOUR), ("day", START), ("month", START - 14 * DAY)]
)
async def test_buckets_begin_where_the_calendar_does(
    usage: Database, spool: Path, lines: Any, dimension: Any, bucket: int
) -> None:
    await fill(usage, spool, lines("a", ts_ms=START + HOUR + 17))

    rows, *_ = await usage.read(lambda con: read_history(con, HistoryQuery(ALL, [dimension])))

    assert [row["bucket_ms"] for row in rows] == [bucket]


async def test_the_span_includes_its_start_and_not_its_end(
    usage: Database, spool: Path, lines: Any
) -> None:
    await fill(usage, spool, lines("a", ts_ms=START) + lines("b", ts_ms=START + 10))

    async def requests(span: Span) -> int:
        rows, *_ = await usage.read(lambda con: read_history(con, HistoryQuery(span, ["endpoint"])))
        return sum(row["requests"] for row in rows)

    assert await requests(Span(START, START + 10)) == 1
    assert await requests(Span(START, START + 11)) == 2
    assert await requests(Span(START + 1, START + 10)) == 0


async def test_pages_cover_everything_once(usage: Database, spool: Path, lines: Any) -> None:
    def of_model(n: int) -> bytes:
        ids = [f"{n}-{i}" for i in range(n % 3 + 1)]
        return lines(*ids, model=f"m{n}", upstream_model=None)

    await fill(usage, spool, b"".join(map(of_model, range(7))))

    seen = []
    for offset in range(0, 9, 2):
        rows, total, _ = await usage.read(
            lambda con, offset=offset: read_history(
                con, HistoryQuery(ALL, ["model"], limit=2, offset=offset)
            )
        )
        assert total == 7
        seen += rows
    assert sorted(row["model"] for row in seen) == [f"m{n}" for n in range(7)]
    assert [row["requests"] for row in seen] == sorted((n % 3 + 1 for n in range(7)), reverse=True)


async def test_percentiles_are_right_to_one_per_cent(
    usage: Database, spool: Path, record: Any
) -> None:
    dice = random.Random(3)
    latencies = [dice.lognormvariate(5, 1.5) for _ in range(5000)]
    rows_in = [record(str(n), latency_ms=latency) for n, latency in enumerate(latencies)]
    await fill(usage, spool, pl.DataFrame(rows_in).write_ndjson().encode())

    rows, *_ = await usage.read(lambda con: read_history(con, HistoryQuery(ALL, ["provider"])))

    exact = sorted(latencies)
    for share in (50, 95, 99):
        expected = exact[len(exact) * share // 100]
        assert rows[0][f"p{share}_latency_ms"] == pytest.approx(expected, rel=0.015)
    assert rows[0]["avg_latency_ms"] == pytest.approx(sum(latencies) / len(latencies))


async def test_one_request_is_its_own_percentile_even_at_zero(
    usage: Database, spool: Path, lines: Any
) -> None:
    await fill(usage, spool, lines("a", latency_ms=0.0) + lines("b", latency_ms=80.0, provider="b"))

    rows, *_ = await usage.read(lambda con: read_history(con, HistoryQuery(ALL, ["provider"])))

    found = {row["provider"]: row for row in rows}
    for share in (50, 95, 99):
        assert found["lab"][f"p{share}_latency_ms"] < 0.002
        assert found["b"][f"p{share}_latency_ms"] == pytest.approx(80, rel=0.011)


async def test_nothing_yet(usage: Database) -> None:
    assert await usage.read(lambda con: read_history(con, HistoryQuery(ALL, ["day", "model"]))) == (
        [],
        0,
        None,
    )


async def test_what_a_session_cost_is_told_for_as_long_as_its_requests_are_kept(
    usage: Database, spool: Path, lines: Any
) -> None:
    await fill(
        usage,
        spool,
        lines("a", ts_ms=START, session_tag="talk", cost_usd_micros=3)
        + lines("b", ts_ms=START + 9 * DAY, session_tag="talk", cost_usd_micros=4, status=502)
        + lines("c", ts_ms=START + DAY, session_id="sticky", cost_usd_micros=5)
        + lines("d", ts_ms=START + DAY, session_tag="talk", no_log=True)
        + lines("e", ts_ms=START),
    )

    async def rows(groups: list[Any], **filters: Any) -> list[dict[str, Any]]:
        query = HistoryQuery(ALL, groups, HistoryFilter(**filters))
        found, total, _ = await usage.read(lambda con: read_history(con, query))
        assert total == len(found)
        return found

    sessions = {row["session"]: row for row in await rows(["session"])}
    costs = {name: row["cost_usd_micros"] for name, row in sessions.items()}
    assert costs == {"talk": 7, "sticky": 5, None: 3}
    assert sessions["talk"]["requests"] == 2, "a key that asks for no log has no sessions here"
    assert sessions["talk"]["p50_latency_ms"] == pytest.approx(12.5, rel=0.01)
    by_day = await rows(["day", "session"], session_tag="talk")
    assert [row["cost_usd_micros"] for row in by_day] == [4, 3]
    assert [row["cost_usd_micros"] for row in await rows(["key"], request_id="c")] == [5]
    assert [row["requests"] for row in await rows([], status=502)] == [1]
    assert {row["status"]: row["requests"] for row in await rows(["status"])} == {200: 3, 502: 1}


async def test_failures_are_counted_by_reason(usage: Database, spool: Path, lines: Any) -> None:
    failed = {"outcome": "upstream_failed", "status": 502}
    await fill(
        usage,
        spool,
        lines("a", ts_ms=START, error_kind="upstream_status", **failed)
        + lines("b", ts_ms=START + DAY, error_kind="upstream_status", **failed)
        + lines("c", ts_ms=START, error_kind="rate_limited", outcome="refused")
        + lines("d", ts_ms=START, error_kind="rate_limited", outcome="refused", no_log=True)
        + lines("e", ts_ms=START),
    )

    async def errors(groups: list[Any], **filters: Any) -> dict[Any, int]:
        query = HistoryQuery(ALL, groups, HistoryFilter(**filters))
        found, _, _ = await usage.read(lambda con: read_history(con, query))
        return {(row["error_kind"], row.get("provider")): row["errors"] for row in found}

    assert await errors(["reason"]) == {
        ("upstream_status", None): 2,
        ("rate_limited", None): 1,
        (None, None): 0,
    }
    assert await errors(["reason", "provider"], error_kind="upstream_status") == {
        ("upstream_status", "lab"): 2
    }


async def test_the_last_use_of_a_key_outlives_its_requests(
    usage: Database, spool: Path, lines: Any
) -> None:
    first = lines("a", ts_ms=START + 5) + lines("b", ts_ms=START, key_id="other")
    await fill(usage, spool, first + lines("c", ts_ms=START + 9, key_id=None))
    await fill(usage, spool, lines("d", ts_ms=START + 3, no_log=True))
    await usage.write(lambda con: con.execute("DELETE FROM requests").fetchall())
    assert await read_last_uses(usage, ["k", "other", "never"]) == {"k": START + 5, "other": START}
    await usage.write(lambda con: forget_other_uses(con, ["other"]))
    assert await read_last_uses(usage, ["k", "other"]) == {"other": START}


async def test_the_largest_groups_stand_alone_and_the_others_are_one(
    usage: Database, spool: Path, lines: Any
) -> None:
    await fill(
        usage,
        spool,
        b"".join(
            lines(
                *(f"{model}{day}{n}" for n in range(many)),
                model=model,
                upstream_model=None,
                ts_ms=START + day * DAY,
                cost_usd_micros=cost,
            )
            for model, many, cost in (("a", 3, 1), ("b", 2, 100), ("c", 1, 10), ("d", 1, 1))
            for day in (0, 1)
        )
        + lines("late", model="d", upstream_model=None, ts_ms=START + 2 * DAY, cost_usd_micros=1),
    )

    async def told(order: Any, top: int | None) -> list[tuple[Any, ...]]:
        query = HistoryQuery(ALL, ["day", "model"], order=order, top=top, has_totals=True)
        rows, total, totals = await usage.read(lambda con: read_history(con, query))
        assert total == len(rows)
        assert totals is not None
        assert (totals["requests"], totals["cost_usd_micros"]) == (15, 429)
        return [
            (
                (row["bucket_ms"] - START) // DAY,
                row["model"],
                bool(row.get("is_other")),
                row["requests"],
            )
            for row in rows
        ]

    assert await told("cost", 2) == [
        (2, None, True, 1),
        (1, "b", False, 2),
        (1, "c", False, 1),
        (1, None, True, 4),
        (0, "b", False, 2),
        (0, "c", False, 1),
        (0, None, True, 4),
    ]
    assert (await told("requests", 1))[1:3] == [(1, "a", False, 3), (1, None, True, 4)]
    assert not any(other for _, _, other, _ in await told("tokens", 9))
    assert [model for day, model, _, _ in await told("cost", None) if day == 1] == [
        "b",
        "c",
        "a",
        "d",
    ]


async def test_percentiles_and_totals_are_told_where_they_are_asked_for(
    usage: Database, spool: Path, lines: Any
) -> None:
    await fill(
        usage,
        spool,
        lines("a", "b", "c", latency_ms=10.0) + lines("d", latency_ms=500.0, provider="other"),
    )

    def page(**wanted: Any) -> Any:
        query = HistoryQuery(ALL, ["provider"], **wanted)
        return usage.read(lambda con: read_history(con, query))

    rows, _, totals = await page()
    assert totals is None
    assert rows[0]["p50_latency_ms"] == pytest.approx(10, rel=0.011)
    rows, _, totals = await page(has_percentiles=False, has_totals=True)
    assert [row["p50_latency_ms"] for row in rows] == [None, None]
    assert (totals["requests"], totals["p99_latency_ms"]) == (4, None)
    for limit in (1, 50):
        _, _, totals = await page(has_totals=True, limit=limit)
        assert totals["p50_latency_ms"] == pytest.approx(10, rel=0.011)
        assert totals["p99_latency_ms"] == pytest.approx(500, rel=0.011)


async def test_a_span_that_ends_now_is_answered_by_whole_buckets(
    usage: Database, spool: Path, lines: Any
) -> None:
    now = now_ms()
    await fill(
        usage, spool, lines("a", ts_ms=now - HOUR) + lines("b", ts_ms=now - 10, chosen_ms=0.25)
    )
    whole = Span(now - now % DAY - DAY, now, is_open=True)

    with_groups = HistoryQuery(whole, ["provider"])
    rows, *_ = await usage.read(lambda con: read_history(con, with_groups))
    assert rows[0]["requests"] == 2
    parts = await usage.read(lambda con: parts_of(con, whole, "day"))
    assert {part.level for part in parts} == {"day"}
    recent = HistoryQuery(Span(now - 60_000, now, is_open=True), [])
    rows, total, _ = await usage.read(lambda con: read_history(con, recent))
    assert (total, rows[0]["requests"]) == (1, 1)
    assert rows[0]["p50_latency_ms"] == pytest.approx(rows[0]["avg_latency_ms"], abs=0.001)
    assert rows[0]["p99_chosen_ms"] == 0.25
    of_provider_ms = rows[0]["p99_latency_ms"] - 0.25
    assert rows[0]["p99_provider_ms"] == pytest.approx(of_provider_ms, abs=0.001)
    quiet = HistoryQuery(Span(now - 2, now, is_open=True), [])
    assert await usage.read(lambda con: read_history(con, quiet)) == ([], 0, None)


async def test_histograms_of_closed_buckets_are_kept_until_a_late_record_arrives(
    usage: Database, spool: Path, lines: Any
) -> None:
    now = now_ms()
    yesterday = now - now % DAY - DAY
    closed = ClosedBins()
    query = HistoryQuery(Span(yesterday - DAY, now, is_open=True), ["provider"])

    async def median() -> float:
        reader = BinsReader.over(closed)
        rows, *_ = await usage.read(lambda con: read_history(con, query, reader))
        return float(rows[0]["p50_latency_ms"])

    await fill(usage, spool, lines("a", ts_ms=yesterday, latency_ms=10.0))
    assert await median() == pytest.approx(10, rel=0.011)
    late = lines("b", "c", ts_ms=yesterday + HOUR, latency_ms=900.0)
    (spool / "w-1.ndjson").write_bytes(late)
    await Ingest(SegmentStore(usage, spool), spool).ingest()
    assert await median() == pytest.approx(10, rel=0.011), "nobody said that something came"
    closed.forget(now, now + 1)
    assert await median() == pytest.approx(10, rel=0.011), "what came is of another time"
    closed.forget(yesterday + HOUR, yesterday + HOUR + 1)
    assert await median() == pytest.approx(900, rel=0.011)


async def test_sums_of_closed_buckets_are_kept_and_are_those_that_are_read(
    usage: Database, spool: Path, lines: Any
) -> None:
    now = now_ms()
    today = now - now % DAY
    closed = ClosedBins()
    whole = HistoryQuery(
        Span(today - 2 * DAY, now, is_open=True), ["day", "provider"], has_percentiles=False
    )
    of_all = replace(whole, group_by=[])

    async def told(query: HistoryQuery, kept: ClosedBins) -> list[dict[str, Any]]:
        reader = BinsReader.over(kept)
        rows, *_ = await usage.read(lambda con: read_history(con, query, reader))
        return rows

    await fill(usage, spool, lines("a", "b", ts_ms=today - DAY) + lines("c", ts_ms=today))
    for query in (whole, of_all):
        first = await told(query, closed)
        assert sum(row["requests"] for row in first) == 3
        assert await told(query, closed) == first == await told(query, ClosedBins())
    (spool / "w-1.ndjson").write_bytes(lines("late", ts_ms=today - DAY + HOUR))
    await Ingest(SegmentStore(usage, spool, closed), spool).ingest()
    for query in (whole, of_all):
        found = await told(query, closed)
        assert sum(row["requests"] for row in found) == 4, "what was kept of the day is forgotten"
        assert found == await told(query, ClosedBins())


async def test_a_segment_that_is_stored_tells_the_kept_histograms_of_its_times(
    usage: Database, spool: Path, lines: Any
) -> None:
    closed = ClosedBins()
    store = SegmentStore(usage, spool, closed)
    (spool / "w-1.ndjson").write_bytes(lines("late", ts_ms=START))
    await Ingest(store, spool).ingest()
    assert closed.epoch == 1
    day = Part("day", START, START + DAY)
    closed.keep(("stale",), day, pl.DataFrame({"bin": [1], "requests": [1], "total": [1]}), 0)
    assert closed.find(("stale",)) is None


@pytest.mark.parametrize("order", ["requests", "errors", "tokens", "cost"])
@pytest.mark.parametrize(
    "groups", [["session"], ["session", "hour"], ["status", "model"], ["hour", "key"], ["day"]]
)
async def test_duckdb_cuts_the_same_page_of_many_groups(
    usage: Database,
    spool: Path,
    lines: Any,
    monkeypatch: pytest.MonkeyPatch,
    order: Any,
    groups: Any,
) -> None:
    chance = random.Random(7)
    await fill(
        usage,
        spool,
        b"".join(
            lines(
                f"r{at}",
                ts_ms=START + chance.randrange(3) * HOUR,
                session_tag=chance.choice(["s-a", "s-b", "s-c", None]),
                key_id=chance.choice(["k", "l", None]),
                model=chance.choice(["m", "n"]),
                status=chance.choice([200, 502]),
                outcome=chance.choice(["completed", "upstream_failed"]),
                tokens_input=chance.randrange(3),
                cost_usd_micros=chance.randrange(3),
            )
            for at in range(80)
        ),
    )
    reader = BinsReader.over(ClosedBins())
    for offset, limit, many in ((0, 3, True), (2, 500, True), (1, 2, False)):
        query = HistoryQuery(
            ALL, groups, HistoryFilter(), limit, offset, order, None, many, has_totals=True
        )
        monkeypatch.setattr(closed_bins, "GROUPS_MAX", 100_000)
        held = await usage.read(lambda con: _held_in_memory(con, query, reader))  # noqa: B023 - awaited here
        monkeypatch.setattr(closed_bins, "GROUPS_MAX", 1)
        cut = await usage.read(
            lambda con: read_history(con, query, BinsReader.over(ClosedBins()))  # noqa: B023 - awaited here
        )
        assert cut == held
        assert cut.totals is not None
        assert cut.totals["requests"] == 80


def _held_in_memory(con: Any, query: HistoryQuery, reader: BinsReader) -> HistoryPage:
    source = source_of(con, query, reader)
    return page_of(source, query, source.sums())


async def test_a_report_of_too_many_groups_says_what_to_narrow(
    usage: Database, spool: Path, lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = (lines(f"r{at}", ts_ms=START, session_tag=f"s{at}") for at in range(4_100))
    await fill(usage, spool, b"".join(many))
    monkeypatch.setattr(closed_bins, "GROUPS_MAX", 4_099)
    with pytest.raises(TooManyGroups, match="Shorten the span"):
        await usage.read(
            lambda con: read_history(con, HistoryQuery(ALL, ["session", "day"], top=3))
        )
    monkeypatch.setattr(closed_bins, "GROUPS_MAX", 4_100)
    page = await usage.read(
        lambda con: read_history(con, HistoryQuery(ALL, ["session", "day"], top=3))
    )
    assert page.total == 4


def test_what_was_read_before_a_change_is_not_kept_after_it() -> None:
    bins = pl.DataFrame({"bin": [1], "requests": [1], "total": [1]})
    closed, day = ClosedBins(), Part("day", START, START + DAY)
    early = BinsReader.over(closed)
    closed.forget(START + DAY, START + 2 * DAY)
    closed.keep(("elsewhere",), day, bins, early.epoch)
    assert closed.find(("elsewhere",)) is not None
    closed.forget(START + HOUR, START + HOUR + 1)
    assert closed.find(("elsewhere",)) is None
    closed.keep(("stale",), day, bins, early.epoch)
    assert closed.find(("stale",)) is None
    for number in range(100):
        closed.forget(START + (number + 5) * DAY, START + (number + 6) * DAY)
    closed.keep(("long ago",), day, bins, early.epoch)
    assert closed.find(("long ago",)) is None, "too much has changed to tell"


def test_no_more_rows_are_kept_than_there_is_room_for() -> None:
    closed = ClosedBins()

    def bins(rows: int) -> pl.DataFrame:
        return pl.DataFrame({"bin": [1] * rows})

    closed.keep(("huge",), Part("day", 0, DAY), bins(ROWS_OF_ONE + 1), 0)
    assert closed.find(("huge",)) is None
    for number in range(4):
        closed.keep((number,), Part("day", 0, DAY), bins(ROWS_OF_ONE), 0)
        assert closed.find((0,)) is not None or number > 2
        closed.find((0,))
    assert [closed.find((number,)) is not None for number in range(4)] == [True, False, False, True]

"""`/api/usage` from the outside."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fairlead.usage.ingestion.ingest import Ingest
from fairlead.usage.ingestion.segment_store import SegmentStore
from tests.support.management import Management, run_management

pytestmark = pytest.mark.anyio

LOGS = "/api/usage/logs"
FULL = "/api/usage/request-logs"
HISTORY = "/api/usage/history"


@pytest.fixture
async def management(tmp_path: Path) -> AsyncIterator[Management]:
    async with run_management(tmp_path / "data") as running:
        yield running


async def fill(management: Management, segment: bytes) -> None:
    spool = management.services.data_dir / "spool"
    spool.mkdir(exist_ok=True)
    # Not the name of a segment, so that the application's own task leaves it to this round.
    apart = management.services.data_dir / "apart"
    apart.mkdir(exist_ok=True)
    (apart / f"t-{time.monotonic_ns()}.ndjson").write_bytes(segment)
    await Ingest(SegmentStore(management.services.usage, apart), apart).ingest()


async def test_logs_are_newest_first_and_paged(management: Management, lines: Any) -> None:
    await fill(management, b"".join(lines(f"r{n}", ts_ms=1000 + n) for n in range(5)))

    for path in (LOGS, FULL):
        page = await management.ask("GET", path, limit=2, offset=1)
        assert [row["requestId"] for row in page["logs"]] == ["r3", "r2"]
        assert (page["total"], page["limit"], page["offset"]) == (5, 2, 1)
    for query in (
        {"limit": 0},
        {"limit": 501},
        {"offset": -1},
        {"status": 1},
        {"outcome": "so-so"},
    ):
        await management.refused("GET", LOGS, **query)


async def test_the_last_two_minutes_tell_how_long_choosing_took(
    management: Management, lines: Any
) -> None:
    now_s = time.time()
    await fill(management, lines("a", ts_ms=int(now_s * 1000) - 10, chosen_ms=0.25))
    # As a caller says it, whose question takes its time.
    from_ = datetime.fromtimestamp(now_s - 120, UTC).isoformat()
    asked = {"groupBy": "total", "from": from_, "totals": True}
    page = await management.ask("GET", HISTORY, **asked)
    assert page["history"][0]["p99ChosenMs"] == 0.25
    assert page["totals"] == page["history"][0]
    quiet = await management.ask("GET", HISTORY, **asked, limit=1, offset=1)
    assert (quiet["history"], quiet["totals"]["p99ChosenMs"]) == ([], 0.25)


async def test_pages_follow_each_other_whatever_comes(management: Management, lines: Any) -> None:
    # Three of one moment, which only their ids keep apart.
    moments = {"a": 3000, "b": 2000, "c": 2000, "d": 2000, "e": 1000}
    await fill(management, b"".join(lines(name, ts_ms=ms) for name, ms in moments.items()))
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = await management.ask("GET", LOGS, **query)
        seen += [row["requestId"] for row in page["logs"]]
        if page["next"] is None:
            break
        await fill(management, lines(f"later-{len(seen)}", ts_ms=9000))
        query["after"] = page["next"]
    assert seen == ["a", "b", "c", "d", "e"]
    for wrong in ("x", "12", "-a", "1" * 30 + "-a"):
        assert (await management.refused("GET", LOGS, after=wrong))[1] == "after"


@pytest.mark.parametrize(
    ("query", "requests"),
    [
        ({"keyId": "k2"}, 1),
        ({"model": "lab/m2"}, 1),
        ({"model": "m3"}, 1),
        ({"provider": "p2"}, 2),
        ({"connectionId": "con-2"}, 1),
        ({"combo": "fast", "endpoint": "chat"}, 1),
        ({"combo": "fast", "endpoint": "audio"}, 0),
    ],
)
async def test_history_is_filtered(
    management: Management, lines: Any, query: dict[str, Any], requests: int
) -> None:
    hour_ms = 3_600_000
    now_ms = time.time_ns() // 1_000_000 // hour_ms * hour_ms
    # In whole buckets and at their edges: rollups and single records both.
    await fill(
        management,
        lines("a", ts_ms=now_ms - 50 * hour_ms, provider="p2")
        + lines("b", ts_ms=now_ms - 50 * hour_ms, provider="p2", key_id="k2")
        + lines("c", ts_ms=now_ms - 5 * hour_ms, model="lab/m2", connection_id="con-2")
        + lines("d", ts_ms=now_ms - 1, upstream_model="m3", combo="fast"),
    )
    for group_by in ("day,provider,model", "hour", "key"):
        answer = await management.ask("GET", HISTORY, groupBy=group_by, **query)
        assert sum(row["requests"] for row in answer["history"]) == requests
        if requests:
            # The histograms are of these requests too.
            assert answer["history"][0]["p50LatencyMs"] == pytest.approx(12.5, rel=0.011)


async def test_a_row_in_short_and_in_full(management: Management, lines: Any) -> None:
    await fill(management, lines("r1", ts_ms=1_800_000_000_123, cost_usd_micros=2_500_000))

    (short,) = (await management.ask("GET", LOGS))["logs"]
    (full,) = (await management.ask("GET", FULL))["logs"]

    assert short["timestamp"] == "2027-01-15T08:00:00.123Z"
    assert (short["costUsdMicros"], short["costUsd"]) == (2_500_000, 2.5)
    assert short.items() <= full.items()
    assert full["tokensReasoning"] == 2
    assert full["path"] == "/v1/chat/completions"


async def test_what_asked_for_no_log_is_counted_and_not_listed(
    management: Management, lines: Any
) -> None:
    now_ms = time.time_ns() // 1_000_000
    await fill(management, lines("seen", ts_ms=now_ms) + lines("hidden", ts_ms=now_ms, no_log=True))

    for path in (LOGS, FULL):
        listed = await management.ask("GET", path)
        assert ([row["requestId"] for row in listed["logs"]], listed["total"]) == (["seen"], 1)
    (row,) = (await management.ask("GET", HISTORY))["history"]
    assert row["requests"] == 2


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"keyId": "k2"}, ["b"]),
        ({"model": "lab/m2"}, ["c"]),
        ({"model": "m3"}, ["d"]),
        ({"provider": "p2"}, ["b", "a"]),
        ({"provider": "p2", "keyId": "k2"}, ["b"]),
        ({"status": 502}, ["d"]),
        ({"outcome": "client_gone"}, ["c"]),
        ({"from": "3000"}, ["d", "c"]),
        ({"to": "1970-01-01T00:00:02Z"}, ["a", "e"]),
        ({"from": "1970-01-01T02:00:02+02:00", "to": "3000"}, ["b"]),
        ({"model": "' OR 1=1 --"}, []),
        ({"requestId": "c"}, ["c"]),
        ({"connectionId": "con-2"}, ["e"]),
        ({"combo": "fast"}, ["e"]),
        ({"endpoint": "embeddings"}, ["e"]),
        ({"sessionTag": "nightly"}, ["e"]),
        ({"sessionId": "s-9"}, ["e"]),
        ({"errorKind": "rate_limited"}, ["e"]),
        ({"session": "nightly"}, ["e"]),
        ({"session": "s-9"}, []),
        ({"search": "nightly"}, ["e"]),
        ({"search": "c"}, ["c"]),
        ({"search": "no such text"}, []),
        ({"orderBy": "latency", "provider": "p2"}, ["b", "a"]),
        ({"combo": "fast", "status": 502}, []),
    ],
)
async def test_filters(
    management: Management, lines: Any, query: dict[str, Any], expected: list[str]
) -> None:
    await fill(
        management,
        lines("a", ts_ms=1000, provider="p2")
        + lines("b", ts_ms=2000, provider="p2", key_id="k2")
        + lines("c", ts_ms=3000, model="lab/m2", outcome="client_gone")
        + lines("d", ts_ms=4000, upstream_model="m3", status=502)
        + lines(
            "e",
            ts_ms=500,
            key_id="k3",
            provider="p3",
            connection_id="con-2",
            combo="fast",
            endpoint="embeddings",
            session_tag="nightly",
            session_id="s-9",
            error_kind="rate_limited",
        ),
    )

    page = await management.ask("GET", LOGS, **query)

    assert [row["requestId"] for row in page["logs"]] == expected
    assert page["total"] == len(expected)


async def test_history_by_default_and_as_asked(management: Management, lines: Any) -> None:
    now_ms = time.time_ns() // 1_000_000
    month_ms = 30 * 86_400_000
    await fill(management, lines("a", ts_ms=now_ms) + lines("old", ts_ms=now_ms - month_ms))

    answer = await management.ask("GET", HISTORY)
    assert answer["total"] == 1
    assert answer["groupBy"] == ["day", "provider", "model"]
    (row,) = answer["history"]
    assert (row["provider"], row["model"], row["keyId"]) == ("lab", "m", None)
    assert (row["costUsdMicros"], row["costUsd"]) == (3, 0.000003)
    assert row["p50LatencyMs"] == pytest.approx(12.5, rel=0.011)

    query = {"groupBy": "key, endpoint", "from": "0", "to": str(now_ms + 1)}
    answer = await management.ask("GET", HISTORY, **query)
    assert [(row["keyId"], row["endpoint"], row["requests"]) for row in answer["history"]] == [
        ("k", "chat", 2)
    ]
    assert answer["history"][0]["bucket"] is None
    assert answer["from"] == "1970-01-01T00:00:00.000Z"


async def test_the_largest_groups_over_time_come_with_the_table(
    management: Management, lines: Any
) -> None:
    hour_ms = 3_600_000
    now_ms = time.time_ns() // 1_000_000
    start_ms = now_ms - now_ms % hour_ms - 2 * hour_ms
    await fill(
        management,
        lines("a", "b", ts_ms=start_ms, key_id="busy") + lines("c", ts_ms=start_ms, key_id="calm"),
    )

    query = {"groupBy": "key", "from": str(start_ms), "series": "hour", "seriesTop": 1}
    answer = await management.ask("GET", HISTORY, **query)

    assert [row["keyId"] for row in answer["history"]] == ["busy", "calm"]
    series = answer["series"]
    assert len(series["buckets"]) == 3
    assert series["buckets"][0] == answer["from"]
    assert [(each["keyId"], each["isOther"], each["requests"]) for each in series["groups"]] == [
        ("busy", False, [2, 0, 0]),
        (None, True, [1, 0, 0]),
    ]
    assert series["groups"][0]["tokensInput"] == [20, 0, 0]
    assert (await management.ask("GET", HISTORY))["series"] is None
    for refused in ({"top": 3}, {"groupBy": "day,key"}, {"series": "minute", "from": "0"}):
        await management.refused("GET", HISTORY, **query | refused)


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"groupBy": "colour"}, "groupBy"),
        ({"groupBy": ","}, "groupBy"),
        ({"groupBy": "hour,day"}, "groupBy"),
        ({"from": "yesterday"}, "from"),
        ({"from": "-1"}, "from"),
        ({"to": "9" * 30}, "to"),
        ({"from": "2000", "to": "2000"}, "from"),
    ],
)
async def test_queries_that_are_refused(
    management: Management, query: dict[str, str], param: str
) -> None:
    assert (await management.refused("GET", HISTORY, **query))[1] == param


async def test_the_log_is_purged_and_its_sums_stay(management: Management, lines: Any) -> None:
    now_ms = time.time_ns() // 1_000_000
    day_ms = 86_400_000
    moments = {"new": now_ms - 1000, "older": now_ms - 3 * day_ms, "oldest": now_ms - 5 * day_ms}
    await fill(management, b"".join(lines(name, ts_ms=ms) for name, ms in moments.items()))
    path = "/api/settings/purge-request-history"
    assert await management.ask("POST", path, {"olderThanDays": 2}) == {
        "deleted": 2,
        "deletedBodies": 0,
    }
    assert [row["requestId"] for row in (await management.ask("GET", LOGS))["logs"]] == ["new"]
    assert await management.ask("POST", path) == {"deleted": 1, "deletedBodies": 0}
    assert (await management.ask("GET", LOGS))["total"] == 0
    history = (await management.ask("GET", HISTORY, groupBy="key"))["history"]
    assert [row["requests"] for row in history] == [3]
    for wrong in ({"olderThanDays": -1}, {"olderThanDays": "2"}, {"days": 2}):
        await management.refused("POST", path, wrong)

"""Statements that are planned once see what came after, and cost a round its work only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.usage.ingestion import intake as module
from fairlead.usage.ingestion.ingest import Ingest
from fairlead.usage.ingestion.intake import Intake
from fairlead.usage.ingestion.record import parse_lines
from fairlead.usage.ingestion.segment_store import SegmentStore
from fairlead.usage.sums.rollup import merge_rollups
from tests.support.databases import open_fresh_file
from tests.support.rollups import assert_levels_agree

START = 1_800_000_000_000
MINUTE = 60_000


@pytest.fixture
def con(tmp_path: Path) -> Any:
    connection = open_fresh_file(tmp_path, "usage")
    yield connection
    connection.close()


def planned(con: Connection) -> Intake:
    intake = Intake()
    for step in (intake.make, intake.plan):
        con.begin()
        step(con)
        con.commit()
    return intake


def add(intake: Intake, con: Connection, *records: dict[str, Any]) -> None:
    rows = parse_lines("".join(json.dumps(each) + "\n" for each in records).encode()).rows
    con.begin()
    intake.add(con, rows)
    con.commit()


def count(con: Connection, source: str) -> int:
    row = con.execute(f"SELECT count(*) FROM {source}").fetchone()
    return int(row[0]) if row else 0


def test_what_is_far_from_all_before_is_found_again(con: Connection, record: Any) -> None:
    """Planned while the tables were empty, and again while they held little: no plan may rest on that."""
    for _ in range(2):
        intake = planned(con)
        for at in range(3):
            far = {"ts_ms": START + 10**at * MINUTE, "tokens_input": 10 ** (6 * at)}
            add(intake, con, record("a", key_id="k", **far), record("b", key_id=None, **far))
            add(intake, con, record("c", key_id=f"k{at}", model=None, latency_ms=10.0**at))
        assert_levels_agree(con)
    assert count(con, "dimensions") == count(
        con, "(SELECT DISTINCT ON (key_id, model) * FROM dimensions)"
    )


def test_within_a_minute_or_over_many_the_levels_agree(con: Connection, record: Any) -> None:
    intake = planned(con)
    add(intake, con, *(record(f"r{at}", ts_ms=START + at) for at in range(20)))
    add(intake, con, *(record(f"s{at}", ts_ms=START + at * 7 * MINUTE) for at in range(400)))

    assert_levels_agree(con)
    assert count(con, "rollup_minute") == 401
    assert count(con, "rollup_day") == 4


def test_a_round_that_is_rolled_back_leaves_nothing(con: Connection, record: Any) -> None:
    intake = planned(con)
    con.begin()
    intake.add(con, parse_lines(json.dumps(record("lost")).encode()).rows)
    con.rollback()

    add(intake, con, record("r1"))

    assert count(con, "requests") == count(con, "rollup_day") == count(con, "dimensions") == 1
    assert_levels_agree(con)


def test_planning_again_is_no_matter(con: Connection, record: Any) -> None:
    """As after a write whose end was not waited for."""
    for name in ("r1", "r2"):
        add(planned(con), con, record(name))
    assert count(con, "requests") == 2
    assert_levels_agree(con)


def test_no_rows_are_nothing(con: Connection) -> None:
    intake = planned(con)
    add(intake, con)
    assert count(con, "rollup_day") == 0


@pytest.mark.anyio
async def test_a_round_plans_nothing(
    usage: Database, spool: Path, lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever plans asks the source for its columns first."""
    asked = 0
    stream = module._Source.__arrow_c_stream__

    def count_streams(source: Any, requested_schema: object | None = None) -> object:
        nonlocal asked
        asked += 1
        return stream(source, requested_schema)

    monkeypatch.setattr(module._Source, "__arrow_c_stream__", count_streams)
    ingest = Ingest(SegmentStore(usage, spool), spool)
    for at in range(3):
        (spool / f"w-{at}.ndjson").write_bytes(lines(f"r{at}", ts_ms=START + at))
        asked = 0
        await ingest.ingest()
        # The records, their sums, and their values: latencies, and tokens written to a cache.
        assert at == 0 or asked == 4
        await merge_rollups(usage, START + 10 * 86_400_000)

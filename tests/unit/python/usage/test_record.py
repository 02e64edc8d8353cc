"""Lines become rows, or are set aside one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.moment import LATEST_MS
from fairlead.usage.ingestion.record import COLUMNS, NULLABLE, parse_lines
from tests.support.databases import open_fresh_file


def line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def test_whole_lines_are_rows(record: Any) -> None:
    first = record("r1", latency_ms=3, ttft_ms=1)
    second = record("r2", session_tag='a "quoted"\n tag', model=None, no_log=True)

    parsed = parse_lines(line(first) + line(second))

    assert parsed.rejected == []
    assert parsed.rows.to_dicts() == [first, second]


def test_the_fields_are_those_of_the_table(record: Any, tmp_path: Path) -> None:
    connection = open_fresh_file(tmp_path, "usage")
    try:
        columns = connection.execute("DESCRIBE requests").fetchall()
    finally:
        connection.close()

    assert list(COLUMNS) == [name for name, *_ in columns] == list(record("r"))
    assert {name for name, _, null, *_ in columns if null == "YES"} == NULLABLE


def test_a_line_of_an_older_relay_lacks_what_came_later(record: Any) -> None:
    later = ("session_id", "combo", "strategy", "cache", "cache_kind", "cost_saved_usd_micros")
    old = {name: value for name, value in record("r1").items() if name not in later}

    for data in (line(old), line(old) + b"nonsense\n"):
        assert parse_lines(data).rows.to_dicts() == [{**old, **dict.fromkeys(later)}]


def test_a_field_that_came_later_is_left_out(record: Any) -> None:
    parsed = parse_lines(line({**record("r1"), "added_later": {"a": [1]}}))

    assert parsed.rows.to_dicts() == [record("r1")]


def test_blank_lines_are_nothing(record: Any) -> None:
    assert parse_lines(b"").rows.height == 0
    assert parse_lines(b"\n \n").rejected == []
    assert parse_lines(b"\n" + line(record("r1")) + b"\n\n").rows.height == 1


@pytest.mark.parametrize("ts_ms", [0, LATEST_MS])
def test_the_first_and_the_last_time_are_taken(record: Any, ts_ms: int) -> None:
    assert parse_lines(line(record("r1", ts_ms=ts_ms))).rows["ts_ms"].to_list() == [ts_ms]


@pytest.mark.parametrize("ts_ms", [-1, 253_402_300_800_000, 2**62])
def test_a_time_without_a_date_is_rejected(record: Any, ts_ms: int) -> None:
    parsed = parse_lines(line(record("r1", ts_ms=ts_ms)) + line(record("r2")))

    assert parsed.rows.to_dicts() == [record("r2")]
    assert len(parsed.rejected) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        b"nonsense",
        b"null",
        b"[1]",
        b"1",
        b'"text"',
        b"{}",
        b'{"request_id": "x"',
        b"\x00" * 50,
        b"\xff\xfe",
        b"{" * 5000,
    ],
)
def test_a_line_that_is_no_record_is_rejected_alone(lines: Any, wrong: bytes) -> None:
    parsed = parse_lines(lines("r1") + wrong + b"\n" + lines("r2"))

    assert parsed.rejected == [wrong]
    assert parsed.rows["request_id"].to_list() == ["r1", "r2"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("request_id", None),
        ("ts_ms", None),
        ("no_log", None),
        ("latency_ms", None),
        ("ts_ms", 1.5),
        ("ts_ms", "1"),
        ("ts_ms", True),
        ("ts_ms", 2**63),
        ("status", 2**31),
        ("stream", 1),
        ("latency_ms", "1"),
        ("latency_ms", 2**60),
        ("model", {"a": 1}),
        ("ttft_ms", []),
    ],
)
def test_a_value_of_another_type_is_rejected(record: Any, field: str, value: object) -> None:
    wrong = line({**record("r1"), field: value})

    parsed = parse_lines(b"nonsense\n" + wrong + line(record("r2")))

    assert parsed.rejected == [b"nonsense", wrong.rstrip()]
    assert parsed.rows["request_id"].to_list() == ["r2"]


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_no_bytes_break_it(pieces: list[bytes]) -> None:
    data = b"\n".join(pieces)

    parsed = parse_lines(data)

    assert parsed.rows.height == 0
    assert b"\n".join(parsed.rejected).split() == data.split()

"""The time that a page shows: presets, dates of one's own, and the period to compare with."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fairlead.dashboard import window as windows
from fairlead.dashboard.window import BUCKET_MS, NAMES, OWN, choices_of, window_of
from fairlead.moment import ms_of

# A Thursday.
NOW = datetime(2026, 11, 26, 14, 32, 5, tzinfo=UTC)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "now_ms", lambda: ms_of(NOW))


def at(text: str) -> int:
    return ms_of(datetime.fromisoformat(text).replace(tzinfo=UTC))


@pytest.mark.parametrize(
    ("name", "start", "bucket"),
    [
        ("1h", "2026-11-26T13:33", "minute"),
        ("24h", "2026-11-25T15:00", "hour"),
        ("today", "2026-11-26", "hour"),
        ("yesterday", "2026-11-25", "hour"),
        ("7d", "2026-11-20", "day"),
        ("30d", "2026-10-28", "day"),
        ("month", "2026-11-01", "day"),
    ],
)
def test_each_preset_begins_with_a_whole_bucket(name: str, start: str, bucket: str) -> None:
    window = window_of({"window": name})
    assert (window.name, window.from_ms, window.bucket) == (name, at(start), bucket)
    assert window.is_open == (name != "yesterday")
    assert ("to" in window.query) == (name == "yesterday")
    assert window_of(window.address).from_ms == window.from_ms


def test_every_preset_is_a_link_that_keeps_the_rest_of_the_address() -> None:
    links = dict(choices_of(window_of({"vs": "week"}), {"by": "key"}))
    assert len(links) == len(NAMES)
    assert links["Yesterday"] == "?by=key&vs=week&window=yesterday"


@pytest.mark.parametrize(
    ("start", "end", "expected", "bucket"),
    [
        ("2026-11-25", "2026-11-25", ("2026-11-25", "2026-11-26"), "hour"),
        (
            "2026-11-25T10:00",
            "2026-11-25T11:30",
            ("2026-11-25T10:00", "2026-11-25T11:30"),
            "minute",
        ),
        (
            "2026-11-25T10:00+01:00",
            "2026-11-25T12:00Z",
            ("2026-11-25T09:00", "2026-11-25T12:00"),
            "minute",
        ),
        ("2026-09-01", "2026-09-30", ("2026-09-01", "2026-10-01"), "day"),
        ("", "2026-11-25T12:00", ("2026-11-24T12:00", "2026-11-25T12:00"), "hour"),
    ],
)
def test_dates_of_ones_own_are_in_force(
    start: str, end: str, expected: tuple[str, str], bucket: str
) -> None:
    window = window_of({"from": start, "to": end, "window": "7d"})
    assert window.error is None
    assert (window.name, window.bucket) == (OWN, bucket)
    assert (window.from_ms, window.until_ms) == tuple(map(at, expected))
    again = window_of(window.address)
    assert (again.from_ms, again.until_ms) == (window.from_ms, window.until_ms)


def test_an_end_in_the_future_is_now() -> None:
    window = window_of({"from": "2026-11-26T10:00", "to": "2027-01-01"})
    assert (window.is_open, window.until_ms) == (True, ms_of(NOW) + 1)
    assert "to" not in window.address


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("yesterday", ""),
        ("2026-11-26", "2026-13-01"),
        ("2026-11-25", "2026-11-24"),
        ("2027-01-01", ""),
        ("1970-01-01", ""),
        ("0001-01-01", ""),
        ("9999-12-31T23:59:59.999999", ""),
    ],
)
def test_dates_that_cannot_be_shown_are_refused_with_a_sentence(start: str, end: str) -> None:
    window = window_of({"from": start, "to": end})
    assert window.error
    assert window.name == "24h"


@pytest.mark.parametrize(
    ("versus", "start"),
    [
        ("before", "2026-11-13T09:00"),
        ("week", "2026-11-13"),
        ("month", "2026-10-23"),
        ("year", "2025-11-21"),
        ("2026-03-01", "2026-03-01"),
        ("nonsense", "2026-11-13T09:00"),
    ],
)
def test_the_period_to_compare_with_is_as_long(versus: str, start: str) -> None:
    window = window_of({"window": "7d", "vs": versus})
    before = window.before
    assert before.from_ms == at(start)
    if window.versus == "before":
        assert before.until_ms == window.from_ms
    else:
        length = window.until_ms - window.from_ms
        assert abs((before.until_ms - before.from_ms) - length) < BUCKET_MS["hour"]


def test_each_bucket_has_a_link_to_itself() -> None:
    window = window_of({"window": "7d"})
    links = window.links("/dashboard/logs", keyId="k")
    assert len(links) == len(window.starts()) == len(window.labels()) == 7
    assert links[0] == "/dashboard/logs?keyId=k&from=2026-11-20T00%3A00&to=2026-11-21T00%3A00"

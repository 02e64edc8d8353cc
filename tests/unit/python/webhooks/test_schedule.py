from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.moment import ms_of
from fairlead.webhooks.schedule import BACKOFF_S, JITTER, next_attempt_at_ms, parse_retry_after

DAY_MS = 86_400_000
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@given(
    tries=st.integers(1, 40),
    elapsed_ms=st.integers(0, DAY_MS + 1000),
    retry_after_s=st.none() | st.integers(0, DAY_MS),
    seed=st.integers(),
)
def test_the_next_try_is_within_the_window_and_not_before_it_was_asked_for(
    tries: int, elapsed_ms: int, retry_after_s: int | None, seed: int
) -> None:
    spread = random.Random(seed).uniform
    at_ms = next_attempt_at_ms(tries, elapsed_ms, DAY_MS, retry_after_s, spread)
    if elapsed_ms >= DAY_MS:
        assert at_ms is None
        return
    assert at_ms is not None
    assert elapsed_ms < at_ms <= DAY_MS
    base_ms = BACKOFF_S[min(tries, len(BACKOFF_S)) - 1] * 1000
    asked_ms = (retry_after_s or 0) * 1000
    least_ms = max(base_ms * (1 - JITTER), asked_ms)
    most_ms = max(base_ms * (1 + JITTER), asked_ms)
    assert min(elapsed_ms + least_ms, DAY_MS) - 1 <= at_ms <= elapsed_ms + most_ms + 1


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("0", 0),
        ("7", 7),
        (" 7 ", 7),
        ("-7", None),
        ("7.5", None),
        ("soon", None),
        ("1" * 12, 86_400),
        ("1" * 400, None),
        ("\u0661", None),
        ("Wed, 99 Nov 2026 12:00:00 GMT", None),
    ],
)
def test_retry_after_is_a_number_of_seconds(value: str | None, seconds: int | None) -> None:
    assert parse_retry_after(value, ms_of(NOW)) == seconds


@pytest.mark.parametrize(("delta_s", "seconds"), [(90, 90), (-90, 0), (10**8, 86_400)])
def test_or_a_date(delta_s: int, seconds: int) -> None:
    date = format_datetime(NOW + timedelta(seconds=delta_s), usegmt=True)
    assert parse_retry_after(date, ms_of(NOW)) == seconds

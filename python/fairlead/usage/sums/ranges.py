"""Ranges of time that end now: `1h`, `24h`, `7d` or `30d`."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from fastapi import Query

from fairlead.moment import now_ms
from fairlead.usage.sums.rollup import BUCKET_MS, Level
from fairlead.usage.sums.span import Span

Range = Literal["1h", "24h", "7d", "30d"]
RangeQuery = Annotated[Range, Query(alias="range", description="How far back, until now.")]

HOUR_MS: Final = 3_600_000
_LENGTH_MS: Final[dict[Range, int]] = {
    "1h": HOUR_MS,
    "24h": 24 * HOUR_MS,
    "7d": 7 * 24 * HOUR_MS,
    "30d": 30 * 24 * HOUR_MS,
}
# The bucket of a series for each range, chosen to give tens to hundreds of points.
SERIES: Final[dict[Range, Level]] = {"1h": "minute", "24h": "hour", "7d": "hour", "30d": "day"}


def span_of(length: Range) -> Span:
    """The range until now, as a span. It begins with a whole minute or hour, so that rollups answer it."""
    until_ms = now_ms() + 1
    from_ms = until_ms - _LENGTH_MS[length]
    size_ms = BUCKET_MS["minute" if length == "1h" else "hour"]
    return Span(from_ms - from_ms % size_ms, until_ms, is_open=True)


def last_ms(length_ms: int) -> Span:
    """A span of so many milliseconds until now."""
    until_ms = now_ms() + 1
    return Span(until_ms - length_ms, until_ms, is_open=True)

"""A span of time, cut into parts that each level of usage answers: whole days from the days, the
rest at its ends from hours, minutes and single records. So a sum over any span is exact and
reads few rows.

Finer levels are kept for a shorter time. If one is deleted, the span is extended to whole buckets of the finest
remaining one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.usage.sums.rollup import BUCKET_MS, Level

COARSEST_FIRST: Final[tuple[Level, ...]] = ("day", "hour", "minute", "requests")


@dataclass(frozen=True, slots=True)
class Span:
    """From `from_ms` until before `until_ms`, UTC milliseconds.

    `is_open` says that it ends now: whole buckets answer its end, since nothing is in them that comes later.
    """

    from_ms: int
    until_ms: int
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a span, of whole buckets of its level."""

    level: Level
    from_ms: int
    until_ms: int


def cut(span: Span, complete_from: dict[Level, int], coarsest: Level = "day") -> list[Part]:
    """The parts of a span in order of time. `complete_from` has the time from which each level is complete;
    `coarsest` is the level with the longest buckets that may be used. Time before every level is
    left out.
    """
    levels = COARSEST_FIRST[COARSEST_FIRST.index(coarsest) :]
    from_ms = max(span.from_ms, min(complete_from[level] for level in levels))
    until_ms = _rounded_up(span.until_ms, BUCKET_MS[coarsest]) if span.is_open else span.until_ms
    parts = _cut(from_ms, until_ms, levels, complete_from)
    if parts is None:
        # The oldest part begins inside a bucket of its level.
        oldest = min(
            _rounded_up(max(from_ms, complete_from[level]), BUCKET_MS[level]) for level in levels
        )
        parts = _cut(oldest, until_ms, levels, complete_from)
    return parts or []


def _cut(
    from_ms: int, until_ms: int, levels: tuple[Level, ...], complete_from: dict[Level, int]
) -> list[Part] | None:
    """The parts of a span; None when no level has it."""
    if from_ms >= until_ms:
        return []
    if not levels:
        return None
    level, finer = levels[0], levels[1:]
    size = BUCKET_MS[level]
    first, last = _rounded_up(from_ms, size), until_ms - until_ms % size
    if first >= last or complete_from[level] > first:
        parts = _cut(from_ms, until_ms, finer, complete_from)
        if parts is not None:
            return parts
        first, last = from_ms - from_ms % size, _rounded_up(until_ms, size)
        return [Part(level, first, last)] if complete_from[level] <= first else None
    before = _cut(from_ms, first, finer, complete_from)
    after = _cut(last, until_ms, finer, complete_from)
    if before is None:
        # A level is only used from `first` on, where it is complete.
        before, first = [], first - size if complete_from[level] <= first - size else first
    if after is None:
        after, last = [], last + size
    return [*before, Part(level, first, last), *after]


def _rounded_up(ms: int, size: int) -> int:
    return -(-ms // size) * size

"""Figures of one connection or combo over a span, in total and by parts: a connection by model, a
combo by target.

The finest groups are read once; coarser ones are added up from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fairlead.store.file import Connection
from fairlead.usage.sums.closed_bins import BinsReader
from fairlead.usage.sums.facts import Filters, Selection, add_up, sums_of
from fairlead.usage.sums.percentile import percentiles
from fairlead.usage.sums.rollup import Level
from fairlead.usage.sums.span import Span

_SHARES = (50, 95, 99)
# The measures of a group. A statement is planned for longer the more it names.
FIGURES = (
    "requests",
    "errors",
    "attempts",
    "tokens_input",
    "tokens_output",
    "tokens_cached",
    "tokens_reasoning",
    "tokens_cache_write",
    "cost_usd_micros",
    "unpriced_requests",
    "cost_saved_usd_micros",
    "cache_hits",
    "ok_latency_us",
    "last_ts_ms",
)


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The finest groups of a span: their sums, and the histograms of completed requests."""

    sums: pl.DataFrame
    bins: pl.DataFrame

    def by(self, keys: Sequence[str] = ()) -> list[dict[str, Any]]:
        """A row for each group of these keys, most requests first: `FIGURES`, and `p50`, `p95`,
        `p99` in microseconds (null where none was completed). Without keys there is one row, or
        none when nothing was requested.
        """
        if self.sums.is_empty():
            return []
        rows = add_up(self.sums, keys)
        latencies = percentiles(self.bins, keys, _SHARES)
        if not keys:
            return rows.hstack(latencies).to_dicts()
        joined = rows.join(latencies, on=list(keys), how="left", nulls_equal=True)
        return _sorted(joined, keys).to_dicts()

    def sums_by(self, keys: Sequence[str]) -> list[dict[str, Any]]:
        """Like `by`, without percentiles."""
        if self.sums.is_empty():
            return []
        return _sorted(add_up(self.sums, keys), keys).to_dicts()

    def where(self, condition: pl.Expr) -> Breakdown:
        """The groups that meet a condition on their columns."""
        return Breakdown(self.sums.filter(condition), self.bins.filter(condition))


def _sorted(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Most requests first."""
    descending = [True, *([False] * len(keys))]
    return rows.sort(["requests", *keys], descending=descending, nulls_last=True)


def read_breakdown(
    con: Connection, span: Span, groups: dict[str, str], filters: Filters, reader: BinsReader
) -> Breakdown:
    """The groups (`facts.sums_of`) with their sums and histograms."""
    selection = Selection(groups, filters)
    bins = reader.read(con, span, selection, ("latency",))
    return Breakdown(reader.sums(con, span, selection, FIGURES), bins)


def read_series(
    con: Connection, span: Span, filters: Filters, level: Level
) -> list[dict[str, Any]]:
    """Every measure by minute, hour or day (`bucket_ms`), oldest first; empty buckets are absent."""
    size_ms = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}[level]
    groups = {"bucket_ms": f"bucket_ms - bucket_ms % {size_ms}"}
    return sums_of(con, span, Selection(groups, filters, level)).sort("bucket_ms").to_dicts()

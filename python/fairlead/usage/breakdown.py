"""What one thing did in a span, whole and by its parts: a connection by model, a combo by target."""

from __future__ import annotations

from typing import Any

import polars as pl

from fairlead.store.file import Connection
from fairlead.usage.facts import Narrow, bins_of, sums_of
from fairlead.usage.percentile import percentiles
from fairlead.usage.rollup import Level
from fairlead.usage.span import Span

_SHARES = (50, 95, 99)


def read_groups(
    con: Connection, span: Span, groups: dict[str, str], narrow: Narrow
) -> list[dict[str, Any]]:
    """A row for each group, the one with the most requests first: every measure, and `p50`, `p95`,
    `p99` of completed requests in microseconds (null without any).
    """
    keys = list(groups)
    rows = sums_of(con, span, groups, narrow).sort(
        ["requests", *keys], descending=[True, *([False] * len(keys))], nulls_last=True
    )
    if rows.is_empty():
        return []
    bins = bins_of(con, span, groups, narrow).filter(pl.col("measure") == "latency")
    told = percentiles(bins, keys, _SHARES)
    if not keys:
        return rows.hstack(told).to_dicts()
    return rows.join(told, on=keys, how="left", nulls_equal=True, maintain_order="left").to_dicts()


def read_series(con: Connection, span: Span, narrow: Narrow, level: Level) -> list[dict[str, Any]]:
    """Every measure by minute, hour or day (`bucket_ms`), oldest first; empty buckets are absent."""
    size_ms = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}[level]
    groups = {"bucket_ms": f"bucket_ms - bucket_ms % {size_ms}"}
    return sums_of(con, span, groups, narrow, coarsest=level).sort("bucket_ms").to_dicts()

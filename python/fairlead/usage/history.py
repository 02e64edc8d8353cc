"""Usage over time: sums from DuckDB, latency percentiles from a histogram folded by polars.

DuckDB counts requests per group and per latency bin; a bin is two per cent wide, so percentiles are
right to one per cent however many requests there are, and what leaves the database is bounded by
groups times bins instead of by requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from fairlead.store.file import Connection

Dimension = Literal["hour", "day", "month", "provider", "model", "key", "endpoint", "connection"]

# What a group is made of, as SQL over the table `requests`, and the name of its column.
_DIMENSIONS: dict[str, tuple[str, str]] = {
    "hour": ("bucket_ms", "ts_ms - ts_ms % 3600000"),
    "day": ("bucket_ms", "ts_ms - ts_ms % 86400000"),
    "month": ("bucket_ms", "epoch_ms(date_trunc('month', make_timestamp(ts_ms * 1000)))"),
    "provider": ("provider", "provider"),
    "model": ("model", "coalesce(upstream_model, model)"),
    "key": ("key_id", "key_id"),
    "endpoint": ("endpoint", "endpoint"),
    "connection": ("connection_id", "connection_id"),
}
BUCKETS = frozenset({"hour", "day", "month"})

_SUMS = (
    "tokens_input", "tokens_output", "tokens_cached", "tokens_reasoning", "tokens_cache_write",
    "cost_usd_micros",
)  # fmt: skip
_WIDTH = 1.02
# Zero has no logarithm, and below a microsecond nothing differs.
_SHORTEST_MS = 0.001


@dataclass(frozen=True, slots=True)
class Span:
    """From `from_ms` until before `until_ms`, UTC milliseconds."""

    from_ms: int
    until_ms: int


def read_history(
    con: Connection, span: Span, group_by: list[Dimension], limit: int, offset: int
) -> tuple[list[dict[str, Any]], int]:
    """Rows of groups, newest bucket first, then the most requests; and how many groups there are.

    An error is a request whose outcome is not `completed`. Requests of keys that ask for no log
    count here.
    """
    groups = dict(_DIMENSIONS[name] for name in group_by)
    keys = list(groups)
    bins = _read_bins(con, span, groups)
    rows = (
        bins.lazy()
        .sort("latency_bin")
        .group_by(keys)
        .agg(
            pl.col("requests").sum(),
            pl.col("errors").sum(),
            *(pl.col(name).sum() for name in _SUMS),
            (pl.col("latency_sum_ms").sum() / pl.col("requests").sum()).alias("avg_latency_ms"),
            *(_percentile(share).alias(f"p{share}_latency_ms") for share in (50, 95, 99)),
        )
        .sort(
            [*(["bucket_ms"] if "bucket_ms" in keys else []), "requests", *keys],
            descending=[*([True] if "bucket_ms" in keys else []), True, *([False] * len(keys))],
            nulls_last=True,
        )
        .collect()
    )
    return rows.slice(offset, limit).to_dicts(), rows.height


def _read_bins(con: Connection, span: Span, groups: dict[str, str]) -> pl.DataFrame:
    # Made of the constants above; what the caller sent is bound.
    columns = ", ".join(f"{sql} AS {column}" for column, sql in groups.items())
    sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in _SUMS)
    bins = con.sql(
        f"""
        SELECT {columns},
            floor(ln(greatest(latency_ms, {_SHORTEST_MS})) / ln({_WIDTH}))::INTEGER AS latency_bin,
            count(*)::BIGINT AS requests,
            count(*) FILTER (outcome <> 'completed')::BIGINT AS errors,
            sum(latency_ms) AS latency_sum_ms,
            {sums}
        FROM requests WHERE ts_ms >= ? AND ts_ms < ?
        GROUP BY ALL
        """,
        params=[span.from_ms, span.until_ms],
    )
    return pl.DataFrame(bins.to_arrow_table())


def _percentile(share: int) -> pl.Expr:
    """Of a group's bins in rising order: the middle of the one in which the share is reached."""
    reached = pl.col("requests").cum_sum() >= pl.col("requests").sum() * (share / 100)
    at = pl.col("latency_bin").filter(reached).first()
    return pl.lit(_WIDTH).pow(at + 0.5)

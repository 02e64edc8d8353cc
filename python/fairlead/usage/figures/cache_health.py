"""Use of the providers' prompt caches: tokens written to them against tokens read.

A call is *warm* when it read at least what it wrote, *rewrite* when it read something and wrote
more, *cold* when it only wrote, *uncached* when it did neither. Writing costs more than plain
input, so a prefix that is written again and again instead of read is money lost.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import polars as pl

from fairlead.store.file import Connection
from fairlead.usage.sums.facts import EVERYTHING, Filters, Selection, bins_of, sums_of
from fairlead.usage.sums.percentile import percentiles
from fairlead.usage.sums.span import Span

Verdict = Literal["healthy", "degraded", "thrash", "no-data"]

HEALTHY_FROM: Final = 0.6
DEGRADED_FROM: Final = 0.3
# A write is heavy when it is above both.
HEAVY_MEDIANS: Final = 10
HEAVY_TOKENS: Final = 1024

_MODEL = "coalesce(upstream_model, model)"
_CALLS = ("warm_calls", "cold_calls", "rewrite_calls", "uncached_calls")


def read_cache_health(con: Connection, span: Span, model: str | None) -> dict[str, Any]:
    """The figures in total and by model, the model with the most writes first. Token counts;
    `write_max` is exact, the percentiles are right to one per cent.
    """
    filters = EVERYTHING
    if model is not None:
        filters = Filters(["(upstream_model = $model OR model = $model)"], {"model": model})
    selection = Selection({"model": _MODEL}, filters)
    rows = sums_of(con, span, selection).filter(pl.sum_horizontal(*_CALLS) > 0)
    bins = bins_of(con, span, selection, ("cache_write",))
    calls = {name: _total(rows, name) for name in _CALLS}
    read, written = _total(rows, "tokens_cached"), _total(rows, "tokens_cache_write")
    writes = _total(bins, "requests")
    write_sizes: dict[str, Any] = dict.fromkeys(("p50", "p90", "p99"))
    if writes:
        write_sizes = percentiles(bins, [], (50, 90, 99)).row(0, named=True)
    threshold = max(HEAVY_MEDIANS * float(write_sizes["p50"] or 0), HEAVY_TOKENS)
    heavy = bins.filter(pl.col("total") / pl.col("requests") > threshold)
    return {
        "total_calls": sum(calls.values()),
        "cache_read_total": read,
        "cache_write_total": written,
        "write_read_ratio": written / max(read, 1),
        **calls,
        "write_p50": write_sizes["p50"],
        "write_p90": write_sizes["p90"],
        "write_p99": write_sizes["p99"],
        "write_max": int(rows["cache_write_max"].max() or 0) if writes else None,  # type: ignore[arg-type]
        "heavy_write_threshold": threshold,
        "heavy_write_calls": _total(heavy, "requests"),
        "heavy_write_call_share": _share(_total(heavy, "requests"), writes),
        "heavy_write_token_share": _share(_total(heavy, "total"), written),
        "verdict": verdict_of(**calls),
        "by_model": _by_model(rows, heavy),
    }


def verdict_of(
    warm_calls: int, cold_calls: int, rewrite_calls: int, uncached_calls: int
) -> Verdict:
    """The verdict, by the share of warm calls among those that used the cache."""
    used = warm_calls + cold_calls + rewrite_calls
    if not used:
        return "healthy" if uncached_calls else "no-data"
    if warm_calls >= HEALTHY_FROM * used:
        return "healthy"
    return "degraded" if warm_calls >= DEGRADED_FROM * used else "thrash"


def _by_model(rows: pl.DataFrame, heavy: pl.DataFrame) -> list[dict[str, Any]]:
    heavy_calls = heavy.group_by("model").agg(pl.col("requests").sum().alias("heavy_write_calls"))
    parts = rows.join(heavy_calls, on="model", how="left", nulls_equal=True).sort(
        ["tokens_cache_write", "model"], descending=[True, False], nulls_last=True
    )
    return [
        {
            "model": row["model"],
            "calls": sum(row[name] for name in _CALLS),
            "cache_read_total": row["tokens_cached"],
            "cache_write_total": row["tokens_cache_write"],
            "write_read_ratio": row["tokens_cache_write"] / max(row["tokens_cached"], 1),
            "heavy_write_calls": row["heavy_write_calls"] or 0,
            "verdict": verdict_of(**{name: row[name] for name in _CALLS}),
        }
        for row in parts.iter_rows(named=True)
    ]


def _total(rows: pl.DataFrame, column: str) -> int:
    # Summed in Python, because a sum in 64 bits could wrap around.
    return sum(rows[column].to_list())


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0

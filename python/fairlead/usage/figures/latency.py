"""Latency and reliability of each provider's models over the last hours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from fairlead.store.file import Connection
from fairlead.usage.sums.facts import Filters, Selection, bins_of, sums_of
from fairlead.usage.sums.percentile import deviation, percentiles
from fairlead.usage.sums.span import Span

_GROUPS = {"provider": "provider", "model": "coalesce(upstream_model, model)"}
_KEYS = list(_GROUPS)
_SHARES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class LatencyFilter:
    """The filter of a report; None does not filter. Models with fewer requests than `min_samples`
    are left out.
    """

    provider: str | None
    model: str | None
    min_samples: int
    max_rows: int


def read_latency(con: Connection, span: Span, wanted: LatencyFilter) -> list[dict[str, Any]]:
    """A row for each provider and model that was called, the busiest first.

    Latencies (`*_us`, microseconds) are of completed requests, and null where none was completed.
    """
    conditions, bound = ["provider IS NOT NULL"], {}
    if wanted.provider is not None:
        conditions.append("provider = $provider")
        bound["provider"] = wanted.provider
    if wanted.model is not None:
        conditions.append("(upstream_model = $model OR model = $model)")
        bound["model"] = wanted.model
    selection = Selection(_GROUPS, Filters(conditions, bound))
    rows = (
        sums_of(con, span, selection)
        .filter(pl.col("requests") >= wanted.min_samples)
        .sort(["requests", *_KEYS], descending=[True, False, False], nulls_last=True)
        .head(wanted.max_rows)
    )
    if rows.is_empty():
        return []
    bins = bins_of(con, span, selection)
    latencies = percentiles(bins, _KEYS, _SHARES)
    spread = deviation(bins, _KEYS)
    return (
        rows.join(latencies, on=_KEYS, how="left", nulls_equal=True, maintain_order="left")
        .join(spread, on=_KEYS, how="left", nulls_equal=True, maintain_order="left")
        .to_dicts()
    )

"""Usage over time: sums and latency percentiles of groups, from rollups.

The sums of every group are read first, then the histograms of the groups that are shown, so a page
costs what it shows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import polars as pl

from fairlead.store.file import Connection
from fairlead.usage.facts import LATENCIES, Filters, bins_of, bins_of_page, sums_of
from fairlead.usage.percentile import percentiles
from fairlead.usage.rollup import Level
from fairlead.usage.span import Span

Dimension = Literal[
    "minute",
    "hour",
    "day",
    "month",
    "provider",
    "model",
    "key",
    "endpoint",
    "connection",
    "combo",
    "session",
    "status",
    "group",
]

# The SQL of each dimension over a rollup's columns, and the name of its column.
_DIMENSIONS: dict[str, tuple[str, str]] = {
    "minute": ("bucket_ms", "bucket_ms - bucket_ms % 60000"),
    "hour": ("bucket_ms", "bucket_ms - bucket_ms % 3600000"),
    "day": ("bucket_ms", "bucket_ms - bucket_ms % 86400000"),
    "month": ("bucket_ms", "epoch_ms(date_trunc('month', make_timestamp(bucket_ms * 1000)))"),
    "provider": ("provider", "provider"),
    "model": ("model", "coalesce(upstream_model, model)"),
    "key": ("key_id", "key_id"),
    "endpoint": ("endpoint", "endpoint"),
    "connection": ("connection_id", "connection_id"),
    "combo": ("combo", "combo"),
    "session": ("session", "coalesce(session_tag, session_id)"),
    "status": ("status", "status"),
    # The group that the key was in itself: the last of the path.
    "group": ("group_id", "string_split(group_path, '/')[-1]"),
}
# Dimensions and filters that no rollup has: they are read from the requests themselves, as long as
# those are kept, and without those of keys that ask for no log.
_OF_REQUESTS = frozenset({"session", "status"})
_FILTERS_OF_REQUESTS = ("request_id", "session_tag", "session_id", "status", "outcome")
BUCKETS = frozenset({"minute", "hour", "day", "month"})
_SHARES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """Which requests count; None does not filter. `model` is the caller's name for it or the
    provider's.
    """

    key_id: str | None = None
    model: str | None = None
    provider: str | None = None
    connection_id: str | None = None
    combo: str | None = None
    endpoint: str | None = None
    request_id: str | None = None
    session_tag: str | None = None
    session_id: str | None = None
    status: int | None = None
    outcome: str | None = None
    group_id: str | None = None
    tag: str | None = None

    def conditions(self, *, of_requests: bool = False) -> Filters:
        """The conditions on dimensions."""
        sent = {name: value for name, value in asdict(self).items() if value is not None}
        conditions = [_CONDITIONS[name] for name in sent]
        return Filters([*conditions, "NOT no_log"] if of_requests else conditions, sent)

    @property
    def is_of_requests(self) -> bool:
        """Whether it filters by what only the requests themselves have."""
        return any(getattr(self, name) is not None for name in _FILTERS_OF_REQUESTS)


_CONDITIONS = {
    "key_id": "key_id = $key_id",
    "model": "model = $model OR upstream_model = $model",
    "provider": "provider = $provider",
    "connection_id": "connection_id = $connection_id",
    "combo": "combo = $combo",
    "endpoint": "endpoint = $endpoint",
    "request_id": "request_id = $request_id",
    "session_tag": "session_tag = $session_tag",
    "session_id": "session_id = $session_id",
    "status": "status = $status",
    "outcome": "outcome = $outcome",
    # The groups below it count as well.
    "group_id": "list_contains(string_split(group_path, '/'), $group_id)",
    "tag": "contains(tags, ',' || $tag || ',')",
}


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """A page of groups: of which requests, over which span, in which groups."""

    span: Span
    group_by: list[Dimension]
    filters: HistoryFilter = HistoryFilter()
    limit: int = 50
    offset: int = 0


def read_history(con: Connection, query: HistoryQuery) -> tuple[list[dict[str, Any]], int]:
    """Rows of groups, newest bucket first, then the most requests; and how many groups there are.

    An error is a request whose outcome is not `completed`. Requests of keys that ask for no log
    count here. What was refused before a provider was chosen has no model.
    """
    span, group_by = query.span, query.group_by
    of_requests = query.filters.is_of_requests or not _OF_REQUESTS.isdisjoint(group_by)
    filters = query.filters.conditions(of_requests=of_requests)
    groups = dict(_DIMENSIONS[name] for name in group_by)
    keys = list(groups)
    coarsest: Level = "minute" if "minute" in group_by else "hour" if "hour" in group_by else "day"
    if of_requests:
        coarsest = "requests"
    rows = sums_of(con, span, groups, filters, coarsest=coarsest).sort(
        [*(["bucket_ms"] if "bucket_ms" in keys else []), "requests", *keys],
        descending=[*([True] if "bucket_ms" in keys else []), True, *([False] * len(keys))],
        nulls_last=True,
    )
    page = rows.slice(query.offset, query.limit)
    if page.is_empty():
        return [], rows.height
    shown = span
    if "bucket_ms" in keys:
        # Rows are sorted by bucket, so those of a page are close in time.
        shown = _around(page, span, group_by)
    page = page.with_row_index("row")
    if keys:
        bins = bins_of_page(con, shown, groups, page, filters, wanted=LATENCIES, coarsest=coarsest)
    else:
        bins = bins_of(con, shown, groups, filters, wanted=LATENCIES, coarsest=coarsest)
        bins = bins.with_columns(pl.lit(0, pl.UInt32).alias("row"))
    told = percentiles(bins, ["row"], _SHARES).rename(
        {f"p{share}": f"p{share}_latency_us" for share in _SHARES}
    )
    shown_page = page.join(
        told.with_columns(pl.col("row").cast(pl.UInt32)),
        on="row",
        how="left",
        maintain_order="left",
    ).drop("row")
    return [_row(row) for row in shown_page.iter_rows(named=True)], rows.height


def _around(page: pl.DataFrame, span: Span, group_by: list[Dimension]) -> Span:
    buckets = page["bucket_ms"]
    first, last = int(buckets.min()), int(buckets.max())  # type: ignore[arg-type]
    longest_ms = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "month": 31 * 86_400_000}
    size_ms = next(longest_ms[name] for name in group_by if name in longest_ms)
    return Span(max(span.from_ms, first), min(span.until_ms, last + size_ms))


def _row(row: dict[str, Any]) -> dict[str, Any]:
    row["avg_latency_ms"] = row["latency_us"] / row["requests"] / 1000
    for share in _SHARES:
        row[f"p{share}_latency_ms"] = row[f"p{share}_latency_us"] / 1000
    return row

"""Usage over time: sums and latency percentiles of groups, from rollups.

The sums of every group are read first, then the histograms of the shown groups, so a page costs only what it
shows. If there are very many groups, DuckDB cuts the page (`page_of_groups`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import duckdb
import polars as pl

from fairlead.store.file import Connection
from fairlead.usage.sums.closed_bins import GROUPS_MAX, BinsReader, ClosedBins
from fairlead.usage.sums.facts import (
    LATENCIES,
    Filters,
    Selection,
    TooManyGroups,
    add_up,
    bins_of_page,
)
from fairlead.usage.sums.page_of_groups import Cut, Groups
from fairlead.usage.sums.percentile import merge_bins, percentiles, percentiles_of_merged
from fairlead.usage.sums.recent import LONGEST_MS, read_recent
from fairlead.usage.sums.rollup import Level
from fairlead.usage.sums.span import Part, Span

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
    "reason",
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
    "reason": ("error_kind", "error_kind"),
    # The group that the key was in itself: the last of the path.
    "group": ("group_id", "string_split(group_path, '/')[-1]"),
}
# Dimensions and filters that no rollup has: they are read from the requests themselves, as long as
# those are kept, and without those of keys that ask for no log.
_OF_REQUESTS = frozenset({"session", "status", "reason"})
_FILTERS_OF_REQUESTS = (
    "request_id",
    "session_tag",
    "session_id",
    "status",
    "outcome",
    "error_kind",
    "session",
)
BUCKETS = frozenset({"minute", "hour", "day", "month"})
_SHARES = (50, 95, 99)

Order = Literal["requests", "errors", "tokens", "cost"]
_ORDERS: Final[dict[Order, pl.Expr]] = {
    "requests": pl.col("requests"),
    "errors": pl.col("errors"),
    "cost": pl.col("cost_usd_micros"),
    "tokens": pl.col("tokens_input") + pl.col("tokens_output"),
}
# The measures of a row.
MEASURES: Final = (
    "requests",
    "errors",
    "tokens_input",
    "tokens_output",
    "tokens_cached",
    "tokens_reasoning",
    "tokens_cache_write",
    "cost_usd_micros",
    "unpriced_requests",
    "latency_us",
)


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
    error_kind: str | None = None
    session: str | None = None

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
    "error_kind": "error_kind = $error_kind",
    "session": "coalesce(session_tag, session_id) = $session",
}


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """A page of groups: of which requests, over which span, in which groups.

    `order` is the measure by which groups are sorted within their bucket. `top` leaves that many groups, the
    largest over the whole span, and adds up the others of each bucket. `has_totals` asks for the sum of
    all groups too.
    """

    span: Span
    group_by: list[Dimension]
    filters: HistoryFilter = HistoryFilter()
    limit: int = 50
    offset: int = 0
    order: Order = "requests"
    top: int | None = None
    has_percentiles: bool = True
    has_totals: bool = False


class HistoryPage(NamedTuple):
    """Rows of groups, how many groups there are, and the sum of all where it was asked for. It may be answered
    again, so nobody changes its rows.
    """

    rows: list[dict[str, Any]]
    total: int
    totals: dict[str, Any] | None


def read_history(
    con: Connection, query: HistoryQuery, reader: BinsReader | None = None
) -> HistoryPage:
    """Groups, newest bucket first, then the largest.

    An error is a request whose outcome is not `completed`. Requests of keys without a log count here. A request
    that was refused before a provider was chosen has no model. Percentiles are null if they are not requested,
    and with `top`, whose groups have other requests in each bucket.
    """
    reader = reader or BinsReader.over(ClosedBins())
    if _is_recent(con, query, reader):
        recent = read_recent(con, query.span)
        rows = [_row(recent)] if recent else []
        totals = rows[0] if rows and query.has_totals else None
        return HistoryPage(rows[query.offset : query.offset + query.limit], len(rows), totals)
    source = source_of(con, query, reader)
    return reader.answer(
        ("history", *what_of(query)),
        source.parts(),
        lambda: _read_page(source, query),
        lambda page: len(page.rows),
    )


def _read_page(source: Source, query: HistoryQuery) -> HistoryPage:
    """The page; `TooManyGroups` where DuckDB cannot hold what it needs for that."""
    try:
        if query.top is None and "session" in query.group_by:
            return _page_of_many(source, query)
        try:
            sums = source.sums()
        except TooManyGroups:
            if query.top is not None:
                raise
            return _page_of_many(source, query)
        return page_of(source, query, sums)
    except duckdb.OutOfMemoryException:
        raise TooManyGroups(GROUPS_MAX) from None


def _page_of_many(source: Source, query: HistoryQuery) -> HistoryPage:
    """The page of a query with more groups than are held in memory."""
    groups = Groups(source.con, source.parts(), source.selection)
    cut = Cut(query.order, query.limit, query.offset)
    whole = _Sorted(groups.page(cut, MEASURES), groups.count())
    return _page_with_latencies(source, query, whole, source.total)


def source_of(con: Connection, query: HistoryQuery, reader: BinsReader) -> Source:
    """The tables for the groups of a query."""
    group_by = query.group_by
    of_requests = query.filters.is_of_requests or not _OF_REQUESTS.isdisjoint(group_by)
    coarsest: Level = "minute" if "minute" in group_by else "hour" if "hour" in group_by else "day"
    if of_requests:
        coarsest = "requests"
    groups = dict(_DIMENSIONS[name] for name in group_by)
    filters = query.filters.conditions(of_requests=of_requests)
    return Source(con, query.span, Selection(groups, filters, coarsest), reader)


def what_of(query: HistoryQuery) -> tuple[object, ...]:
    """Everything of a query but its span, as the name of its answer."""
    return (
        *query.group_by,
        query.filters,
        query.limit,
        query.offset,
        query.order,
        query.top,
        query.has_percentiles,
        query.has_totals,
    )


def page_of(source: Source, query: HistoryQuery, sums: pl.DataFrame) -> HistoryPage:
    """The page of a query whose groups have these sums."""
    keys = list(source.selection.groups)
    if query.top is not None:
        rows_of_page = _page(_largest(sums, keys, query.top, query.order), query)
        return HistoryPage(
            [_row(row) for row in rows_of_page.page.iter_rows(named=True)],
            rows_of_page.height,
            _totals(sums, None) if query.has_totals else None,
        )
    return _page_with_latencies(source, query, _page(sums, query), lambda: sums)


def _page_with_latencies(
    source: Source, query: HistoryQuery, whole: _Sorted, sums_of_all: Callable[[], pl.DataFrame]
) -> HistoryPage:
    """The page with its percentiles and totals, where they are asked for."""
    if not query.has_percentiles or whole.page.is_empty():
        rows = [_row(row) for row in whole.page.iter_rows(named=True)]
        totals = _totals(sums_of_all(), None) if query.has_totals else None
        return HistoryPage(rows, whole.height, totals)
    latencies, bins = _percentiles(source, whole, query)
    on = ["row"] if "row" in latencies.columns else list(source.selection.groups)
    page = whole.page.with_row_index("row")
    shown = page.join(latencies, on=on, how="left", nulls_equal=True, maintain_order="left")
    rows = [_row(row) for row in shown.drop("row").iter_rows(named=True)]
    totals = None
    if query.has_totals:
        totals = _totals(sums_of_all(), bins if bins is not None else source.all_bins())
    return HistoryPage(rows, whole.height, totals)


@dataclass(frozen=True, slots=True)
class _Sorted:
    """A page of sorted groups, and the number of all."""

    page: pl.DataFrame
    height: int


@dataclass(frozen=True, slots=True)
class Source:
    """The tables for sums and histograms of groups."""

    con: Connection
    span: Span
    selection: Selection
    reader: BinsReader

    def parts(self) -> list[Part]:
        """The parts of the span that are read."""
        return self.reader.parts(self.con, self.span, self.selection.coarsest)

    def sums(self) -> pl.DataFrame:
        """The sums of every group. `TooManyGroups`."""
        return self.reader.sums(self.con, self.span, self.selection, MEASURES)

    def total(self) -> pl.DataFrame:
        """The sums of everything, in one row; none where there is nothing."""
        everything = replace(self.selection, groups={})
        return self.reader.sums(self.con, self.span, everything, MEASURES)

    def bins(self) -> pl.DataFrame:
        """The histograms of every group."""
        return self.reader.read(self.con, self.span, self.selection, LATENCIES)

    def all_bins(self) -> pl.DataFrame:
        """The histogram of everything."""
        everything = replace(self.selection, groups={})
        return self.reader.read(self.con, self.span, everything, LATENCIES)


def _is_recent(con: Connection, query: HistoryQuery, reader: BinsReader) -> bool:
    span = query.span
    return (
        not query.group_by
        and query.filters == HistoryFilter()
        and span.until_ms - span.from_ms <= LONGEST_MS
        and reader.levels(con)["requests"] <= span.from_ms
    )


def _page(rows: pl.DataFrame, query: HistoryQuery) -> _Sorted:
    keys = [name for name in rows.columns if name not in (*MEASURES, "is_other")]
    first = [name for name in ("bucket_ms", "is_other") if name in rows.columns]
    names = [name for name in keys if name != "bucket_ms"]
    sizes = sizes_of(query.order)
    rows = rows.sort(
        [*map(pl.col, first), *sizes, *map(pl.col, names)],
        descending=[
            *(name == "bucket_ms" for name in first),
            *([True] * len(sizes)),
            *([False] * len(names)),
        ],
        nulls_last=True,
    )
    return _Sorted(rows.slice(query.offset, query.limit), rows.height)


def sizes_of(order: Order) -> list[pl.Expr]:
    """The measures that groups are sorted by: those that are equal by the order, such as all that cost nothing, by
    requests.
    """
    return [_ORDERS[order]] if order == "requests" else [_ORDERS[order], _ORDERS["requests"]]


def largest_of(sums: pl.DataFrame, names: list[str], many: int, order: Order) -> pl.DataFrame:
    """The names of the largest groups, largest first."""
    sizes = sizes_of(order)
    descending = [*([True] * len(sizes)), *([False] * len(names))]
    return (
        sums.sort([*sizes, *map(pl.col, names)], descending=descending, nulls_last=True)
        .head(many)
        .select(names)
    )


def _largest(rows: pl.DataFrame, keys: list[str], many: int, order: Order) -> pl.DataFrame:
    """The largest groups over all buckets in each bucket, and the sum of the others, which has `is_other`."""
    names = [name for name in keys if name != "bucket_ms"]
    if not names or rows.is_empty():
        return rows
    chosen = largest_of(add_up(rows, names), names, many, order)
    largest = rows.join(chosen, on=names, how="semi", nulls_equal=True)
    others = rows.join(chosen, on=names, how="anti", nulls_equal=True)
    if others.is_empty():
        return largest
    summed = add_up(others, [name for name in keys if name == "bucket_ms"])
    return pl.concat(
        [
            largest.with_columns(is_other=pl.lit(value=False)),
            summed.with_columns(is_other=pl.lit(value=True)),
        ],
        how="diagonal",
    )


def _percentiles(
    source: Source, whole: _Sorted, query: HistoryQuery
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """The percentiles of a page's rows, by their groups or their number (`row`), and the histograms of all groups
    where they were read.
    """
    names = {f"p{share}": f"p{share}_latency_us" for share in _SHARES}
    keys = list(source.selection.groups)
    page = whole.page.with_row_index("row")
    if whole.height == page.height:
        # Every group is on the page: histograms of closed buckets may be there already.
        bins = merge_bins(source.bins(), keys)
        if not keys:
            bins = bins.with_columns(row=pl.lit(0, pl.UInt32))
        return percentiles_of_merged(bins, keys or ["row"], _SHARES).rename(names), bins
    shown = source.span
    if "bucket_ms" in keys:
        # Rows are sorted by bucket, so those of a page are close in time.
        shown = _around(page, source.span, query.group_by)
    bins = bins_of_page(source.con, shown, source.selection, page, LATENCIES)
    latencies = percentiles(bins, ["row"], _SHARES).rename(names)
    return latencies.with_columns(pl.col("row").cast(pl.UInt32)), None


def _totals(sums: pl.DataFrame, bins: pl.DataFrame | None) -> dict[str, Any] | None:
    """The sum of all groups; without histograms it has no percentiles. None for nothing."""
    if sums.is_empty():
        return None
    row = add_up(sums, []).row(0, named=True)
    if bins is not None:
        latencies = percentiles(bins, [], _SHARES).row(0, named=True)
        row |= {f"{name}_latency_us": value for name, value in latencies.items()}
    return _row(row)


def _around(page: pl.DataFrame, span: Span, group_by: list[Dimension]) -> Span:
    buckets = page["bucket_ms"]
    first, last = int(buckets.min()), int(buckets.max())  # type: ignore[arg-type]
    longest_ms = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "month": 31 * 86_400_000}
    size_ms = next(longest_ms[name] for name in group_by if name in longest_ms)
    until_ms = last + size_ms
    if until_ms >= span.until_ms:
        return Span(max(span.from_ms, first), span.until_ms, span.is_open)
    return Span(max(span.from_ms, first), until_ms)


def _row(row: dict[str, Any]) -> dict[str, Any]:
    row["avg_latency_ms"] = row["latency_us"] / row["requests"] / 1000
    for share in _SHARES:
        value_us = row.get(f"p{share}_latency_us")
        row[f"p{share}_latency_ms"] = None if value_us is None else value_us / 1000
    return row

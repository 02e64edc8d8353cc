"""The largest groups of a history over time, bucket by bucket, from the statement that reads all groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import polars as pl

from fairlead.store.file import Connection
from fairlead.usage.sums.closed_bins import BinsReader
from fairlead.usage.sums.facts import Selection, add_up
from fairlead.usage.sums.history import (
    HistoryPage,
    HistoryQuery,
    Source,
    largest_of,
    page_of,
    source_of,
    what_of,
)
from fairlead.usage.sums.rollup import BUCKET_MS, Level

SeriesBucket = Literal["minute", "quarter", "hour", "day"]
# The length of a bucket, and the coarsest level that it can be added up from.
_LENGTHS: Final[dict[SeriesBucket, tuple[int, Level]]] = {
    "minute": (BUCKET_MS["minute"], "minute"),
    "quarter": (15 * BUCKET_MS["minute"], "minute"),
    "hour": (BUCKET_MS["hour"], "hour"),
    "day": (BUCKET_MS["day"], "day"),
}
BUCKETS_MAX: Final = 1_500
# The measures of a series.
SUMMED: Final = (
    "requests",
    "errors",
    "tokens_input",
    "tokens_output",
    "cost_usd_micros",
    "unpriced_requests",
)


@dataclass(frozen=True, slots=True)
class SeriesQuery:
    """The length of a bucket, and how many groups are listed separately: the largest of the whole time."""

    bucket: SeriesBucket
    top: int


@dataclass(frozen=True, slots=True)
class SeriesGroup:
    """A group's sums in each bucket, by measure. The sum of all other groups has no names."""

    names: dict[str, Any]
    is_other: bool
    sums: dict[str, list[int]]


class HistorySeries(NamedTuple):
    """The start of each bucket, and the groups, largest first and the sum of the others last."""

    buckets: list[int]
    groups: list[SeriesGroup]


class HistoryWithSeries(NamedTuple):
    """A page of groups, and the largest of all groups over time."""

    page: HistoryPage
    series: HistorySeries


def buckets_of(query: HistoryQuery, bucket: SeriesBucket) -> range:
    """The start of each bucket of a query's span."""
    (size_ms, _), span = _LENGTHS[bucket], query.span
    return range(span.from_ms - span.from_ms % size_ms, span.until_ms, size_ms)


def read_with_series(
    con: Connection, query: HistoryQuery, wanted: SeriesQuery, reader: BinsReader
) -> HistoryWithSeries:
    """The page of a query that has no bucket and no `top`, and its groups over time by the query's order."""
    source = source_of(con, query, reader)
    of_series = _over_time(source, wanted.bucket)
    buckets = buckets_of(query, wanted.bucket)

    def make() -> HistoryWithSeries:
        names = list(source.selection.groups)
        fine = of_series.sums()
        # Short buckets are kept for a shorter time, and may miss some of what long ones have.
        sums = add_up(fine, names) if _is_of_one_time(source, of_series) else source.sums()
        largest = largest_of(sums, names, wanted.top, query.order)
        return HistoryWithSeries(
            page_of(source, query, sums), _series(fine, names, largest, buckets)
        )

    key = ("series", wanted, buckets, *what_of(query))
    parts = [*source.parts(), *of_series.parts()]
    return reader.answer(key, parts, make, lambda made: len(made.page.rows) + len(buckets))


def _over_time(source: Source, bucket: SeriesBucket) -> Source:
    selection, (size_ms, level) = source.selection, _LENGTHS[bucket]
    groups = {"bucket_ms": f"bucket_ms - bucket_ms % {size_ms}", **selection.groups}
    coarsest = "requests" if selection.coarsest == "requests" else level
    return replace(source, selection=Selection(groups, selection.filters, coarsest))


def _is_of_one_time(one: Source, other: Source) -> bool:
    """Whether both read the same records. A span that ends now is rounded up to buckets, in which nothing is yet."""
    parts, others = one.parts(), other.parts()
    ends = parts[-1].until_ms == others[-1].until_ms
    return parts[0].from_ms == others[0].from_ms and (one.span.is_open or ends)


def _series(
    fine: pl.DataFrame, names: list[str], largest: pl.DataFrame, buckets: range
) -> HistorySeries:
    many = max(largest.height, 1)
    if names:
        placed = fine.join(
            largest.with_row_index("at"), on=names, how="left", nulls_equal=True
        ).with_columns(pl.col("at").fill_null(many))
    else:
        placed = fine.with_columns(at=pl.lit(0))
    sums = add_up(placed.select("at", "bucket_ms", *SUMMED), ["at", "bucket_ms"])
    found: dict[int, dict[str, list[int]]] = {}
    for at, bucket_ms, *values in sums.iter_rows():
        columns = found.setdefault(at, {name: [0] * len(buckets) for name in SUMMED})
        # A level that is kept no longer reaches back to whole buckets before the span.
        if bucket_ms in buckets:
            for name, value in zip(SUMMED, values, strict=True):
                columns[name][buckets.index(bucket_ms)] = value
    of_names = [*largest.iter_rows(named=True)] if names else [{}]
    groups = [
        SeriesGroup(of_names[at] if at < many else {}, at == many, found[at])
        for at in sorted(found)
    ]
    return HistorySeries(list(buckets), groups)

"""Measures of usage over a span, as SQL: over rollups where they exist, and over single records at
the edges.

Every statement is built from constants; values that a caller sent are bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from fairlead.errors import InvalidRequest
from fairlead.store.file import Connection, file_of
from fairlead.usage.sums.rollup import (
    DIMENSIONS,
    HISTOGRAM_SUMS,
    MAXES,
    SUM_MAX,
    SUMS,
    Level,
    bounded_sum,
    measures,
    read_kept,
)
from fairlead.usage.sums.span import Part, Span, cut

if TYPE_CHECKING:
    import duckdb
    import polars as pl

_NAMES = ", ".join(DIMENSIONS)
EVERY_MEASURE: Final = (*SUMS, *MAXES)
# Columns that are no text.
_NUMBERS = frozenset({*EVERY_MEASURE, "bucket_ms", "status"})
_OF_REQUESTS = "session_tag, session_id, status, error_kind, "

Measure = Literal["latency", "latency_failed", "cache_write"]
ROWS_AT_ONCE: Final = 2_000
LATENCIES: Final[tuple[Measure, ...]] = ("latency", "latency_failed")


class TooManyGroups(InvalidRequest):
    """A report would hold more groups in memory than it may."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"This report has more than {most} groups, or needs more memory than it may take. Shorten the span "
            "(`from`, `to`), filter by `keyId`, `model` or another name, or leave a dimension out of `groupBy`.",
            param="groupBy",
        )


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on dimensions: each names columns, or expressions of them, and a value."""

    conditions: Sequence[str] = ()
    bound: dict[str, Any] = field(default_factory=dict)


EVERYTHING = Filters()


@dataclass(frozen=True, slots=True)
class Selection:
    """The records that a statement reads, and their groups: `groups` gives for each column its SQL over the
    dimensions and `bucket_ms`. No rollup above `coarsest` is read.
    """

    groups: dict[str, str] = field(default_factory=dict)
    filters: Filters = EVERYTHING
    coarsest: Level = "day"

    @property
    def where(self) -> str:
        """The conditions to append to a WHERE clause that has one already."""
        return "".join(f" AND ({condition})" for condition in self.filters.conditions)

    @property
    def columns(self) -> str:
        """The groups' columns as the beginning of a SELECT list."""
        return "".join(f"{sql} AS {column}, " for column, sql in self.groups.items())

    @property
    def names(self) -> list[str]:
        """The dimension columns of the groups."""
        return [column for column in self.groups if column != "bucket_ms"]


def sums_of(
    con: Connection,
    span: Span,
    selection: Selection,
    wanted: Sequence[str] = EVERY_MEASURE,
) -> pl.DataFrame:
    """One row for each group with the measures in `wanted` (`rollup.SUMS`, `rollup.MAXES`). A span without
    requests has no rows.

    To plan the statement is most of what it costs, so it names no more than it needs.
    """
    return sums_of_parts(con, parts_of(con, span, selection.coarsest), selection, wanted)


def sums_of_parts(
    con: Connection,
    parts: Sequence[Part],
    selection: Selection,
    wanted: Sequence[str] = EVERY_MEASURE,
    most: int | None = None,
) -> pl.DataFrame:
    """Like `sums_of`, for parts of a span. `TooManyGroups` where there are more than `most`."""
    source, bound = source_of_parts(parts, selection, wanted)
    # Without groups, an aggregate over nothing would have one row of nulls.
    having = "" if selection.groups else "HAVING count(*) > 0"
    limit = "" if most is None else f" LIMIT {most + 1}"
    # A relation would plan the statement twice.
    found = con.execute(
        f"SELECT {selection.columns}{measures(wanted)} FROM ({source}) GROUP BY ALL {having}{limit}",
        bound,
    )
    columns = [*selection.groups, *wanted]
    # Some at a time: other threads wait while rows become Python's objects.
    frames = []
    while rows := found.fetchmany(ROWS_AT_ONCE):
        frames.append(_rows_frame(rows, columns))
    if most is not None and sum(frame.height for frame in frames) > most:
        raise TooManyGroups(most)
    if len(frames) == 1:
        return frames[0]
    import polars as pl  # noqa: PLC0415 - an idle control does without it

    return pl.concat(frames) if frames else _rows_frame([], columns)


def source_of_parts(
    parts: Sequence[Part], selection: Selection, wanted: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """The rows that a selection is read from, as SQL of their dimensions and measures, and its parameters."""
    where = selection.where
    measured = ", ".join(wanted)
    by_requests = selection.coarsest == "requests"
    has_names = bool(where or selection.names)

    def select(part: Part, at: int) -> str:
        if part.level == "requests":
            columns = _OF_REQUESTS if by_requests else ""
            columns += f"{_NAMES}, " if has_names else ""
            return (
                f"SELECT ts_ms AS bucket_ms, {columns}{measured} FROM request_facts "
                f"WHERE ts_ms >= $from_{at} AND ts_ms < $until_{at}{where}"
            )
        names = f"{_NAMES}, " if has_names else ""
        joined = "JOIN dimensions d ON d.id = r.dimension_id " if has_names else ""
        return (
            f"SELECT bucket_ms, {names}{measured} FROM rollup_{part.level} r {joined}"
            f"WHERE bucket_ms >= $from_{at} AND bucket_ms < $until_{at}{where}"
        )

    return _source(parts, select, selection.filters.bound)


def bins_of(
    con: Connection,
    span: Span,
    selection: Selection,
    wanted: Sequence[Measure] = ("latency",),
) -> pl.DataFrame:
    """One row for each group and `bin`, with `requests` and `total`. The measures in `wanted` are added up."""
    return bins_of_parts(con, parts_of(con, span, selection.coarsest), selection, wanted)


def bins_of_parts(
    con: Connection, parts: Sequence[Part], selection: Selection, wanted: Sequence[Measure]
) -> pl.DataFrame:
    """Like `bins_of`, for parts of a span."""
    where = selection.where
    chosen = f" AND {_is_one_of(wanted)}"
    has_names = bool(where or selection.names)
    names = f"{_NAMES}, " if has_names else ""
    joined = "JOIN dimensions d ON d.id = h.dimension_id " if has_names else ""
    # Groups that no rollup has are asked for where only the records are read.
    of_requests = (
        _OF_REQUESTS if selection.groups.keys() & {"session", "status", "error_kind"} else ""
    )

    def select(part: Part, at: int) -> str:
        if part.level == "requests":
            return (
                f"SELECT ts_ms AS bucket_ms, {of_requests}{names}bin, 1::BIGINT AS requests, "
                "value AS total FROM request_values "
                f"WHERE ts_ms >= $from_{at} AND ts_ms < $until_{at}{chosen}{where}"
            )
        return (
            f"SELECT h.bucket_ms, {names}bin, requests, total "
            f"FROM histogram_{part.level} h {joined}"
            f"WHERE h.bucket_ms >= $from_{at} AND h.bucket_ms < $until_{at}{chosen}{where}"
        )

    source, bound = _source(parts, select, selection.filters.bound)
    sql = f"SELECT {selection.columns}bin, {HISTOGRAM_SUMS} FROM ({source}) GROUP BY ALL"
    return frame_of(file_of(con).sql(sql, params=bound))


def bins_of_page(
    con: Connection,
    span: Span,
    selection: Selection,
    page: pl.DataFrame,
    wanted: Sequence[Measure] = ("latency",),
) -> pl.DataFrame:
    """One row for each row of a page and `bin`, with `requests` and `total`; `row` counts the page's
    rows from 0. The measures are added up.

    `page` has the columns of the groups, each combination once. Names are looked up once for the
    page: histograms, which have many rows, meet numbers only.
    """
    select = _bins_of_page_part(selection, _is_one_of(wanted))
    parts = parts_of(con, span, selection.coarsest)
    source, bound = _source(parts, select, selection.filters.bound)
    sql = (
        f"WITH places AS MATERIALIZED ({_places_of_page(selection)}) SELECT row, bin, "
        f"{HISTOGRAM_SUMS} FROM ({source}) GROUP BY ALL"
    )
    file_of(con).register(
        "wanted_groups", page.select(list(selection.groups)).with_row_index("row").to_arrow()
    )
    try:
        return frame_of(file_of(con).sql(sql, params=bound))
    finally:
        file_of(con).unregister("wanted_groups")


def _places_of_page(selection: Selection) -> str:
    """The rows of `wanted_groups`, with the id of each row of `dimensions` that belongs to one of them."""
    names, where, groups = selection.names, selection.where, selection.groups
    at_ms = ", o.bucket_ms AS at_ms" if "bucket_ms" in groups else ""
    if selection.coarsest == "requests":
        # Only the records are read, whose groups are their own columns.
        return "SELECT o.row FROM wanted_groups o"
    if names:
        columns = ", ".join(f"{groups[column]} AS {column}" for column in names)
        return (
            f"SELECT d.id, o.row{at_ms} FROM (SELECT id, {columns} FROM dimensions "
            f"WHERE TRUE{where}) d JOIN wanted_groups o ON {same_groups('d', names)}"
        )
    if where:
        return (
            f"SELECT d.id, o.row{at_ms} FROM (SELECT id FROM dimensions WHERE TRUE{where}) d, "
            "wanted_groups o"
        )
    return f"SELECT o.row{at_ms} FROM wanted_groups o"


def _bins_of_page_part(selection: Selection, chosen: str) -> Callable[[Part, int], str]:
    """The statement of one part of the span: its bins (of the measures that `chosen` says) by row of the page."""
    groups, where = selection.groups, selection.where
    bucket = groups.get("bucket_ms")
    meets = " AND ".join(
        (["p.id = h.dimension_id"] if selection.names or where else [])
        + ([f"p.at_ms = {bucket}"] if bucket else [])
    )

    def select(part: Part, at: int) -> str:
        if part.level == "requests":
            return (
                "SELECT o.row, f.bin, count(*)::BIGINT AS requests, "
                f"{bounded_sum('f.value')} AS total "
                f"FROM (SELECT {selection.columns}bin, value FROM (SELECT ts_ms AS bucket_ms, * "
                f"FROM request_values WHERE ts_ms >= $from_{at} AND ts_ms < $until_{at} "
                f"AND {chosen}{where})) f JOIN wanted_groups o ON {same_groups('f', groups)} GROUP BY ALL"
            )
        return (
            f"SELECT p.row, h.bin, {bounded_sum('h.requests')} AS requests, "
            f"{bounded_sum('h.total')} AS total FROM histogram_{part.level} h "
            f"JOIN places p ON {meets or 'TRUE'} WHERE h.bucket_ms >= $from_{at} "
            f"AND h.bucket_ms < $until_{at} AND {chosen} GROUP BY ALL"
        )

    return select


def frame_of(found: duckdb.DuckDBPyRelation) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415 - an idle control does without it

    return pl.DataFrame(found.to_arrow_table())


def _rows_frame(rows: list[tuple[Any, ...]], columns: Sequence[str]) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415 - an idle control does without it

    kinds = {name: pl.Int64 if name in _NUMBERS else pl.String for name in columns}
    return pl.DataFrame(rows, kinds, orient="row")


def same_groups(table: str, columns: Iterable[str]) -> str:
    return " AND ".join(f"{table}.{column} IS NOT DISTINCT FROM o.{column}" for column in columns)


def add_up(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Rows of `sums_of` in coarser groups."""
    import polars as pl  # noqa: PLC0415 - an idle control does without it

    columns = rows.columns
    # A sum of many rows in 64 bits could wrap around silently.
    sums = (
        pl.col(name).cast(pl.Int128).sum().clip(-SUM_MAX, SUM_MAX).cast(pl.Int64)
        for name in SUMS
        if name in columns
    )
    totals = [*sums, *(pl.col(name).max() for name in MAXES if name in columns)]
    if keys:
        return rows.group_by(list(keys)).agg(totals)
    measured = [name for name in columns if name in EVERY_MEASURE]
    return rows.select(totals) if rows.height else rows.select(measured)


def _is_one_of(wanted: Sequence[Measure]) -> str:
    return f"measure IN ({', '.join(repr(measure) for measure in wanted)})"


def _source(
    parts: Sequence[Part], select: Callable[[Part, int], str], given: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    bound = dict(given)
    for at, part in enumerate(parts):
        bound |= {f"from_{at}": part.from_ms, f"until_{at}": part.until_ms}
    return " UNION ALL ".join(select(part, at) for at, part in enumerate(parts)), bound


def parts_of(con: Connection, span: Span, coarsest: Level) -> list[Part]:
    """The parts of a span, of which each level answers its own; where it has none, one that is empty."""
    return parts_between(read_kept(con), span, coarsest)


def parts_between(levels: dict[Level, int], span: Span, coarsest: Level) -> list[Part]:
    """As `parts_of`; `levels` has the time from which each level is complete."""
    return cut(span, levels, coarsest) or [Part("requests", 0, 0)]

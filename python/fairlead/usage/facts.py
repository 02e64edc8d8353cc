"""What usage comes to in a span, as SQL: rollups where there are any, the records themselves at the
edges. Every text here is made of the constants of the code; what a caller sent is bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from fairlead.store.file import Connection
from fairlead.usage.rollup import DIMENSIONS, MAXES, SUMS, Level, measures, read_kept
from fairlead.usage.span import Part, Span, cut

_MEASURES = (*SUMS, *MAXES)
_VALUES = ("measure", "bin", "requests", "total")


@dataclass(frozen=True, slots=True)
class Narrow:
    """Conditions on dimensions: each names columns, or expressions of them, and a value."""

    conditions: Sequence[str] = ()
    bound: dict[str, Any] = field(default_factory=dict)


EVERYTHING = Narrow()


def sums_of(
    con: Connection,
    span: Span,
    groups: dict[str, str],
    narrow: Narrow = EVERYTHING,
    coarsest: Level = "day",
) -> pl.DataFrame:
    """One row for each group with every measure (`rollup.SUMS`, `rollup.MAXES`).

    `groups`: column to SQL over the dimensions and `bucket_ms`. A span in which nothing is has no
    rows.
    """
    source, bound = _source(con, span, coarsest, "rollup", "request_facts", _MEASURES, narrow)
    columns = "".join(f"{sql} AS {column}, " for column, sql in groups.items())
    # Without groups an aggregate has a row of nulls over nothing.
    having = "" if groups else "HAVING count(*) > 0"
    found = con.sql(
        f"SELECT {columns}{measures()} FROM ({source}) GROUP BY ALL {having}", params=bound
    )
    return pl.DataFrame(found.to_arrow_table())


def bins_of(
    con: Connection,
    span: Span,
    groups: dict[str, str],
    narrow: Narrow = EVERYTHING,
    coarsest: Level = "day",
    only: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """One row for each group, `measure` and `bin`, with `requests` and `total`.

    `only`: groups to which the answer is held, so that a page costs what it shows.
    """
    source, bound = _source(con, span, coarsest, "histogram", "request_values", _VALUES, narrow)
    columns = "".join(f"{sql} AS {column}, " for column, sql in groups.items())
    rows = f"(SELECT {columns}measure, bin, requests, total FROM ({source})) f"
    if only is not None and groups:
        same = " AND ".join(f"f.{name} IS NOT DISTINCT FROM o.{name}" for name in groups)
        rows += f" SEMI JOIN wanted_groups o ON {same}"
        con.register("wanted_groups", only.select(list(groups)).to_arrow())
    names = "".join(f"f.{column}, " for column in groups)
    sql = (
        f"SELECT {names}f.measure, f.bin, sum(f.requests)::BIGINT AS requests, "
        f"sum(f.total)::BIGINT AS total FROM {rows} GROUP BY ALL"
    )
    try:
        return pl.DataFrame(con.sql(sql, params=bound).to_arrow_table())
    finally:
        if only is not None and groups:
            con.unregister("wanted_groups")


def _source(
    con: Connection,
    span: Span,
    coarsest: Level,
    rollup: str,
    raw: str,
    columns: Sequence[str],
    narrow: Narrow,
) -> tuple[str, dict[str, Any]]:
    bound = dict(narrow.bound)
    selects = []
    for number, part in enumerate(cut(span, read_kept(con), coarsest)):
        selects.append(_select(part, number, rollup, raw, columns, narrow))
        bound |= {f"from_{number}": part.from_ms, f"until_{number}": part.until_ms}
    if not selects:
        whole = Part("requests", 0, 0)
        selects.append(_select(whole, 0, rollup, raw, columns, narrow))
        bound |= {"from_0": 0, "until_0": 0}
    return " UNION ALL ".join(selects), bound


def _select(
    part: Part, number: int, rollup: str, raw: str, columns: Sequence[str], narrow: Narrow
) -> str:
    where = "".join(f" AND ({condition})" for condition in narrow.conditions)
    if part.level == "requests":
        # A record is a value of one, of its own size.
        own = (
            {"total": "value AS total", "requests": "1 AS requests"}
            if raw == "request_values"
            else {}
        )
        told = ", ".join(own.get(name, name) for name in columns)
        return (
            f"SELECT ts_ms AS bucket_ms, {', '.join(DIMENSIONS)}, {told} FROM {raw} "
            f"WHERE ts_ms >= $from_{number} AND ts_ms < $until_{number}{where}"
        )
    told = ", ".join(columns)
    return (
        f"SELECT bucket_ms, {', '.join(DIMENSIONS)}, {told} FROM {rollup}_{part.level} r "
        "JOIN dimensions d ON d.id = r.dimension_id "
        f"WHERE bucket_ms >= $from_{number} AND bucket_ms < $until_{number}{where}"
    )

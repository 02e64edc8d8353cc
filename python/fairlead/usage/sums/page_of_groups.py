"""A page of very many groups, such as a log's sessions: DuckDB sorts, counts and cuts them, within its memory.

Three statements read the records: the number of groups, the names of the groups on the page, and the measures of those
alone. None of them keeps more of a group than its name and what it is sorted by, and the others than one page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fairlead.store.file import Connection, file_of
from fairlead.usage.sums.facts import Selection, frame_of, same_groups, source_of_parts
from fairlead.usage.sums.rollup import measures
from fairlead.usage.sums.span import Part

if TYPE_CHECKING:
    import polars as pl

# The sort key of each order, and the measures that it needs.
_ORDERS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "requests": ("requests", ("requests",)),
    "errors": ("errors", ("errors", "requests")),
    "cost": ("cost_usd_micros", ("cost_usd_micros", "requests")),
    "tokens": (
        "tokens_input + tokens_output",
        ("tokens_input", "tokens_output", "requests"),
    ),
}


@dataclass(frozen=True, slots=True)
class Cut:
    """Which of the sorted groups are wanted."""

    order: str
    limit: int
    offset: int


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a selection over parts of a span."""

    con: Connection
    parts: Sequence[Part]
    selection: Selection

    def count(self) -> int:
        """How many there are."""
        source, bound = source_of_parts(self.parts, self.selection, ("requests",))
        columns = self.selection.columns.removesuffix(", ")
        [(count,)] = self.con.execute(
            f"SELECT count(*) FROM (SELECT {columns} FROM ({source}) GROUP BY ALL)", bound
        ).fetchall()
        return int(count)

    def page(self, cut: Cut, wanted: Sequence[str]) -> pl.DataFrame:
        """The groups of a page with the measures in `wanted`: newest bucket first, then the largest, then by name."""
        names = self._names(cut)
        source, bound = source_of_parts(self.parts, self.selection, wanted)
        keys = list(self.selection.groups)
        shown = ", ".join(f"o.{key}" for key in keys)
        sql = (
            f"SELECT o.row, {shown}, {measures(wanted)} "
            f"FROM (SELECT {self.selection.columns}{', '.join(wanted)} FROM ({source})) f "
            f"JOIN page_groups o ON {same_groups('f', keys)} GROUP BY ALL"
        )
        file = file_of(self.con)
        file.register("page_groups", names.with_row_index("row").to_arrow())
        try:
            found = frame_of(file.sql(sql, params=bound))
        finally:
            file.unregister("page_groups")
        return found.sort("row").select(*keys, *wanted)

    def _names(self, cut: Cut) -> pl.DataFrame:
        first, needed = _ORDERS[cut.order]
        source, bound = source_of_parts(self.parts, self.selection, needed)
        sizes = [first] if first == "requests" else [first, "requests"]
        order = ", ".join(
            [
                *(["bucket_ms DESC"] if "bucket_ms" in self.selection.groups else []),
                *(f"{size} DESC" for size in sizes),
                *(f"{name} ASC NULLS LAST" for name in self.selection.names),
            ]
        )
        keys = ", ".join(self.selection.groups)
        limits: dict[str, Any] = {"page_limit": cut.limit, "page_offset": cut.offset}
        sql = (
            f"SELECT {keys} FROM (SELECT {self.selection.columns}{measures(needed)} "
            f"FROM ({source}) GROUP BY ALL) ORDER BY {order} LIMIT $page_limit OFFSET $page_offset"
        )
        return frame_of(file_of(self.con).sql(sql, params=bound | limits))

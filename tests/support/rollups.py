"""Judging the rollups of `usage.duckdb` by its records."""

from __future__ import annotations

from fairlead.store.file import Connection
from fairlead.usage.sums.rollup import BUCKET_MS, DIMENSIONS, ROLLUPS, measures


def assert_levels_agree(con: Connection) -> None:
    """Every level has what the records come to, group by group and bin by bin."""
    names = ", ".join(DIMENSIONS)
    for level in ROLLUPS:
        size = BUCKET_MS[level]
        facts = f"SELECT ts_ms - ts_ms % {size} AS bucket_ms, {names}"
        joined = "JOIN dimensions d ON d.id = r.dimension_id"
        expected = con.execute(
            f"{facts}, {measures()} FROM request_facts GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        got = con.execute(
            f"SELECT bucket_ms, {names}, {measures()} FROM rollup_{level} r {joined} "
            "GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        assert got == expected, level
        expected = con.execute(
            f"{facts}, measure, bin, count(*), sum(value) FROM request_values GROUP BY ALL "
            "ORDER BY ALL"
        ).fetchall()
        got = con.execute(
            f"SELECT bucket_ms, {names}, measure, bin, sum(requests), sum(total) "
            f"FROM histogram_{level} r {joined} GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        assert got == expected, level

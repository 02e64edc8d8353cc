"""The statements of a round of ingestion: the records, and their share of the rollups.

Rounds are frequent and often small, so planning their statements would be most of their cost. They
are planned once for a connection: over a source that yields the round's rows, and over temporary
tables that are empty between rounds. The engine plans a prepared statement without looking at the
tables' content, and plans it again after every change of the connection's catalog, so nothing else
in this writer may make temporary tables.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from fairlead.store.file import Connection, file_of
from fairlead.store.table import read_number
from fairlead.usage.ingestion.record import parse_lines
from fairlead.usage.sums.rollup import (
    BUCKET_MS,
    DIMENSIONS,
    HISTOGRAM_MEASURES,
    MAXES,
    ROLLUPS,
    SUMS,
    bounded_sum,
    measures,
)

_NAMES = ", ".join(DIMENSIONS)
_SAME = " AND ".join(f"d.{name} IS NOT DISTINCT FROM f.{name}" for name in DIMENSIONS)
_MINUTE = f"ts_ms - ts_ms % {BUCKET_MS['minute']} AS bucket_ms"

_MEASURES: Final = {
    "rollup": ", ".join((*SUMS, *MAXES)),
    "histogram": "measure, bin, requests, total",
}
_ADDED_UP: Final = {
    "rollup": measures(),
    "histogram": HISTOGRAM_MEASURES,
}

# The columns of a round's temporary tables. Names are added up first, so that few ids are looked up.
_TABLES: Final = {
    "settled_rollup": f"SELECT {_MINUTE}, {_NAMES}, {_ADDED_UP['rollup']} "
    "FROM settled_facts GROUP BY ALL",
    "settled_histogram": f"SELECT {_MINUTE}, {_NAMES}, measure, bin, count(*) AS requests, "
    f"{bounded_sum('value')} AS total FROM usage_values('settled_facts') GROUP BY ALL",
} | {
    f"added_{table}": f"SELECT bucket_ms, d.id AS dimension_id, {columns} "
    f"FROM settled_{table} f JOIN dimensions d ON {_SAME}"
    for table, columns in _MEASURES.items()
}

# No later request is older than the one before, but segments of several workers come in any order.
_NOTE_USES = """
INSERT INTO key_uses
SELECT key_id, max(last_ts_ms) FROM settled_rollup WHERE key_id IS NOT NULL GROUP BY key_id
ON CONFLICT (key_id) DO UPDATE SET last_used_ms = greatest(last_used_ms, excluded.last_used_ms)
"""

_ADD_DIMENSIONS = f"""
INSERT INTO dimensions
SELECT (SELECT coalesce(max(id), 0) FROM dimensions) + row_number() OVER (), {_NAMES}
FROM (SELECT DISTINCT {_NAMES} FROM settled_rollup) f
WHERE NOT EXISTS (SELECT 1 FROM dimensions d WHERE {_SAME})
"""


class _Source:
    """The rows of the round, under one name in every statement."""

    def __init__(self) -> None:
        self.rows = self.no_rows = parse_lines(b"").rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)


class Intake:
    """The statements of a round. All of it runs in the writer."""

    def __init__(self) -> None:
        self._source = _Source()

    def make(self, con: Connection) -> None:
        """Makes the tables and the source of the statements, once for a connection."""
        # DuckDB refuses a new source while the result of an earlier write is open.
        con.execute("DROP VIEW IF EXISTS settled_facts").fetchall()
        file_of(con).register("settled", self._source)
        con.execute("CREATE TEMP VIEW settled_facts AS FROM usage_facts('settled')")
        for table, rows in _TABLES.items():
            con.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {rows} LIMIT 0")

    def plan(self, con: Connection) -> None:
        """Plans the statements, in a transaction after `make`'s: inside that one the catalog is not
        yet final, and each later round would plan again.
        """
        _prepare(con, "take", "INSERT INTO requests BY NAME FROM settled")
        for table, rows in _TABLES.items():
            _prepare(con, table, f"INSERT INTO {table} {rows}")
        _prepare(con, "note_uses", _NOTE_USES)
        _prepare(con, "add_dimensions", _ADD_DIMENSIONS)
        for table, columns in _MEASURES.items():
            for level in ROLLUPS:
                into = f"INSERT INTO {table}_{level} BY NAME SELECT "
                bucket = f"bucket_ms - bucket_ms % {BUCKET_MS[level]} AS bucket_ms"
                keys = f"{bucket}, dimension_id, TRUE AS is_delta"
                _prepare(con, f"{table}_{level}", f"{into}{keys}, {columns} FROM added_{table}")
                added_up = f"{keys}, {_ADDED_UP[table]} FROM added_{table} GROUP BY ALL"
                _prepare(con, f"{table}_{level}_of_many", into + added_up)

    def add(self, con: Connection, rows: pl.DataFrame) -> None:
        """Adds records to the table `requests` and to every level of the rollups."""
        if rows.is_empty():
            return
        self._source.rows = rows
        try:
            con.execute("EXECUTE take")
            groups = read_number(con, "EXECUTE settled_rollup")
            con.execute("EXECUTE settled_histogram")
        finally:
            self._source.rows = self._source.no_rows
        con.execute("EXECUTE note_uses")
        # New dimensions are rare: they are groups for which no id was found.
        if read_number(con, "EXECUTE added_rollup") < groups:
            con.execute("TRUNCATE added_rollup")
            con.execute("EXECUTE add_dimensions")
            con.execute("EXECUTE added_rollup")
        con.execute("EXECUTE added_histogram")
        # Rows within one minute need no adding up for an hour or a day.
        of_many = "_of_many" if _minutes(rows) > 1 else ""
        for table in _MEASURES:
            for level in ROLLUPS:
                con.execute(f"EXECUTE {table}_{level}{'' if level == 'minute' else of_many}")
        for table in _TABLES:
            con.execute(f"TRUNCATE {table}")


def _prepare(con: Connection, name: str, sql: str) -> None:
    con.execute(f"PREPARE {name} AS {sql}")


def _minutes(rows: pl.DataFrame) -> int:
    return int(rows.select((pl.col("ts_ms") // BUCKET_MS["minute"]).n_unique()).item())

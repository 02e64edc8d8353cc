"""Whole tables of a DuckDB file, read and written for a copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from fairlead.store.file import FileConnection
from fairlead.store.rows import BATCH_ROWS, Batch, TableSum, is_copied


class FileTables:
    """`Target` over an open file. Rows go in by columns: row by row takes a thousand times as long."""

    def __init__(self, con: FileConnection, schema: str = "main") -> None:
        self._con = con
        self._schema = schema
        self._types: dict[str, dict[str, str]] = {}

    def columns(self) -> dict[str, list[str]]:
        for table, column, kind in self._con.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() "
            "WHERE database_name = current_database() AND schema_name = ? ORDER BY 1, 2",
            [self._schema],
        ).fetchall():
            if is_copied(table):
                self._types.setdefault(table, {})[column] = kind
        return {table: list(types) for table, types in self._types.items()}

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[Batch]:
        cursor = self._con.cursor()
        found = cursor.execute(f"SELECT {_list(columns)} FROM {_name(table)}")
        while batch := found.fetchmany(BATCH_ROWS):
            yield batch

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._con.begin()
        try:
            yield
            self._con.commit()
        except BaseException:
            self._con.rollback()
            raise

    def put(self, table: str, columns: Sequence[str], batches: Iterable[Batch]) -> None:
        import pyarrow as pa  # noqa: PLC0415 - for a copy alone

        types = self._types[table]
        schema = pa.schema([(column, _arrow_types()[types[column]]) for column in columns])
        self._con.execute(f"DELETE FROM {_name(table)}")
        for batch in batches:
            values = [list(column) for column in zip(*batch, strict=True)]
            arrays = [
                pa.array(each, type=field.type) for each, field in zip(values, schema, strict=True)
            ]
            self._con.register("copied_rows", pa.Table.from_arrays(arrays, schema=schema))
            try:
                self._con.execute(
                    f"INSERT INTO {_name(table)} ({_list(columns)}) SELECT * FROM copied_rows"
                )
            finally:
                self._con.unregister("copied_rows")

    def copied(self) -> dict[str, TableSum]:
        table = self._con.execute(
            "SELECT 1 FROM duckdb_tables() WHERE table_name = 'copied_tables'"
        ).fetchone()
        if table is None:
            return {}
        found = self._con.execute("SELECT name, rows, sha256 FROM copied_tables").fetchall()
        return {name: TableSum(rows, digest) for name, rows, digest in found}

    def note(self, table: str, total: TableSum) -> None:
        self._con.execute(
            "CREATE TABLE IF NOT EXISTS copied_tables (name VARCHAR, rows BIGINT, sha256 VARCHAR)"
        )
        self._con.execute("DELETE FROM copied_tables WHERE name = ?", [table])
        self._con.execute(
            "INSERT INTO copied_tables VALUES (?, ?, ?)", [table, total.rows, total.sha256]
        )

    def finish(self) -> None:
        self._con.execute("DROP TABLE copied_tables")
        self._con.execute("CHECKPOINT")


@cache
def _arrow_types() -> dict[str, object]:
    """The Arrow types of the column types in fairlead's tables."""
    import pyarrow as pa  # noqa: PLC0415 - for a copy alone

    return {
        "BIGINT": pa.int64(),
        "BLOB": pa.binary(),
        "BOOLEAN": pa.bool_(),
        "DATE": pa.date32(),
        "DOUBLE": pa.float64(),
        "INTEGER": pa.int32(),
        "INTEGER[]": pa.list_(pa.int32()),
        "VARCHAR": pa.string(),
        "VARCHAR[]": pa.list_(pa.string()),
    }


def _list(columns: Sequence[str]) -> str:
    return ", ".join(_name(column) for column in columns)


def _name(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'"{quoted}"'

"""Whole tables of a PostgreSQL database, read and written for a copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import psycopg
from psycopg import RawServerCursor, sql

from fairlead.errors import Refusal
from fairlead.store.connection import Connection
from fairlead.store.postgresql.connection import SCHEMA, PostgresqlConnection, Raw
from fairlead.store.postgresql.schema import first_line
from fairlead.store.rows import BATCH_ROWS, Batch, TableSum, is_copied


class PostgresqlTables:
    """`Target` over a connection. Rows are read inside a transaction, which is begun here or by the caller."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw

    def columns(self) -> dict[str, list[str]]:
        tables: dict[str, list[str]] = {}
        found = self._raw.execute(
            "SELECT table_name::TEXT, column_name::TEXT FROM information_schema.columns "
            "WHERE table_schema = $1",
            [SCHEMA],
        )
        for table, column in sorted(found.fetchall()):
            if is_copied(table):
                tables.setdefault(table, []).append(column)
        return tables

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[Batch]:
        query = sql.SQL("SELECT {} FROM {}").format(_list(columns), sql.Identifier(table))
        with self._raw.transaction(), RawServerCursor(self._raw, "copied_rows") as cursor:
            cursor.execute(query)
            while batch := cursor.fetchmany(BATCH_ROWS):
                yield batch

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._raw.transaction():
            yield

    def put(self, table: str, columns: Sequence[str], batches: Iterable[Batch]) -> None:
        self._raw.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
        self.add(table, columns, batches)

    def add(self, table: str, columns: Sequence[str], batches: Iterable[Batch]) -> None:
        """Stores rows beside those of a table."""
        query = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), _list(columns))
        try:
            with self._raw.cursor() as cursor, cursor.copy(query) as copy:
                for batch in batches:
                    for row in batch:
                        copy.write_row(row)
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            raise Refusal(
                f"The table {table} has a row that PostgreSQL cannot hold: {first_line(error)}. Change it at the "
                "embedded gateway and copy again; what was copied is kept."
            ) from None

    def copied(self) -> dict[str, TableSum]:
        if not is_unfinished(self._raw):
            return {}
        found = self._raw.execute("SELECT name, rows, sha256 FROM copied_tables").fetchall()
        return {name: TableSum(rows, digest) for name, rows, digest in found}

    def note(self, table: str, total: TableSum) -> None:
        self._raw.execute(
            "CREATE TABLE IF NOT EXISTS copied_tables (name VARCHAR PRIMARY KEY, rows BIGINT, sha256 VARCHAR)"
        )
        self._raw.execute("DELETE FROM copied_tables WHERE name = $1", [table])
        self._raw.execute(
            "INSERT INTO copied_tables VALUES ($1, $2, $3)", [table, total.rows, total.sha256]
        )

    def finish(self) -> None:
        self._raw.execute("DROP TABLE copied_tables")


def tables_of(con: Connection) -> PostgresqlTables:
    """The tables of a transaction, in which a statement over a whole table may take long."""
    if not isinstance(con, PostgresqlConnection):
        raise TypeError("this belongs to a PostgreSQL database")
    con.execute("SET LOCAL statement_timeout = 0")
    return PostgresqlTables(con.raw)


def is_unfinished(raw: Raw) -> bool:
    """Whether a copy into this database was begun and has not ended."""
    row = raw.execute("SELECT to_regclass($1)", [f"{SCHEMA}.copied_tables"]).fetchone()
    return bool(row and row[0] is not None)


def _list(columns: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(column) for column in columns)

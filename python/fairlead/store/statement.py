"""Prepared statements, for writes many times a second where parsing is a third of the cost.

Only for constant texts that a single thread runs, a database's writer. PostgreSQL's driver prepares statements
itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import duckdb

from fairlead.store.file import Connection

# Columns of rows that are stored many at once; the others are texts.
_TYPES: Final = {
    "attempts": "INTEGER",
    "generation": "INTEGER",
    "is_spent": "BOOLEAN",
    "tries": "INTEGER",
}
_PARSED: dict[str, duckdb.Statement] = {}


def parsed(con: Connection, text: str) -> duckdb.Statement | str:
    """The parsed statement of a text, cached; pass it to `execute` of any connection in place of the text."""
    if not isinstance(con, duckdb.DuckDBPyConnection):
        return text
    statement = _PARSED.get(text)
    if statement is None:
        [statement] = con.extract_statements(text)
        _PARSED[text] = statement
    return statement


def unnested(columns: Iterable[str]) -> str:
    """The expressions that select rows from a list of values for each column: `INSERT INTO t (a, b) SELECT <this>`.

    Each list has its type, since a list of nulls does not say what it is a list of.
    """
    return ", ".join(f"unnest(?::{_type_of(column)}[])" for column in columns)


def _type_of(column: str) -> str:
    return "BIGINT" if column.endswith("_at_ms") else _TYPES.get(column, "VARCHAR")

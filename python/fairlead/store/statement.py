"""Prepared statements, for writes many times a second where parsing is a third of the cost.

Only for constant texts that a single thread runs, a database's writer. PostgreSQL's driver prepares by itself.
"""

from __future__ import annotations

import duckdb

from fairlead.store.file import Connection

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

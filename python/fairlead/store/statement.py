"""Statements that are parsed once: for what is written many times a second, where parsing is a third of the cost.

Only for a statement whose text never changes and that one thread runs, a database's writer.
"""

from __future__ import annotations

import duckdb

from fairlead.store.file import Connection

_PARSED: dict[str, duckdb.Statement] = {}


def parsed(con: Connection, text: str) -> duckdb.Statement:
    """The one statement that the text is; `execute` takes it in the text's place, on any connection."""
    statement = _PARSED.get(text)
    if statement is None:
        [statement] = con.extract_statements(text)
        _PARSED[text] = statement
    return statement

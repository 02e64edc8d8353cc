"""A connection as the tables' functions use it: one set of statements for both stores.

Statements are written for DuckDB, with `?` or `$name` for parameters. PostgreSQL's connection takes the same texts;
`postgresql/statements.py` has the few differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar


class Result(Protocol):
    """The rows of a statement. A statement without rows has one, of the number of rows that it changed."""

    @property
    def description(self) -> Any:
        """The columns, each a tuple that begins with its name; None for a statement without rows."""

    def fetchone(self) -> tuple[Any, ...] | None: ...

    def fetchall(self) -> list[tuple[Any, ...]]: ...

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]: ...


class Connection(Protocol):
    """A transaction of either store: a `duckdb.DuckDBPyConnection`, or a `PostgresqlConnection`."""

    def execute(self, query: Any, parameters: object = None) -> Result:
        """Runs a statement with its parameters: a list for `?`, a dictionary for `$name`."""

    def executemany(self, query: Any, parameters: object = None) -> Result:
        """Runs a statement once for each list of parameters."""


T = TypeVar("T")
# A function over a connection, which runs in one transaction.
Transaction = Callable[[Connection], T]

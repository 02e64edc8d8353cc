"""A file's connection as transactions use it: a statement is parsed once, and a read of tables that nobody has changed
since is answered from memory.

DuckDB takes half a millisecond and more to plan a short statement, and a change of the configuration makes some thirty
reads, nearly all of what it left as it was. One connection alone writes to the file, and every statement of its
transactions comes by here, so it is known which table each changes.
"""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from typing import Any, Final

import duckdb

from fairlead.store.connection import Result

FileConnection = duckdb.DuckDBPyConnection

STATEMENTS_MAX: Final = 512
"""How many texts are kept parsed, the latest of them: the code has some hundreds."""
READS_MAX: Final = 256
"""How many reads are remembered, the latest of them."""
ROWS_MAX: Final = 500
"""A read of more rows is not remembered."""

# The table that a statement changes, unless its name is qualified.
_TARGET: Final = re.compile(
    r"\s*(?:INSERT(?:\s+OR\s+\w+)?\s+INTO|UPDATE|DELETE\s+FROM)\s+(\w+)(?![\w.])", re.IGNORECASE
)
# Reads that depend on more than rows, or on rows of another file.
_VARYING: Final = re.compile(
    r"\b(?:now|today|random|nextval|currval|\w*uuid\w*|current_\w+|duckdb_\w+|information_schema|\w+\.\w+\.\w+)\b",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\w+")

_Row = tuple[Any, ...]
_Key = tuple[str, object]


@dataclass(frozen=True, slots=True)
class Statement:
    """A text of one statement, parsed."""

    parsed: duckdb.Statement
    is_read: bool
    reads: frozenset[str]
    """The tables that its text names, if they alone decide its rows."""
    changes: str | None
    """The table that it changes, if no other changes with it."""


class Rows:
    """The rows of a read: a `Result`. `rest` has those after the first, where these are many."""

    __slots__ = ("_at", "_rest", "_rows", "description")

    def __init__(
        self, rows: list[_Row], description: Any, rest: FileConnection | None = None
    ) -> None:
        self._rows = rows
        self._at = 0
        self._rest = rest
        self.description = description

    def fetchone(self) -> _Row | None:
        """The next row."""
        found = self.fetchmany(1)
        return found[0] if found else None

    def fetchmany(self, size: int = 1) -> list[_Row]:
        """The next rows, at most `size`."""
        found = self._rows[self._at : self._at + size]
        self._at += len(found)
        if self._rest is not None and len(found) < size:
            found += self._rest.fetchmany(size - len(found))
        return found

    def fetchall(self) -> list[_Row]:
        """The rows that are left."""
        found = self._rows[self._at :]
        self._at = len(self._rows)
        return found if self._rest is None else found + self._rest.fetchall()


class FileTransaction:
    """A `Connection` to a file, used by one thread. `raw` is DuckDB's own.

    With `remembers` it is the one connection that writes. After a statement on `raw` itself and after a rollback,
    `forget` has to be called.
    """

    def __init__(self, raw: FileConnection, *, remembers: bool = False) -> None:
        self.raw = raw
        self._tables = _tables(raw) if remembers else frozenset()
        self._statements: OrderedDict[str, Statement | None] = OrderedDict()
        self._read: OrderedDict[_Key, tuple[list[_Row], Any]] = OrderedDict()
        self._by_table: defaultdict[str, set[_Key]] = defaultdict(set)

    def execute(self, query: str, parameters: Any = None) -> Result:
        """Runs a statement, or answers a read from memory."""
        statement = self._statement(query)
        if statement is None:
            self.forget()
            return self.raw.execute(query, parameters)
        if not statement.is_read:
            self._forget_table(statement.changes)
        elif statement.reads:
            key = _key(query, parameters)
            if key is not None:
                return self._rows(statement, key, parameters)
        return self.raw.execute(statement.parsed, parameters)

    def executemany(self, query: str, parameters: Any = None) -> Result:
        """Runs a statement once for each list of parameters."""
        statement = self._statement(query)
        self._forget_table(None if statement is None else statement.changes)
        return self.raw.executemany(query, parameters)

    def forget(self) -> None:
        """Forgets every read."""
        self._read.clear()
        self._by_table.clear()

    def _rows(self, statement: Statement, key: _Key, parameters: Any) -> Rows:
        if (known := self._read.get(key)) is not None:
            self._read.move_to_end(key)
            rows, description = known
            return Rows(_copied(rows), description)
        result = self.raw.execute(statement.parsed, parameters)
        rows, description = result.fetchmany(ROWS_MAX + 1), result.description
        if len(rows) > ROWS_MAX:
            return Rows(rows, description, result)
        self._read[key] = (_copied(rows), description)
        for table in statement.reads:
            self._by_table[table].add(key)
        if len(self._read) > READS_MAX:
            oldest, _ = self._read.popitem(last=False)
            for keys in self._by_table.values():
                keys.discard(oldest)
        return Rows(rows, description)

    def _forget_table(self, table: str | None) -> None:
        if table is None:
            self.forget()
            return
        for key in self._by_table.pop(table, ()):
            self._read.pop(key, None)

    def _statement(self, query: str) -> Statement | None:
        """The statement of a text; None for what is run as it is: several at once, or one that is no query."""
        try:
            statement = self._statements[query]
        except KeyError:
            statement = self._statements[query] = self._parse(query)
            if len(self._statements) > STATEMENTS_MAX:
                self._statements.popitem(last=False)
        else:
            self._statements.move_to_end(query)
        return statement

    def _parse(self, query: str) -> Statement | None:
        found = self.raw.extract_statements(query)
        if len(found) != 1:
            return None
        kind = found[0].type
        if kind == duckdb.StatementType.SELECT:
            return Statement(found[0], True, self._named_tables(query), None)
        if kind in (
            duckdb.StatementType.INSERT,
            duckdb.StatementType.UPDATE,
            duckdb.StatementType.DELETE,
        ):
            target = _TARGET.match(query)
            return Statement(found[0], False, frozenset(), target and target[1].lower())
        return None

    def _named_tables(self, query: str) -> frozenset[str]:
        if _VARYING.search(query):
            return frozenset()
        return self._tables.intersection(_WORD.findall(query.lower()))


def _tables(raw: FileConnection) -> frozenset[str]:
    """The names of the file's tables, which stay while it is open; none where rows may be read through a view."""
    found = raw.execute(
        "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'main'"
    ).fetchall()
    if any(kind != "BASE TABLE" for _, kind in found):
        return frozenset()
    return frozenset(str(name).lower() for name, _ in found)


def _copied(rows: list[_Row]) -> list[_Row]:
    """Rows whose lists and objects belong to who takes them, and may be changed by them."""
    return [tuple(map(_own, row)) for row in rows]


def _own(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_own, value))
    if isinstance(value, dict):
        return {name: _own(each) for name, each in value.items()}
    return value


def _key(query: str, parameters: Any) -> _Key | None:
    """The text of a read with its parameters; None where one of these is a list or an object."""
    # 1, 1.0 and True are equal, and are not to a database.
    values: tuple[object, ...] | None = None
    if isinstance(parameters, dict):
        values = tuple((name, type(value), value) for name, value in parameters.items())
    elif parameters is not None:
        values = tuple((type(value), value) for value in parameters)
    try:
        hash(values)
    except TypeError:
        return None
    return query, values

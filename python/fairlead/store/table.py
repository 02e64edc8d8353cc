"""A table whose rows are records of a dataclass, and the statements that follow from its fields.

Each column has the name of a field. Conditions are constant texts; what a caller sends is bound.

    NODES = Table("provider_nodes", Node, json={"timeouts": dict})
    NODES.find(con, "id = ?", node_id)
    NODES.select(con, "WHERE prefix LIKE ? ORDER BY id", prefix)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import orjson

from fairlead.store.file import Connection

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from structlog.typing import FilteringBoundLogger

T = TypeVar("T", bound="DataclassInstance")
Order = Literal["asc", "desc"]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list. It begins after the record whose id is `after`, which was the last one seen."""

    after: str | None
    limit: int
    order: Order = "desc"


@dataclass(frozen=True, slots=True)
class Position:
    """The place of a record in lists by creation."""

    created_at_ms: int
    id: str


class Table(Generic[T]):
    """The statements of one table. Run each inside `state.read`, or in the writer.

    `json` names the columns that hold JSON text, with the type that is made of what it contains.
    """

    def __init__(
        self, name: str, record: type[T], *, json: Mapping[str, Callable[[Any], Any]] | None = None
    ) -> None:
        self.columns = tuple(field.name for field in fields(record))
        self._name = name
        self._record: Callable[..., T] = record
        self._json = {self.columns.index(column): form for column, form in (json or {}).items()}
        names = ", ".join(self.columns)
        marks = ", ".join("?" * len(self.columns))
        self._select = f"SELECT {names} FROM {name}"
        self._insert = f"INSERT INTO {name} ({names}) VALUES ({marks})"

    def insert(self, con: Connection, record: T) -> None:
        """Adds a record."""
        con.execute(self._insert, self._written(record))

    def update(self, con: Connection, record: T, key: Sequence[str] = ("id",)) -> None:
        """Replaces the other columns of the row that has the record's key."""
        values = dict(zip(self.columns, self._written(record), strict=True))
        keys = [values.pop(column) for column in key]
        con.execute(
            f"UPDATE {self._name} SET {', '.join(f'{column} = ?' for column in values)} "
            f"WHERE {' AND '.join(f'{column} = ?' for column in key)}",
            [*values.values(), *keys],
        )

    def find(self, con: Connection, condition: str, *values: Any) -> T | None:
        """A record that meets the condition."""
        row = con.execute(f"{self._select} WHERE {condition}", list(values)).fetchone()
        return None if row is None else self.read(row)

    def select(self, con: Connection, rest: str = "", *values: Any) -> list[T]:
        """The records of the statement that ends with `rest`."""
        return [self.read(row) for row in self._rows(con, rest, values)]

    def select_readable(
        self, con: Connection, log: FilteringBoundLogger, message: str, rest: str = ""
    ) -> list[T]:
        """As `select`, without records that cannot be read: those are logged with this message. One damaged
        record must not block every later snapshot.
        """
        records: list[T] = []
        for row in self._rows(con, rest, ()):
            try:
                records.append(self.read(row))
            except (ValueError, TypeError) as error:
                log.error(message, id=row[0], error=type(error).__name__)
        return records

    def count(self, con: Connection, condition: str = "true", *values: Any) -> int:
        """The number of records that meet the condition."""
        return read_number(
            con, f"SELECT count(*) FROM {self._name} WHERE {condition}", list(values)
        )

    def position(
        self, con: Connection, after: str | None, missing: Exception, condition: str, *values: Any
    ) -> Position | None:
        """The position of the record with the id `after`, None for None. Raises `missing` unless it meets the
        condition.
        """
        if after is None:
            return None
        query = f"SELECT created_at_ms, id FROM {self._name} WHERE id = ? AND {condition}"
        row = con.execute(query, [after, *values]).fetchone()
        if row is None:
            raise missing
        return Position(*row)

    def page(
        self,
        con: Connection,
        condition: str,
        values: Sequence[Any],
        page: Page,
        position: Position | None,
    ) -> tuple[list[T], bool]:
        """A page of the records that meet the condition, and whether more follow.

        `position` is that of `page.after`.
        """
        bound = list(values)
        if position is not None:
            side = ">" if page.order == "asc" else "<"
            condition = f"{condition} AND (created_at_ms, id) {side} (?, ?)"
            bound += [position.created_at_ms, position.id]
        way = "ASC" if page.order == "asc" else "DESC"
        rest = f"WHERE {condition} ORDER BY created_at_ms {way}, id {way} LIMIT ?"
        rows = self._rows(con, rest, [*bound, page.limit + 1])
        return [self.read(row) for row in rows[: page.limit]], len(rows) > page.limit

    def read(self, row: Sequence[Any]) -> T:
        """The record of a row that has every column in order."""
        if not self._json:
            return self._record(*row)
        values = list(row)
        for at, form in self._json.items():
            if values[at] is not None:
                values[at] = form(orjson.loads(values[at]))
        return self._record(*values)

    def _rows(self, con: Connection, rest: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return con.execute(f"{self._select} {rest}", list(values)).fetchall()

    def _written(self, record: T) -> list[Any]:
        values = [getattr(record, column) for column in self.columns]
        for at in self._json:
            if values[at] is not None:
                values[at] = orjson.dumps(values[at]).decode()
        return values


def read_number(con: Connection, query: str, values: object = None) -> int:
    """The number that a query of one row and one column gives; 0 without a row. `values` are its parameters."""
    row = con.execute(query, values).fetchone()
    return int(row[0]) if row else 0

"""Whole tables, as they are copied between stores: what a side can do, and what two sides are compared by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

Row = tuple[Any, ...]
Batch = list[Row]

BATCH_ROWS: Final = 2000
# Tables about the store itself, or about processes that use it; these are not copied.
OWN_TABLES: Final = frozenset(
    {
        "schema_version",
        "schema_files",
        "copied_tables",
        "published_snapshots",
        "control_nodes",
        "work_leases",
        "response_segments",
    }
)
# The log of usage belongs to the nodes of one database. Its partitions have the names of days.
OWN_TABLES_FROM: Final = "usage_"
_MODULUS: Final = 1 << 256


def is_copied(table: str) -> bool:
    """Whether the table goes with the state from store to store."""
    return table not in OWN_TABLES and not table.startswith(OWN_TABLES_FROM)


@dataclass(frozen=True, slots=True)
class TableSum:
    """The rows of a table: how many, and a hash that does not depend on their order."""

    rows: int
    sha256: str


class Tally:
    """Counts and hashes rows as they pass."""

    def __init__(self) -> None:
        self._rows = 0
        self._sum = 0

    def add(self, batch: Batch) -> Batch:
        """Adds rows, and gives them back."""
        self._rows += len(batch)
        for row in batch:
            self._sum += int.from_bytes(hashlib.sha256(_bytes_of(row)).digest())
        self._sum %= _MODULUS
        return batch

    def total(self) -> TableSum:
        return TableSum(self._rows, f"{self._sum:064x}")


class Source(Protocol):
    """A store that tables are read from, all of them of one moment."""

    def columns(self) -> dict[str, list[str]]:
        """The columns of every table that is copied, by the table's name."""

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows of a table, some at a time, in any order."""


class Target(Source, Protocol):
    """A store that tables are written to."""

    def transaction(self) -> AbstractContextManager[None]:
        """Everything that is written inside is there, or nothing."""

    def put(self, table: str, columns: Sequence[str], batches: Iterable[Batch]) -> None:
        """Stores rows in place of those of a table."""

    def copied(self) -> dict[str, TableSum]:
        """The tables that were copied before, if it was interrupted."""

    def note(self, table: str, total: TableSum) -> None:
        """Notes that a table is copied."""

    def finish(self) -> None:
        """Forgets the notes: the store is complete."""


def sum_of(source: Source, table: str, columns: Sequence[str]) -> TableSum:
    """Reads a table to its end."""
    tally = Tally()
    for batch in source.batches(table, columns):
        tally.add(batch)
    return tally.total()


def _bytes_of(row: Row) -> bytes:
    return b"".join(_value_bytes(value) for value in row)


def _value_bytes(value: Any) -> bytes:
    """A value with its kind and its length, so that no two rows have the same bytes."""
    if value is None:
        return b"n"
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, (list, tuple)):
        parts = b"".join(_value_bytes(each) for each in value)
        return b"l%d:%b" % (len(value), parts)
    if isinstance(value, str):
        kind, content = b"s", value.encode("utf-8", "surrogatepass")
    elif isinstance(value, (bytes, bytearray, memoryview)):
        kind, content = b"b", bytes(value)
    else:
        # Numbers and dates: their text says them whole.
        kind, content = b"v", repr(value).encode()
    return b"%b%d:%b" % (kind, len(content), content)

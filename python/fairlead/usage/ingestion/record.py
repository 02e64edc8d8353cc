"""Parsing of a segment's lines into rows of the table `requests`; lines that are no records are
returned apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from fairlead import _core

# The columns of the table `requests`, and those that may be null.
_RECORD_COLUMNS: Final = _core.record_columns()
COLUMNS: Final = tuple(column["name"] for column in _RECORD_COLUMNS)
NULLABLE: Final = frozenset(
    column["name"] for column in _RECORD_COLUMNS if not column["is_required"]
)


@dataclass(frozen=True, slots=True)
class ParsedLines:
    """The rows of some lines, and the lines that are no records."""

    rows: pl.DataFrame
    rejected: list[bytes]


def parse_lines(data: bytes) -> ParsedLines:
    """Reads NDJSON.

    Unknown fields are left out; a line that lacks a field or has another type is rejected.
    """
    records = _core.read_records(data)
    # The columns are used without a copy.
    return ParsedLines(pl.DataFrame(records), records.rejected)

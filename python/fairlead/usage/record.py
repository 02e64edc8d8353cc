"""Lines of a segment to rows of the table `requests`, and which lines are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from fairlead import _core

# The columns of the table `requests`, and those that may be without a value.
_TOLD: Final = _core.record_columns()
COLUMNS: Final = tuple(column["name"] for column in _TOLD)
NULLABLE: Final = frozenset(column["name"] for column in _TOLD if not column["is_required"])


@dataclass(frozen=True, slots=True)
class ParsedLines:
    """The rows of some lines, and the lines that are none."""

    rows: pl.DataFrame
    rejected: list[bytes]


def parse_lines(data: bytes) -> ParsedLines:
    """Reads NDJSON.

    Unknown fields are left out; a line that lacks a field or has another type is rejected.
    """
    records = _core.read_records(data)
    # The columns are taken as they are: nothing is copied.
    return ParsedLines(pl.DataFrame(records), records.rejected)

"""The output of commands: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

_PIPED_WIDTH: Final = 240
"""A program that reads the table gets each row on one line."""


def show_json(document: Any) -> None:
    """Prints a document, indented."""
    print(json.dumps(document, indent=2, ensure_ascii=False))


def show_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str) -> None:
    """Prints rows under their headings, or the sentence `empty`. Colours go by NO_COLOR."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for at, column in enumerate(columns):
        # The first column is what other commands take: it stays in one piece.
        table.add_column(column, overflow="fold", no_wrap=at == 0)
    for row in rows:
        # What people named is shown as it is: brackets are no markup.
        table.add_row(*(Text(_cell_text(value)) for value in row))
    console = Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH)
    if table.row_count:
        console.print(table)
    else:
        console.print(empty, markup=False)


def pick(record: Mapping[str, Any], *names: str) -> list[Any]:
    """The fields of a record in the order of a table's columns."""
    return [record.get(name) for name in names]


def _cell_text(value: Any) -> str:
    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)

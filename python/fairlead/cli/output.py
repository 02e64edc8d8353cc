"""The output of commands: tables for people, JSON for programs. Text of others is printed without its control codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fairlead.cli.printable import printable, printable_json

_PIPED_WIDTH: Final = 240
"""A program that reads the table gets each row on one line."""
_COLUMN_MIN: Final = 10
"""Below so many characters a column cannot be read."""
_PADDING: Final = 3
_CELL_CHARS: Final = 400
"""A cell shows the beginning of what is longer; `--json` has all of it."""


def show_json(document: Any) -> None:
    """Prints a document, indented."""
    print(printable_json(json.dumps(document, indent=2, ensure_ascii=False)))


def show_json_line(document: Any) -> None:
    """Prints a document on one line, as a stream of them has each."""
    print(printable_json(json.dumps(document, ensure_ascii=False)), flush=True)


def print_message(sentence: str, *, to_stderr: bool = False) -> None:
    """Prints one line that may contain names from users."""
    print(printable(sentence), file=sys.stderr if to_stderr else sys.stdout)


def print_note(sentence: str) -> None:
    """Prints a sentence below a table. On a terminal its lines break between words."""
    from rich.console import Console
    from rich.text import Text

    Console(width=_width()).print(Text(printable(sentence)))


def show_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str) -> None:
    """Prints rows under their headings, or the sentence `empty`. Colours go by NO_COLOR.

    If the terminal has too few columns for a readable table, each row is a block of lines.
    """
    from rich.console import Console

    console = Console(width=_width())
    cells = [[_cell(value) for value in row] for row in rows]
    if not cells:
        console.print(empty, markup=False)
    elif _fits(columns, cells, console.width):
        console.print(_table(columns, cells))
    else:
        for row in cells:
            console.print(_block(columns, row))


def _width() -> int | None:
    """The number of columns of what is not a terminal; None for a terminal, which says how many it has."""
    return None if sys.stdout.isatty() else _PIPED_WIDTH


def _fits(columns: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> bool:
    """Whether every column has room for a word, and the first one, which stays in one piece, for all of it."""
    from rich.cells import cell_len

    widths = [
        max(map(cell_len, (heading, *cut))) for heading, *cut in zip(columns, *cells, strict=True)
    ]
    needed = widths[0] + sum(min(each, _COLUMN_MIN) for each in widths[1:])
    return needed + _PADDING * len(columns) <= width


def _table(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for at, column in enumerate(columns):
        # The first column is what other commands take: it stays in one piece.
        table.add_column(column, overflow="fold", no_wrap=at == 0)
    for row in cells:
        # Names from users are shown unchanged: brackets are no markup.
        table.add_row(*map(Text, row))
    return table


def _block(columns: Sequence[str], row: Sequence[str]) -> Any:
    """A row with its cells below each other, beside their headings."""
    from rich.table import Table
    from rich.text import Text

    block = Table.grid(padding=(0, 2))
    block.add_column(no_wrap=True)
    block.add_column(overflow="fold")
    for heading, cell in zip(columns, row, strict=True):
        block.add_row(Text(heading), Text(cell))
    block.add_row("", "")
    return block


def pick(record: Mapping[str, Any], *names: str) -> list[Any]:
    """The fields of a record in the order of a table's columns."""
    return [record.get(name) for name in names]


def _cell(value: Any) -> str:
    text = _cell_text(value)
    shown = text if len(text) <= _CELL_CHARS else text[: _CELL_CHARS - 1] + "…"
    return printable(shown)


def _cell_text(value: Any) -> str:
    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)

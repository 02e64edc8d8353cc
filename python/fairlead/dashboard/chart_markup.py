"""The parts of a chart that have many pieces, as markup whose texts are escaped: columns, and the table of the same
values.

A template would look up and escape each number separately, which for a month of eight series is most of the
cost of a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from fairlead.dashboard.chart import Chart, Column


def draw_columns(columns: Sequence[Column]) -> str:
    """Each column with its pieces and its description, in SVG."""
    pieces: list[str] = []
    for column in columns:
        tip = escape(column.tip)
        if column.href is not None:
            # The table of the same values has the links for the keyboard.
            pieces.append(f'<a href="{escape(column.href)}" tabindex="-1">')
        pieces.append(
            f'<g class="column" data-tip="{tip}"><rect class="hit" x="{column.x:.3f}" '
            f'width="{column.width:.3f}" height="100"><title>{tip}</title></rect>\n'
        )
        pieces += [
            f'<rect class="s{bar.colour}" x="{bar.x:.3f}" y="{bar.y:.3f}" '
            f'width="{bar.width:.3f}" height="{bar.height:.3f}"/>'
            for bar in column.bars
        ]
        pieces.append("</g></a>\n" if column.href is not None else "</g>\n")
    return "".join(pieces)


def draw_rows(chart: Chart) -> str:
    """The rows of a chart's table: a column's label, and the value of each series."""
    pieces: list[str] = []
    for (label, *cells), column in zip(chart.rows, chart.columns, strict=True):
        name = escape(label)
        if column.href is not None:
            name = f'<a href="{escape(column.href)}">{name}</a>'
        pieces.append(f'<tr><th scope="row">{name}</th>')
        pieces += [f'<td class="number">{escape(cell)}</td>' for cell in cells]
        pieces.append("</tr>")
    return "".join(pieces)

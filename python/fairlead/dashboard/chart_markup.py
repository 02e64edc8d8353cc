"""The parts of a chart that have many pieces, as markup whose texts are escaped: columns, and the table of the same
values.

A template would look up and escape each number separately, which for a month of eight series is most of the
cost of a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from fairlead.dashboard.chart import Column


def draw_columns(columns: Sequence[Column]) -> str:
    """Each column with its pieces and its description, in SVG."""
    pieces: list[str] = []
    for column in columns:
        tip = escape(column.tip)
        pieces.append(
            f'<g class="column" data-tip="{tip}"><rect class="hit" x="{column.x:.3f}" '
            f'width="{column.width:.3f}" height="100"><title>{tip}</title></rect>\n'
        )
        pieces += [
            f'<rect class="s{bar.colour}" x="{bar.x:.3f}" y="{bar.y:.3f}" '
            f'width="{bar.width:.3f}" height="{bar.height:.3f}"/>'
            for bar in column.bars
        ]
        pieces.append("</g>\n")
    return "".join(pieces)


def draw_rows(rows: Sequence[Sequence[str]]) -> str:
    """The rows of a chart's table: a column's label, and the value of each series."""
    pieces: list[str] = []
    for label, *cells in rows:
        pieces.append(f'<tr><th scope="row">{escape(label)}</th>')
        pieces += [f'<td class="number">{escape(cell)}</td>' for cell in cells]
        pieces.append("</tr>")
    return "".join(pieces)

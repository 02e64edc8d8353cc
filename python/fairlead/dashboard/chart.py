"""Charts as geometry: columns and lines in a box of 100 by 100, which the template draws as SVG.

Texts are HTML beside the picture, so that they keep their size at every width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

GRID_LINES: Final = 4
LABELS_MAX: Final = 7
HEIGHT: Final = 100.0
SERIES_MAX: Final = 7
GAP: Final = 0.18


@dataclass(frozen=True, slots=True)
class Series:
    """Values by column, None where there is none; `colour` is one of the eight of the style."""

    name: str
    values: tuple[float | None, ...]
    colour: int
    is_compared: bool = False
    """Whether it is another period: a dashed line, in no stack."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A piece of a column."""

    x: float
    y: float
    width: float
    height: float
    colour: int


@dataclass(frozen=True, slots=True)
class Column:
    """The area in which the pointer finds a column, and its description."""

    x: float
    width: float
    tip: str
    bars: tuple[Bar, ...]
    href: str | None = None
    """A page that shows this column alone."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line, and the area under it where it is the only one."""

    points: str
    colour: int
    area: str | None
    is_compared: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """An event at a place from 0 to 100 between the first and the last column."""

    x: float
    words: str
    href: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart that is ready to be drawn, and the table of what it shows."""

    title: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    ticks: tuple[str, ...]
    """The lines of the scale, from its top to its bottom."""
    labels: tuple[str, ...]
    is_labelled: bool
    """Whether each column has its label."""
    is_even: bool
    """Whether each label covers the same number of columns; it is drawn at the first of them."""
    series: tuple[Series, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_empty: bool
    marks: tuple[Mark, ...] = ()


def bars(
    title: str,
    labels: Sequence[str],
    series: Sequence[Series],
    show: Callable[[float | None], str],
    hrefs: Sequence[str] = (),
) -> Chart:
    """Columns with stacked pieces, and a link for each column where there are any."""
    stacked = [each for each in series if not each.is_compared]
    others = [each for each in series if each.is_compared]
    sums = [sum(each.values[at] or 0 for each in stacked) for at in range(len(labels))]
    top = _top(max([*sums, *(value or 0 for each in others for value in each.values)], default=0))
    width = 100 / max(len(labels), 1)
    chart = _empty_chart(title, labels, series, Scale(top, show))
    columns = tuple(
        Column(
            at * width,
            width,
            _tip(series, row, at),
            _stack(stacked, at, width, top),
            hrefs[at] if hrefs else None,
        )
        for at, row in enumerate(chart.rows)
    )
    dashed = tuple(line for each in others for line in _lines(each, width, top, alone=False))
    return replace(chart, columns=columns, lines=dashed)


def lines(
    title: str,
    labels: Sequence[str],
    series: Sequence[Series],
    show: Callable[[float | None], str],
    hrefs: Sequence[str] = (),
) -> Chart:
    """A line for each series, and a link for each column where there are any."""
    top = _top(max((value or 0 for each in series for value in each.values), default=0))
    width = 100 / max(len(labels), 1)
    chart = _empty_chart(title, labels, series, Scale(top, show))
    columns = tuple(
        Column(at * width, width, _tip(series, row, at), (), hrefs[at] if hrefs else None)
        for at, row in enumerate(chart.rows)
    )
    drawn = tuple(
        line for each in series for line in _lines(each, width, top, alone=len(series) == 1)
    )
    return replace(chart, columns=columns, lines=drawn)


def marked(chart: Chart, marks: Sequence[Mark]) -> Chart:
    """The chart with events at their places."""
    return replace(chart, marks=tuple(marks))


def spark(values: Sequence[float]) -> str:
    """The points of a small line in a box of 100 by 24."""
    top = max(values, default=0) or 1
    step = 100 / max(len(values) - 1, 1)
    return " ".join(
        f"{at * step:.1f},{23 - value / top * 22:.1f}" for at, value in enumerate(values)
    )


def top_series(sums: dict[str, float], most: int = SERIES_MAX) -> list[str]:
    """The names of the largest, largest first; the rest is for one series more."""
    return [name for name, _ in sorted(sums.items(), key=lambda each: (-each[1], each[0]))[:most]]


@dataclass(frozen=True, slots=True)
class Scale:
    """The axis of values: where it ends, and how a value on it is written."""

    top: float
    show: Callable[[float | None], str]


def _empty_chart(
    title: str, labels: Sequence[str], series: Sequence[Series], scale: Scale
) -> Chart:
    """The frame of a chart with its table, and nothing drawn in it."""
    show, top = scale.show, scale.top
    marks = _marks(len(labels))
    rows = tuple(
        (label, *(show(each.values[at]) for each in series)) for at, label in enumerate(labels)
    )
    return Chart(
        title,
        (),
        (),
        tuple(show(top * (GRID_LINES - at) / GRID_LINES) for at in range(GRID_LINES + 1)),
        tuple(labels[at] for at in marks),
        len(labels) <= LABELS_MAX,
        len(marks) > 0 and len(labels) > LABELS_MAX and len(labels) % len(marks) == 0,
        tuple(series),
        ("", *(each.name for each in series)),
        rows,
        not any(value for each in series for value in each.values),
    )


def _marks(many: int) -> list[int]:
    """The columns that have a label: at one distance from each other, where the number of columns can be divided."""
    if many <= LABELS_MAX:
        return list(range(many))
    step = next(each for each in range(math.ceil(many / LABELS_MAX), many + 1) if many % each == 0)
    if step < many:
        return list(range(0, many, step))
    return [round(at * (many - 1) / (LABELS_MAX - 1)) for at in range(LABELS_MAX)]


def _stack(series: Sequence[Series], at: int, width: float, top: float) -> tuple[Bar, ...]:
    pieces, foot = [], HEIGHT
    for each in series:
        height = (each.values[at] or 0) / top * HEIGHT
        if height > 0:
            foot -= height
            inset = width * GAP / 2
            pieces.append(Bar(at * width + inset, foot, width - 2 * inset, height, each.colour))
    return tuple(pieces)


def _lines(series: Series, width: float, top: float, *, alone: bool) -> list[Line]:
    """The parts of a line between its gaps."""
    parts: list[list[tuple[float, float]]] = [[]]
    for at, value in enumerate(series.values):
        if value is None:
            parts.append([])
        else:
            parts[-1].append(((at + 0.5) * width, HEIGHT - value / top * HEIGHT))
    made = []
    for part in parts:
        if not part:
            continue
        if len(part) == 1:
            (x, y) = part[0]
            part = [(x - width / 3, y), (x + width / 3, y)]  # noqa: PLW2901 - a dot would have no width
        points = " ".join(f"{x:.2f},{y:.2f}" for x, y in part)
        area = f"{part[0][0]:.2f},{HEIGHT} {points} {part[-1][0]:.2f},{HEIGHT}" if alone else None
        made.append(Line(points, series.colour, area, series.is_compared))
    return made


def _tip(series: Sequence[Series], row: Sequence[str], at: int) -> str:
    """The words about a column, which are those of its row of the table."""
    label, *texts = row
    shown = [
        f"{each.name}: {text}" for each, text in zip(series, texts, strict=True) if each.values[at]
    ]
    return "\n".join([label, *(shown or ["nothing"])])


def _top(most: float) -> float:
    """A round number that is not below the largest value."""
    if most < 1e-9:
        return 1.0
    size = 10.0 ** math.floor(math.log10(most))
    return next(
        step * size
        for step in (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10)
        if step * size >= most * 0.999
    )

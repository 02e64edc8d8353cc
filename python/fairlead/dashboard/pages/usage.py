"""Usage and cost: by one or two dimensions, narrowed by filters, beside another period."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from fairlead.dashboard import chart
from fairlead.dashboard.api import Api
from fairlead.dashboard.config_changes import read_changes
from fairlead.dashboard.filters import chips_of
from fairlead.dashboard.log_words import OUTCOME_WORDS
from fairlead.dashboard.names import Names, read_names
from fairlead.dashboard.page import Page, View, Visit
from fairlead.dashboard.usage_sums import (
    GROUPS,
    MEASURES,
    WHOLE,
    Choice,
    can_pair,
    choice_of,
    filters_in,
    measured,
    name_in,
    name_of,
    read_rows,
    read_rows_before,
    series_of,
)
from fairlead.dashboard.window import (
    BEFORE,
    VERSUS,
    Row,
    by_bucket,
    choices_of,
    read_sums,
)

SHOWN: Final = 100
NOTHING: Final = "nothing else"
# The dimension of the page that a row leads to.
NEXT: Final = {
    "key": "model",
    "group": "key",
    "model": "key",
    "provider": "model",
    "combo": "model",
    "endpoint": "model",
    "connection": "model",
    "session": "model",
    "reason": "provider",
    "day": "hour",
    "hour": "key",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A group with its sums, and those of the period to compare with."""

    names: tuple[str, ...]
    row: Row
    before: Row | None
    part: float
    """The share of the largest group, 0 to 1."""
    href: str | None
    """The page with the requests of this row alone, by the next dimension."""
    requests_href: str | None
    """The requests of this row in the log."""


async def show_usage(visit: Visit) -> View:
    """Sums, a chart of the largest groups, and a table of all."""
    choice = choice_of(visit.query)
    names, now, before, totals, earlier, changes = await asyncio.gather(
        read_names(visit.api),
        read_rows(visit.api, choice, **series_of(choice)),
        read_rows_before(visit.api, choice),
        _read_totals(visit.api, choice),
        _read_earlier(visit.api, choice),
        read_changes(visit.api, choice.window),
    )
    lines = _lines(choice, names, now.rows, before.rows)
    plot = (
        _chart_of_totals(choice, totals, earlier)
        if choice.group in WHOLE
        else _chart(choice, names, now.series, earlier)
    )
    window = choice.window
    keep = {**choice.shape, **choice.filters}
    fields = {
        "choice": choice,
        "window": window,
        "windows": choices_of(window, keep),
        "keep": keep,
        "versus": VERSUS,
        "versus_words": window.before.words,
        "chips": chips_of(choice.filters, {**window.address, **choice.shape}, names, OUTCOME_WORDS),
        "group_heads": [GROUPS[name][0] for name in choice.groups],
        "seconds": _seconds(choice),
        "second_name": GROUPS[choice.groups[-1]][0] if len(choice.groups) > 1 else NOTHING,
        "groups": [(text, choice.link(by=name, then="")) for name, (text, _, _) in GROUPS.items()],
        "group_name": GROUPS[choice.group][0],
        "measures": [(text, choice.link(measure=name)) for name, (text, _, _) in MEASURES.items()],
        "measure_name": MEASURES[choice.measure][0],
        "sums": now.totals,
        "missing": now.totals["unpricedRequests"],
        "before": before.totals,
        "log": f"/dashboard/logs?{urlencode({**window.address, **choice.filters})}",
        "failed_log": choice.link(by="reason", then="", measure="errors"),
        "lines": lines[:SHOWN],
        "hidden": len(lines) - SHOWN,
        "download": f"/dashboard/usage/download.csv{choice.link()}",
        "download_parquet": f"/dashboard/usage/download.parquet{choice.link()}",
        "plot": chart.marked(plot, changes),
    }
    return View("usage.html", fields)


def _seconds(choice: Choice) -> list[tuple[str, str]]:
    """The second dimensions that the first one can have."""
    names = [name for name in GROUPS if can_pair(choice.group, name)]
    links = [(GROUPS[name][0], choice.link(then=name)) for name in names]
    return [(NOTHING, choice.link(then="")), *links] if links else []


async def _read_totals(api: Api, choice: Choice) -> list[Row]:
    """The sums by bucket, without separate groups."""
    if choice.group not in WHOLE:
        return []
    window = choice.window
    return await read_sums(api, window.bucket, **window.query, **choice.filters)


async def _read_earlier(api: Api, choice: Choice) -> list[float | None]:
    """The measure in each bucket of the period to compare with, if the address names one."""
    before = choice.window.before
    if choice.window.versus == BEFORE:
        return []
    rows = await read_sums(api, before.bucket, **before.query, **choice.filters)
    counted = [measured(row) for row in rows]
    values = list(by_bucket(before, counted, MEASURES[choice.measure][1]))
    many = len(choice.window.starts())
    return (values + [None] * many)[:many]


def _compared(choice: Choice, earlier: list[float | None]) -> list[chart.Series]:
    if not earlier:
        return []
    words = choice.window.before.words
    return [chart.Series(words, tuple(earlier), 4, is_compared=True)]


def _hrefs(choice: Choice) -> list[str]:
    """A link of each column: the page of that time alone, or its requests where it is a minute."""
    if choice.window.bucket == "minute":
        return choice.window.links("/dashboard/logs", **choice.filters)
    return choice.window.links("", **choice.shape, **choice.filters)


def _chart_of_totals(choice: Choice, rows: list[Row], earlier: list[float | None]) -> chart.Chart:
    title, measure, show = MEASURES[choice.measure]
    counted = [measured(row) for row in rows]
    whole = chart.Series(title, by_bucket(choice.window, counted, measure), 0)
    series = [whole, *_compared(choice, earlier)]
    return chart.bars(title, choice.window.labels(), series, show, _hrefs(choice))


def _chart(
    choice: Choice, names: Names, series: list[Row], earlier: list[float | None]
) -> chart.Chart:
    title, measure, show = MEASURES[choice.measure]
    # Two groups may have one name: keys of one name, or what is called "none".
    by_name: dict[str, list[float]] = {}
    others: list[float] = []
    for group in series:
        values = _values(group, measure)
        if group["isOther"]:
            others = values
            continue
        if choice.group == "reason" and group["errorKind"] is None:
            continue  # requests that succeeded
        name = name_of(choice, names, group)
        known = by_name.get(name)
        by_name[name] = values if known is None else _added(known, values)
    largest = chart.top_series({name: sum(values) for name, values in by_name.items()})
    drawn = [chart.Series(name, tuple(by_name[name]), at) for at, name in enumerate(largest)]
    if others:
        drawn.append(chart.Series("all others", tuple(others), 7))
    drawn += _compared(choice, earlier)
    words = f"{title} by {choice.title.lower()}"
    return chart.bars(words, choice.window.labels(), drawn, show, _hrefs(choice))


def _values(group: Row, measure: str) -> list[float]:
    """A measure of a group in each bucket."""
    if measure == "tokens":
        return _added(group["tokensInput"], group["tokensOutput"])
    return list(group[measure])


def _added(one: list[float], other: list[float]) -> list[float]:
    return [each + more for each, more in zip(one, other, strict=True)]


def _lines(choice: Choice, names: Names, rows: list[Row], before: list[Row]) -> list[Line]:
    measure = MEASURES[choice.measure][1]
    earlier = {name_of(choice, names, row): measured(row) for row in before}
    counted = [measured(row) for row in rows]
    if choice.group == "reason":
        counted = [row for row in counted if row["errors"]]
    most = max((row[measure] for row in counted), default=0) or 1
    lines = [
        Line(
            tuple(name_in(group, names, row) for group in choice.groups),
            row,
            earlier.get(name_of(choice, names, row)),
            row[measure] / most,
            *_links(choice, row),
        )
        for row in counted
    ]
    if choice.group in ("day", "hour"):
        return lines
    return sorted(lines, key=lambda line: -line.row[measure])


def _links(choice: Choice, row: Row) -> tuple[str | None, str | None]:
    """The page of a row alone, and its requests."""
    narrowed = filters_in(choice, row)
    if narrowed is None:
        return None, None
    time = choice.window.address
    if "from" in narrowed:
        time = {}
    chosen = {**time, **choice.filters, **narrowed}
    by = NEXT[choice.groups[-1]]
    # A dimension that is chosen already has one row.
    if GROUPS[by][2] in chosen:
        by = "day" if choice.window.bucket == "day" else "hour"
    page = f"?{urlencode({**chosen, 'by': by, 'measure': choice.measure})}"
    return page, f"/dashboard/logs?{urlencode(chosen)}"


PAGES = (Page("usage", "Usage and cost", show_usage, group="Observe", rank=3, icon="usage"),)

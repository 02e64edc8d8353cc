"""Usage and cost: by key, model, provider, combo or day, beside the period before; as CSV too."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import polars as pl
from starlette.responses import Response

from fairlead.dashboard import chart, figures
from fairlead.dashboard.api import Api, Refused
from fairlead.dashboard.names import Names, read_names
from fairlead.dashboard.page import Page, View, Visit
from fairlead.dashboard.spending import SUMMED
from fairlead.dashboard.window import (
    ROWS_MAX,
    ZEROS,
    History,
    Row,
    Window,
    by_bucket,
    read_history,
    read_sums,
    read_total,
    window_of,
)
from fairlead.moment import moment_of

SHOWN: Final = 100
# Numbers of the download in Parquet, by the names that rows have.
COLUMNS: Final = {
    "requests": "requests",
    "errors": "errors",
    "tokens_input": "tokensInput",
    "tokens_output": "tokensOutput",
    "tokens_cached": "tokensCached",
    "cost_usd_micros": "costUsdMicros",
    "unpriced_requests": "unpricedRequests",
    "p50_latency_ms": "p50LatencyMs",
    "p99_latency_ms": "p99LatencyMs",
}
GROUPS: Final = {
    "model": ("Model", "model"),
    "provider": ("Provider", "provider"),
    "key": ("Key", "keyId"),
    "combo": ("Combo", "combo"),
    "endpoint": ("Endpoint", "endpoint"),
    "connection": ("Connection", "connectionId"),
    "tag": ("Session tag", "sessionId"),
    "day": ("Day", "bucket"),
}
MEASURES: Final[dict[str, tuple[str, str, Callable[[float | None], str]]]] = {
    "cost": ("Cost", "costUsdMicros", figures.money),
    "requests": ("Requests", "requests", figures.count),
    "tokens": ("Tokens", "tokens", figures.count),
}
# Groups that the chart does not tell apart: days are its columns, and of session tags there are no sums by time.
WHOLE: Final = ("tag", "day")
# A cell that a spreadsheet would take for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
TAG_MINUTES: Final = 1440


@dataclass(frozen=True, slots=True)
class Line:
    """A group with its sums, and those of the period before."""

    name: str
    row: Row
    before: Row | None
    part: float
    """The share of the largest group, 0 to 1."""
    href: str | None


@dataclass(frozen=True, slots=True)
class Choice:
    """The window, group and measure that the address of the page asks for."""

    window: Window
    group: str
    measure: str

    def link(self, **changed: str) -> str:
        """The address of the page with another choice."""
        words = {"window": self.window.name, "by": self.group, "measure": self.measure, **changed}
        return f"?{urlencode(words)}"


async def show_usage(visit: Visit) -> View:
    """Sums, a chart of the largest groups, and a table of all."""
    choice = _choice(visit)
    names, now, before, series = await asyncio.gather(
        read_names(visit.api),
        _read_rows(visit.api, choice, **_series_of(choice)),
        _read_rows_before(visit.api, choice),
        _read_totals(visit.api, choice),
    )
    lines = _lines(choice, names, now.rows, before.rows)
    fields = {
        "choice": choice,
        "groups": [(text, choice.link(by=name)) for name, (text, _) in GROUPS.items()],
        "group_name": GROUPS[choice.group][0],
        "measures": [(text, choice.link(measure=name)) for name, (text, _, _) in MEASURES.items()],
        "measure_name": MEASURES[choice.measure][0],
        "windows": [(name, choice.link(window=name)) for name in ("1h", "24h", "7d", "30d")],
        "sums": now.totals,
        "missing": now.totals["unpricedRequests"],
        "before": before.totals,
        "lines": lines[:SHOWN],
        "hidden": len(lines) - SHOWN,
        "download": f"/dashboard/usage/download.csv{choice.link()}",
        "download_parquet": f"/dashboard/usage/download.parquet{choice.link()}",
        "plot": _chart_of_totals(choice, series)
        if choice.group in WHOLE
        else _chart(choice, names, now.series),
    }
    return View("usage.html", fields)


async def download_csv(visit: Visit) -> Response:
    """The table as CSV; money in US dollars, times in milliseconds."""
    choice = _choice(visit)
    names, (rows, *_) = await asyncio.gather(read_names(visit.api), _read_rows(visit.api, choice))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(
        (
            *(GROUPS[choice.group][0], "from_utc", "to_utc", "requests", "errors"),
            *("tokens_input", "tokens_output", "tokens_cached", "cost_usd", "unpriced_requests"),
            *("p50_latency_ms", "p99_latency_ms"),
        )
    )
    for row in rows[:ROWS_MAX]:
        writer.writerow(
            (
                inert(_name(choice.group, names, row)),
                *choice.window.bounds,
                *(row["requests"], row["errors"], row["tokensInput"], row["tokensOutput"]),
                row.get("tokensCached", ""),
                *_exported_cost(row),
                *(row.get("p50LatencyMs", ""), row.get("p99LatencyMs", "")),
            )
        )
    return _attachment(choice, "csv", text.getvalue(), "text/csv; charset=utf-8")


async def download_parquet(visit: Visit) -> Response:
    """The table as Parquet: times of its window in UTC, money in whole micro-dollars."""
    choice = _choice(visit)
    names, (rows, *_) = await asyncio.gather(read_names(visit.api), _read_rows(visit.api, choice))
    columns: dict[str, list[Any]] = {
        choice.group: [_name(choice.group, names, row) for row in rows],
        **{column: [row.get(name) for row in rows] for column, name in COLUMNS.items()},
    }
    content = await asyncio.to_thread(_parquet, choice, columns)
    return _attachment(choice, "parquet", content, "application/vnd.apache.parquet")


def _parquet(choice: Choice, columns: dict[str, list[Any]]) -> bytes:
    kinds = {name: pl.Float64 if "latency" in name else pl.Int64 for name in COLUMNS}
    frame = pl.DataFrame(columns, schema={choice.group: pl.String, **kinds})
    start, end = (
        pl.lit(moment_of(at_ms)).cast(pl.Datetime("ms", "UTC"))
        for at_ms in (choice.window.from_ms, choice.window.until_ms)
    )
    content = io.BytesIO()
    frame.with_columns(start.alias("from_utc"), end.alias("to_utc")).write_parquet(content)
    return content.getvalue()


def _attachment(choice: Choice, kind: str, content: str | bytes, media: str) -> Response:
    name = f"fairlead-usage-by-{choice.group}-{choice.window.name}.{kind}"
    headers = {
        "content-disposition": f'attachment; filename="{name}"',
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
    }
    return Response(content, 200, headers, media)


def inert(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _choice(visit: Visit) -> Choice:
    group = visit.query.get("by", "model")
    measure = visit.query.get("measure", "cost")
    return Choice(
        window_of(visit.query, "7d"),
        group if group in GROUPS else "model",
        measure if measure in MEASURES else "cost",
    )


def _exported_cost(row: Row) -> tuple[str, int]:
    """The cost in US dollars, `no price` where nothing of it is known, and how many requests it leaves out."""
    unpriced = row["unpricedRequests"]
    if unpriced and not row["costUsdMicros"]:
        return figures.NO_PRICE, unpriced
    return f"{row['costUsdMicros'] / 1_000_000:.6f}", unpriced


async def _read_rows(api: Api, choice: Choice, **more: Any) -> History:
    """The groups of the window, and the sums of all of them."""
    query = {**choice.window.query, **more}
    if choice.group == "tag":
        total = await read_total(api, percentiles="false", **query)
        return History(await _read_tags(api), total, [])
    return await read_history(api, choice.group, **query)


async def _read_rows_before(api: Api, choice: Choice) -> History:
    """Like `_read_rows`, for the previous period and without latencies."""
    query = {**choice.window.before.query, "percentiles": "false"}
    try:
        if choice.group == "tag":
            return History([], await read_total(api, **query), [])
        return await read_history(api, choice.group, **query)
    except Refused:
        return History([], {**ZEROS}, [])


async def _read_tags(api: Api) -> list[Row]:
    """Sessions of the last 24 hours; the log keeps tags for each request, the sums do not."""
    answer = await api.get("/api/sessions", minutes=TAG_MINUTES)
    sums: dict[str, Row] = {}
    for each in answer["sessions"]:
        row = sums.setdefault(each["sessionId"], {**each, **dict.fromkeys(SUMMED, 0)})
        for name in SUMMED:
            row[name] += each[name]
    return list(sums.values())


def _series_of(choice: Choice) -> dict[str, Any]:
    """The part of the query that asks for the largest groups over time, for the chart."""
    if choice.group in WHOLE:
        return {}
    return {
        "orderBy": choice.measure,
        "series": choice.window.bucket,
        "seriesTop": chart.SERIES_MAX,
    }


async def _read_totals(api: Api, choice: Choice) -> list[Row]:
    """The sums by bucket, without separate groups."""
    if choice.group not in WHOLE:
        return []
    return await read_sums(api, choice.window.bucket, **choice.window.query)


def _chart_of_totals(choice: Choice, rows: list[Row]) -> chart.Chart:
    title, measure, show = MEASURES[choice.measure]
    counted = [_measured(row) for row in rows]
    whole = chart.Series(title, by_bucket(choice.window, counted, measure), 0)
    return chart.bars(title, choice.window.labels(), [whole], show)


def _chart(choice: Choice, names: Names, series: list[Row]) -> chart.Chart:
    title, measure, show = MEASURES[choice.measure]
    # Two groups may have one name: keys of one name, or what is called "none".
    by_name: dict[str, list[float]] = {}
    others: list[float] = []
    for group in series:
        values = _values(group, measure)
        if group["isOther"]:
            others = values
            continue
        name = _name(choice.group, names, group)
        known = by_name.get(name)
        by_name[name] = values if known is None else _added(known, values)
    largest = chart.top_series({name: sum(values) for name, values in by_name.items()})
    drawn = [chart.Series(name, tuple(by_name[name]), at) for at, name in enumerate(largest)]
    if others:
        drawn.append(chart.Series("all others", tuple(others), 7))
    words = f"{title} by {GROUPS[choice.group][0].lower()}"
    return chart.bars(words, choice.window.labels(), drawn, show)


def _values(group: Row, measure: str) -> list[float]:
    """A measure of a group in each bucket."""
    if measure == "tokens":
        return _added(group["tokensInput"], group["tokensOutput"])
    return list(group[measure])


def _added(one: list[float], other: list[float]) -> list[float]:
    return [each + more for each, more in zip(one, other, strict=True)]


def _lines(choice: Choice, names: Names, rows: list[Row], before: list[Row]) -> list[Line]:
    measure = MEASURES[choice.measure][1]
    earlier = {_name(choice.group, names, row): _measured(row) for row in before}
    counted = [_measured(row) for row in rows]
    most = max((row[measure] for row in counted), default=0) or 1
    lines = [
        Line(
            _name(choice.group, names, row),
            row,
            earlier.get(_name(choice.group, names, row)),
            row[measure] / most,
            _log_link(choice, row),
        )
        for row in counted
    ]
    if choice.group == "day":
        return lines
    return sorted(lines, key=lambda line: -line.row[measure])


def _measured(row: Row) -> Row:
    return {**row, "tokens": row["tokensInput"] + row["tokensOutput"]}


def _name(group: str, names: Names, row: Row) -> str:
    value = row.get(GROUPS[group][1])
    if group == "key":
        return names.key(value)
    if group == "connection":
        return names.connection(value)
    if group == "provider":
        return names.provider(value)
    if group == "day":
        return figures.moment(value)[:10]
    return str(value) if value is not None else "none"


def _log_link(choice: Choice, row: Row) -> str | None:
    """The requests behind a row, where the log filters by it."""
    name = {
        "model": "model",
        "provider": "provider",
        "key": "keyId",
        "combo": "combo",
        "connection": "connectionId",
        "tag": "sessionTag",
    }.get(choice.group)
    value = row.get(GROUPS[choice.group][1])
    if name is None or value is None:
        return None
    return f"/dashboard/logs?{urlencode({name: value, 'window': choice.window.name})}"


PAGES = (
    Page("usage", "Usage and cost", show_usage, group="Observe", rank=3, icon="usage"),
    Page("usage/download.csv", "Usage as CSV", download_csv),
    Page("usage/download.parquet", "Usage as Parquet", download_parquet),
)

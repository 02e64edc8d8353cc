"""Downloads of the page of usage: its table as CSV and as Parquet."""

from __future__ import annotations

import asyncio
import csv
import io
from typing import Any, Final

import polars as pl
from starlette.responses import Response

from fairlead.dashboard import figures
from fairlead.dashboard.names import read_names
from fairlead.dashboard.page import Page, Visit
from fairlead.dashboard.spreadsheet import attachment, inert
from fairlead.dashboard.usage_sums import GROUPS, Choice, choice_of, name_in, read_rows
from fairlead.dashboard.window import ROWS_MAX, Row
from fairlead.moment import moment_of

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


async def download_csv(visit: Visit) -> Response:
    """The table as CSV; money in US dollars, times in milliseconds."""
    choice = choice_of(visit.query)
    names, (rows, *_) = await asyncio.gather(read_names(visit.api), read_rows(visit.api, choice))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(
        (
            *(GROUPS[group][0] for group in choice.groups),
            *("from_utc", "to_utc", "requests", "errors"),
            *("tokens_input", "tokens_output", "tokens_cached", "cost_usd", "unpriced_requests"),
            *("p50_latency_ms", "p99_latency_ms"),
        )
    )
    for row in rows[:ROWS_MAX]:
        writer.writerow(
            (
                *(inert(name_in(group, names, row)) for group in choice.groups),
                *choice.window.bounds,
                *(row["requests"], row["errors"], row["tokensInput"], row["tokensOutput"]),
                row.get("tokensCached", ""),
                *_exported_cost(row),
                *(row.get("p50LatencyMs", ""), row.get("p99LatencyMs", "")),
            )
        )
    return attachment(_file(choice, "csv"), text.getvalue(), "text/csv; charset=utf-8")


async def download_parquet(visit: Visit) -> Response:
    """The table as Parquet: times of its window in UTC, money in whole micro-dollars."""
    choice = choice_of(visit.query)
    names, (rows, *_) = await asyncio.gather(read_names(visit.api), read_rows(visit.api, choice))
    columns: dict[str, list[Any]] = {
        **{group: [name_in(group, names, row) for row in rows] for group in choice.groups},
        **{column: [row.get(name) for row in rows] for column, name in COLUMNS.items()},
    }
    content = await asyncio.to_thread(_parquet, choice, columns)
    return attachment(_file(choice, "parquet"), content, "application/vnd.apache.parquet")


def _parquet(choice: Choice, columns: dict[str, list[Any]]) -> bytes:
    kinds = {name: pl.Float64 if "latency" in name else pl.Int64 for name in COLUMNS}
    frame = pl.DataFrame(columns, schema={**dict.fromkeys(choice.groups, pl.String), **kinds})
    start, end = (
        pl.lit(moment_of(at_ms)).cast(pl.Datetime("ms", "UTC"))
        for at_ms in (choice.window.from_ms, choice.window.until_ms)
    )
    content = io.BytesIO()
    frame.with_columns(start.alias("from_utc"), end.alias("to_utc")).write_parquet(content)
    return content.getvalue()


def _file(choice: Choice, kind: str) -> str:
    by = "-and-".join(choice.groups)
    return f"fairlead-usage-by-{by}-{choice.window.name}.{kind}"


def _exported_cost(row: Row) -> tuple[str, int]:
    """The cost in US dollars, `no price` where nothing of it is known, and how many requests it leaves out."""
    unpriced = row["unpricedRequests"]
    if unpriced and not row["costUsdMicros"]:
        return figures.NO_PRICE, unpriced
    return f"{row['costUsdMicros'] / 1_000_000:.6f}", unpriced


PAGES = (
    Page("usage/download.csv", "Usage as CSV", download_csv),
    Page("usage/download.parquet", "Usage as Parquet", download_parquet),
)

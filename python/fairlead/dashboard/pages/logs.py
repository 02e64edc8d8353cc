"""The log of requests: narrowed by filters, over any time, in any order, as a file too."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from fairlead.dashboard import chart, figures
from fairlead.dashboard.api import Api, Refused
from fairlead.dashboard.filters import LABELS, OF_SUMS, chips_of, filters_of
from fairlead.dashboard.log_words import OUTCOME_MOODS, OUTCOME_WORDS, OUTCOMES
from fairlead.dashboard.names import read_names
from fairlead.dashboard.page import Page, View, Visit
from fairlead.dashboard.pages.refused import LONG, read_refused
from fairlead.dashboard.reason import kinds, short_reason
from fairlead.dashboard.spreadsheet import attachment, inert
from fairlead.dashboard.window import Row, Window, by_bucket, choices_of, read_sums, window_of

SHOWN: Final = 50
EXPORTED_MAX: Final = 10_000
EXPORTED_AT_ONCE: Final = 500
PAGES_MAX: Final = 200
# The order of the list, and the head of the column that asks for it.
ORDERS: Final = {"time": "Admitted", "tokens": "Tokens in, out", "cost": "Cost", "latency": "Time"}
# Filters that the form shows at once; the others are behind "More".
FIRST: Final = ("search", "keyId", "outcome", "errorKind", "model")
# One cell of the waterfall is drawn in a box of this width.
BOX: Final = 100.0
EXPORTED: Final = {
    "request_id": "requestId",
    "admitted_utc": "timestamp",
    "key_id": "keyId",
    "endpoint": "endpoint",
    "model": "model",
    "provider": "provider",
    "connection_id": "connectionId",
    "status": "status",
    "outcome": "outcome",
    "reason": "errorKind",
    "message": "errorMessage",
    "tokens_input": "tokensInput",
    "tokens_output": "tokensOutput",
    "latency_ms": "latencyMs",
    "ttft_ms": "ttftMs",
    "attempts": "attempts",
    "session_tag": "sessionTag",
    "session_id": "sessionId",
}
# The provider's answer to the last attempt that failed.
EXPORTED_REPLY: Final = {
    "provider_status": "providerStatus",
    "provider_code": "providerCode",
    "provider_type": "providerType",
    "provider_request_id": "providerRequestId",
    "provider_message": "providerMessage",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """How long a request waited and how long its answer flowed, in a box of 100."""

    wait: float
    flow: float


@dataclass(frozen=True, slots=True)
class Listing:
    """The requests that an address asks for."""

    window: Window
    filters: Mapping[str, str]
    order: str
    after: str | None
    page: int

    @property
    def query(self) -> dict[str, Any]:
        """As the API takes it."""
        return {**self.window.query, **self.filters, "orderBy": self.order}

    def link(self, **changed: str) -> str:
        """The address of the list with something changed; an empty text leaves a parameter out."""
        order = {} if self.order == "time" else {"sort": self.order}
        words = {**self.window.address, **self.filters, **order, **changed}
        return f"?{urlencode({name: text for name, text in words.items() if text})}"


async def show_logs(visit: Visit) -> View:
    """A page of the log: what matches the filters, the newest or the largest first."""
    listing = _listing(visit.query)
    error = None
    answer: dict[str, Any] = {"logs": [], "total": 0, "next": None}
    names, refused, plot = await asyncio.gather(
        read_names(visit.api),
        read_refused(visit.api, listing.window, 1),
        _histogram(visit.api, listing),
    )
    try:
        answer = await visit.api.get(
            "/api/usage/request-logs",
            **listing.query,
            after=listing.after,
            offset=(listing.page - 1) * SHOWN,
            limit=SHOWN,
        )
    except Refused as refusal:
        error = refusal.message
    rows = answer["logs"]
    longest = max((row["latencyMs"] for row in rows), default=1) or 1
    is_first = not listing.after and listing.page == 1
    window, chosen = listing.window, listing.filters
    fields = {
        "rows": [(row, _bar(row, longest), short_reason(row)) for row in rows],
        "kinds": kinds(),
        "total": answer["total"],
        "next": _next(listing, answer),
        "newest": None if is_first else listing.link(),
        "listing": listing,
        "heads": {name: (text, listing.link(sort=name)) for name, text in ORDERS.items()},
        "window": window,
        "windows": choices_of(window, chosen),
        "chosen": chosen,
        "chips": chips_of(chosen, window.address, names, OUTCOME_WORDS),
        "more": [(name, LABELS[name]) for name in LABELS if name not in FIRST],
        "download": f"/dashboard/logs/download.csv{listing.link()}",
        "exported_max": EXPORTED_MAX,
        "plot": plot,
        "names": names,
        "outcomes": OUTCOMES,
        "keys": sorted(names.keys.items(), key=lambda each: each[1].lower()),
        "error": error,
        "refused": refused["requests"],
        "refused_address": urlencode(
            window.address if window.name not in LONG else {"window": "7d"}
        ),
        "longest": longest,
        "words": OUTCOME_WORDS,
        "moods": OUTCOME_MOODS,
    }
    # Only the newest requests change while one looks at them.
    is_live = is_first and listing.order == "time" and window.is_open and not error
    return View("logs.html", fields, ("rows",) if is_live else ())


async def download_csv(visit: Visit) -> Response:
    """The requests that match the filters as CSV, with the reasons of those that failed; money in US dollars."""
    listing = _listing(visit.query)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow((*EXPORTED, "cost_usd", "unpriced", *EXPORTED_REPLY))
    written = 0
    while written < EXPORTED_MAX:
        answer = await visit.api.get(
            "/api/usage/request-logs", **listing.query, limit=EXPORTED_AT_ONCE, offset=written
        )
        writer.writerows(map(_exported, answer["logs"]))
        written += len(answer["logs"])
        if len(answer["logs"]) < EXPORTED_AT_ONCE:
            break
    name = f"fairlead-requests-{listing.window.name}.csv"
    return attachment(name, text.getvalue(), "text/csv; charset=utf-8")


def _exported(row: Row) -> list[object]:
    reply: Row = next(
        (each for each in reversed(row["failedAttempts"]) if each["providerStatus"]), {}
    )
    cells = [
        *(row[name] for name in EXPORTED.values()),
        f"{row['costUsdMicros'] / 1_000_000:.6f}",
        row["isUnpriced"],
        *(reply.get(name) for name in EXPORTED_REPLY.values()),
    ]
    return [inert(cell) if isinstance(cell, str) else cell for cell in cells]


def _listing(query: Mapping[str, str]) -> Listing:
    page = query.get("page", "")
    order = query.get("sort", "time")
    return Listing(
        window_of(query, "7d"),
        filters_of(query),
        order if order in ORDERS else "time",
        query.get("after") if order == "time" or order not in ORDERS else None,
        min(int(page), PAGES_MAX) if page.isdecimal() and page.isascii() and int(page) else 1,
    )


def _next(listing: Listing, answer: Mapping[str, Any]) -> str | None:
    """The page that follows. Pages in the order of time begin after the last row, other pages are counted."""
    if listing.order == "time":
        return listing.link(after=answer["next"]) if answer["next"] else None
    if listing.page * SHOWN >= answer["total"] or listing.page >= PAGES_MAX:
        return None
    return listing.link(page=str(listing.page + 1))


async def _histogram(api: Api, listing: Listing) -> chart.Chart | None:
    """Requests over time; None where sums cannot be filtered so, or an older page is shown."""
    if listing.after or listing.page > 1 or not listing.filters.keys() <= set(OF_SUMS):
        return None
    window = listing.window
    try:
        rows = await read_sums(api, window.bucket, **window.query, **listing.filters)
    except Refused:
        return None  # the list says what is wrong with the filters
    every = by_bucket(window, rows, "requests")
    failed = by_bucket(window, rows, "errors")
    good = tuple((all_ or 0) - (bad or 0) for all_, bad in zip(every, failed, strict=True))
    series = [chart.Series("completed", good, 0), chart.Series("failed or refused", failed, 2)]
    order = {} if listing.order == "time" else {"sort": listing.order}
    hrefs = window.links("", **listing.filters, **order)
    return chart.bars("Requests", window.labels(), series, figures.count, hrefs)


def _bar(row: dict[str, Any], longest: float) -> Bar:
    whole = row["latencyMs"] / longest * BOX
    if row["ttftMs"] is None:
        return Bar(max(whole, 0.6), 0)
    wait = min(row["ttftMs"], row["latencyMs"]) / longest * BOX
    return Bar(max(wait, 0.6), max(whole - wait, 0))


PAGES = (
    Page("logs", "Logs", show_logs, group="Observe", rank=2, icon="logs"),
    Page("logs/download.csv", "Requests as CSV", download_csv),
)

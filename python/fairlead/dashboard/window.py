"""Windows of time that pages show, with their buckets and the period before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal, NamedTuple

from fairlead.dashboard.api import Api
from fairlead.dashboard.figures import parse_time
from fairlead.moment import iso, moment_of, now_ms

Bucket = Literal["minute", "hour", "day"]
BUCKET_MS: Final[dict[Bucket, int]] = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
PAGE: Final = 500
ROWS_MAX: Final = 5_000

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Window:
    """From `from_ms` until before `until_ms`, UTC milliseconds, in whole buckets but for the last."""

    name: str
    words: str
    bucket: Bucket
    from_ms: int
    until_ms: int
    is_open: bool = True
    """Whether it ends now."""

    @property
    def query(self) -> dict[str, str]:
        """As the API takes it. A window that ends now has no end there, so that whole buckets answer it."""
        start = {"from": self.bounds[0]}
        return start if self.is_open else {**start, "to": self.bounds[1]}

    @property
    def bounds(self) -> tuple[str, str]:
        """The start and the end of a window as texts."""
        return iso(moment_of(self.from_ms)), iso(moment_of(self.until_ms))

    @property
    def before(self) -> Window:
        """As long a time, just before; it begins with a whole minute or hour, as rollups do."""
        from_ms = 2 * self.from_ms - self.until_ms
        from_ms -= from_ms % BUCKET_MS["minute" if self.bucket == "minute" else "hour"]
        return Window(self.name, self.words, self.bucket, from_ms, self.from_ms, is_open=False)

    def starts(self) -> list[int]:
        """The start of each bucket."""
        size = BUCKET_MS[self.bucket]
        return list(range(self.from_ms - self.from_ms % size, self.until_ms, size))

    def labels(self) -> list[str]:
        """The start of each bucket, in words."""
        form = {"minute": "%H:%M", "hour": "%a %H:%M", "day": "%d %b"}[self.bucket]
        form = "%H:%M" if self.name == "24h" else form
        return [moment_of(at).strftime(form) for at in self.starts()]


_KINDS: Final[dict[str, tuple[str, Bucket, int]]] = {
    "1h": ("the last hour", "minute", 60),
    "24h": ("the last 24 hours", "hour", 24),
    "7d": ("the last 7 days", "day", 7),
    "30d": ("the last 30 days", "day", 30),
}
NAMES: Final = tuple(_KINDS)


def window_of(query: Mapping[str, str], default: str = "24h") -> Window:
    """The window that a page's address asks for in `window`; the default for an unknown one."""
    name = query.get("window", default)
    if name not in _KINDS:
        name = default
    words, bucket, many = _KINDS[name]
    until_ms = now_ms() + 1
    size = BUCKET_MS[bucket]
    from_ms = until_ms - until_ms % size - (many - 1) * size
    return Window(name, words, bucket, from_ms, until_ms)


def day_start_ms() -> int:
    """When today began in UTC, milliseconds."""
    at_ms = now_ms()
    return at_ms - at_ms % BUCKET_MS["day"]


def day_and_month() -> tuple[str, str, float]:
    """When today and this month began, in UTC, and how many times its length so far the month is."""
    now = moment_of(now_ms())
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    month = day.replace(day=1)
    next_month = (month + timedelta(days=32)).replace(day=1)
    passed = max((now - month).total_seconds(), 3600.0)
    return iso(day), iso(month), (next_month - month).total_seconds() / passed


async def read_total(api: Api, **query: Any) -> Row:
    """The sums of everything that fits; zeros for nothing."""
    answer = await api.get("/api/usage/history", groupBy="total", limit=1, **query)
    rows: list[Row] = answer["history"]
    return rows[0] if rows else {**ZEROS}


async def read_groups(api: Api, groups: str, **query: Any) -> list[Row]:
    """Every group, at most `ROWS_MAX`."""
    return (await read_history(api, groups, totals="", **query)).rows


async def read_sums(api: Api, groups: str, **query: Any) -> list[Row]:
    """Like `read_groups`, without percentiles, in half the time."""
    return await read_groups(api, groups, percentiles="false", **query)


class History(NamedTuple):
    """Groups, the sums of all of them, and where they were asked for the largest over time."""

    rows: list[Row]
    totals: Row
    series: list[Row]
    """Each has a list of sums by bucket for each measure."""


async def read_history(api: Api, groups: str, **query: Any) -> History:
    """Every group, at most `ROWS_MAX`, and the sums of all."""
    words = {"groupBy": groups, "limit": PAGE, "totals": "true", **query}
    answer = await api.get("/api/usage/history", **words)
    rows: list[Row] = answer["history"]
    totals, series = answer["totals"] or {**ZEROS}, answer["series"]
    more = {**words, "totals": "", "series": ""}
    while answer["history"] and len(rows) < min(answer["total"], ROWS_MAX):
        answer = await api.get("/api/usage/history", offset=len(rows), **more)
        rows += answer["history"]
    return History(rows, totals, series["groups"] if series else [])


def by_bucket(window: Window, rows: list[Row], name: str) -> tuple[float | None, ...]:
    """A measure for each bucket of a window, zero where nothing was."""
    values: dict[int, float] = {}
    for row in rows:
        at = int(parse_time(row["bucket"]).timestamp() * 1000)
        values[at] = values.get(at, 0) + row[name]
    return tuple(values.get(at, 0) for at in window.starts())


ZEROS: Final[Row] = dict.fromkeys(
    (
        "requests",
        "errors",
        "tokensInput",
        "tokensOutput",
        "tokensCached",
        "tokensReasoning",
        "tokensCacheWrite",
        "costUsdMicros",
        "unpricedRequests",
    ),
    0,
) | dict.fromkeys(
    (
        "avgLatencyMs",
        "p50LatencyMs",
        "p95LatencyMs",
        "p99LatencyMs",
        "p50ChosenMs",
        "p99ChosenMs",
        "p50ProviderMs",
        "p99ProviderMs",
    )
)

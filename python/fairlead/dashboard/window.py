"""Windows of time that pages show, with their buckets and the period before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlencode

from fairlead.dashboard.api import Api
from fairlead.dashboard.figures import parse_time
from fairlead.moment import LATEST_MS, iso, moment_of, ms_of, now_ms

Bucket = Literal["minute", "hour", "day"]
BUCKET_MS: Final[dict[Bucket, int]] = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
PAGE: Final = 500
ROWS_MAX: Final = 5_000
# The name of a window that is given by dates.
OWN: Final = "own"
MINUTES_MAX_MS: Final = 3 * BUCKET_MS["hour"]
HOURS_MAX_MS: Final = 4 * BUCKET_MS["day"]
# As many days as a chart of the API has.
OWN_MAX_MS: Final = 1_500 * BUCKET_MS["day"]
BEFORE: Final = "before"
VERSUS: Final = {
    BEFORE: "the period before",
    "week": "a week earlier",
    "month": "four weeks earlier",
    "year": "52 weeks earlier",
}
_DAYS_BEFORE: Final = {"week": 7, "month": 28, "year": 364}

Row = dict[str, Any]
Tab = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Window:
    """From `from_ms` until before `until_ms`, UTC milliseconds."""

    name: str
    words: str
    bucket: Bucket
    from_ms: int
    until_ms: int
    is_open: bool = True
    """Whether it ends now."""
    versus: str = BEFORE
    """The period to compare with: a name of `VERSUS`, or a date on which that period begins."""
    error: str | None = None
    """Why the dates of the address were not accepted."""

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
    def address(self) -> dict[str, str]:
        """The window as parameters of a page's address."""
        versus = {} if self.versus == BEFORE else {"vs": self.versus}
        if self.name != OWN:
            return {"window": self.name, **versus}
        return own_address(self.from_ms, None if self.is_open else self.until_ms) | versus

    @property
    def title(self) -> str:
        """The title of the window's link."""
        return _TITLES.get(self.name, self.name)

    @property
    def fields(self) -> tuple[str, str]:
        """The start and the end as a field for dates and times takes them."""
        return _minute(self.from_ms), _minute(self.until_ms)

    @property
    def before(self) -> Window:
        """The period to compare with, of the same length; it begins with a whole minute or hour, as rollups do."""
        from_ms = self._before_ms()
        from_ms -= from_ms % BUCKET_MS["minute" if self.bucket == "minute" else "hour"]
        until_ms = from_ms + self.until_ms - self.from_ms
        if self.versus == BEFORE:
            until_ms = self.from_ms
        words = VERSUS.get(self.versus, f"the time from {self.versus}")
        return Window(self.name, words, self.bucket, from_ms, until_ms, is_open=False)

    def _before_ms(self) -> int:
        days = _DAYS_BEFORE.get(self.versus)
        if days is not None:
            return max(self.from_ms - days * BUCKET_MS["day"], 0)
        chosen = _moment_ms(self.versus)
        return max(2 * self.from_ms - self.until_ms, 0) if chosen is None else chosen

    def starts(self) -> list[int]:
        """The start of each bucket."""
        size = BUCKET_MS[self.bucket]
        return list(range(self.from_ms - self.from_ms % size, self.until_ms, size))

    def labels(self) -> list[str]:
        """The start of each bucket, in words."""
        is_one_day = self.until_ms - self.from_ms <= BUCKET_MS["day"]
        hours = "%H:%M" if is_one_day else "%a %H:%M"
        form = {"minute": "%H:%M", "hour": hours, "day": "%d %b"}[self.bucket]
        return [moment_of(at).strftime(form) for at in self.starts()]

    def links(self, path: str, **more: str) -> list[str]:
        """A link from each bucket to a page that shows that bucket alone."""
        size = BUCKET_MS[self.bucket]
        return [
            f"{path}?{urlencode({**more, **own_address(at, at + size)})}" for at in self.starts()
        ]


# How long each window is, or where it begins; "today" and what follows begin with a whole day of UTC.
_KINDS: Final[dict[str, tuple[str, Bucket, int]]] = {
    "1h": ("the last hour", "minute", 60),
    "24h": ("the last 24 hours", "hour", 24),
    "today": ("today", "hour", 0),
    "yesterday": ("yesterday", "hour", 1),
    "7d": ("the last 7 days", "day", 7),
    "30d": ("the last 30 days", "day", 30),
    "month": ("this month", "day", 0),
}
_TITLES: Final = {"today": "Today", "yesterday": "Yesterday", "month": "This month"}
NAMES: Final = tuple(_KINDS)


def window_of(query: Mapping[str, str], default: str = "24h") -> Window:
    """The window that a page's address asks for in `window`, or in `from` and `to`; else the default, with the
    reason where dates were not accepted.
    """
    versus = query.get("vs", BEFORE)
    if versus not in VERSUS and _moment_ms(versus) is None:
        versus = BEFORE
    name = query.get("window", "")
    if query.get("from") or query.get("to"):
        own = _own_window(query.get("from", ""), query.get("to", ""))
        if isinstance(own, Window):
            return replace(own, versus=versus)
        return replace(_preset(default), versus=versus, error=own)
    return replace(_preset(name if name in _KINDS else default), versus=versus)


def choices_of(window: Window, keep: Mapping[str, str], names: Iterable[str] = NAMES) -> list[Tab]:
    """The preset windows as links of a page, which keep the other parameters of its address."""
    versus = {} if window.versus == BEFORE else {"vs": window.versus}
    return [
        (_TITLES.get(name, name), f"?{urlencode({**keep, **versus, 'window': name})}")
        for name in names
    ]


def own_address(from_ms: int, until_ms: int | None) -> dict[str, str]:
    """A time as parameters of an address."""
    end = {} if until_ms is None else {"to": _minute(until_ms)}
    return {"from": _minute(from_ms), **end}


def _preset(name: str) -> Window:
    words, bucket, many = _KINDS[name]
    until_ms = now_ms() + 1
    day_ms = until_ms - until_ms % BUCKET_MS["day"]
    if name == "today":
        return Window(name, words, bucket, day_ms, until_ms)
    if name == "yesterday":
        return Window(name, words, bucket, day_ms - BUCKET_MS["day"], day_ms, is_open=False)
    if name == "month":
        first = moment_of(day_ms).replace(day=1)
        return Window(name, words, bucket, ms_of(first), until_ms)
    size = BUCKET_MS[bucket]
    from_ms = until_ms - until_ms % size - (many - 1) * size
    return Window(name, words, bucket, from_ms, until_ms)


def _own_window(start: str, end: str) -> Window | str:
    """The window between two texts, or what is wrong with them. A date alone is the whole day."""
    now = now_ms() + 1
    from_ms = _moment_ms(start) if start else None
    until_ms = _moment_ms(end, is_end=True) if end else now
    if until_ms is None or (start and from_ms is None):
        return "A date must be written as 2026-11-26 or 2026-11-26T14:30, in UTC."
    is_open = until_ms >= now
    until_ms = min(until_ms, now)
    if from_ms is None:
        from_ms = max(until_ms - BUCKET_MS["day"], 0)
    if from_ms >= until_ms:
        return "The time must begin before it ends, and in the past."
    length = until_ms - from_ms
    if length > OWN_MAX_MS:
        return f"The time must not be longer than {OWN_MAX_MS // BUCKET_MS['day']:,} days."
    bucket: Bucket = "day"
    if length <= HOURS_MAX_MS:
        bucket = "minute" if length <= MINUTES_MAX_MS else "hour"
    words = f"{_words(from_ms)} to {'now' if is_open else _words(until_ms)}"
    return Window(OWN, words, bucket, from_ms, until_ms, is_open)


def _moment_ms(text: str, *, is_end: bool = False) -> int | None:
    """A date, or a date with a time, in UTC unless it says otherwise; None for anything else."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        at_ms = ms_of(moment)
    except (ValueError, OverflowError):
        return None
    if is_end and len(text) == len("2026-11-26"):
        at_ms += BUCKET_MS["day"]
    return at_ms if 0 <= at_ms <= LATEST_MS else None


def _minute(at_ms: int) -> str:
    return moment_of(at_ms).strftime("%Y-%m-%dT%H:%M")


def _words(at_ms: int) -> str:
    moment = moment_of(at_ms)
    return moment.strftime("%d %b %Y" if at_ms % BUCKET_MS["day"] == 0 else "%d %b %Y %H:%M")


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

"""Sums of usage as the page of usage and its downloads show them: the choice that an address makes, and its groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from fairlead.dashboard import chart, figures
from fairlead.dashboard.api import Api, Refused
from fairlead.dashboard.filters import OF_SUMS, filters_of
from fairlead.dashboard.names import Names
from fairlead.dashboard.window import (
    PAGE,
    ZEROS,
    History,
    Row,
    Window,
    own_address,
    read_history,
    read_total,
    window_of,
)

# The name of each dimension, its field in a row of the history, and its filter.
GROUPS: Final[Mapping[str, tuple[str, str, str]]] = {
    "model": ("Model", "model", "model"),
    "provider": ("Provider", "provider", "provider"),
    "key": ("Key", "keyId", "keyId"),
    "group": ("Group", "groupId", "groupId"),
    "combo": ("Combo", "combo", "combo"),
    "endpoint": ("Endpoint", "endpoint", "endpoint"),
    "connection": ("Connection", "connectionId", "connectionId"),
    "session": ("Session", "session", "session"),
    "reason": ("Reason", "errorKind", "errorKind"),
    "day": ("Day", "bucket", ""),
    "hour": ("Hour", "bucket", ""),
}
# Addresses of earlier versions.
RENAMED: Final = {"tag": "session"}
MEASURES: Final[dict[str, tuple[str, str, Callable[[float | None], str]]]] = {
    "cost": ("Cost", "costUsdMicros", figures.money),
    "requests": ("Requests", "requests", figures.count),
    "errors": ("Failed", "errors", figures.count),
    "tokens": ("Tokens", "tokens", figures.count),
}
TIMES: Final = ("day", "hour")
# Groups that the chart does not tell apart: times are its columns, and there may be very many sessions.
WHOLE: Final = (*TIMES, "session")
# Dimensions that are read from requests, without percentiles of many groups.
MANY: Final = ("session",)


@dataclass(frozen=True, slots=True)
class Choice:
    """The window, groups, measure and filters that the address of the page asks for."""

    window: Window
    groups: tuple[str, ...]
    """One dimension, or two."""
    measure: str
    filters: Mapping[str, str]

    @property
    def group(self) -> str:
        """The first dimension."""
        return self.groups[0]

    @property
    def title(self) -> str:
        """The dimensions in words."""
        return " and ".join(GROUPS[name][0].lower() for name in self.groups).capitalize()

    @property
    def shape(self) -> dict[str, str]:
        """The parameters of the address but for the window and the filters."""
        second = {"then": self.groups[1]} if len(self.groups) > 1 else {}
        return {"by": self.group, **second, "measure": self.measure}

    def link(self, **changed: str) -> str:
        """The address of the page with another choice; an empty text leaves a parameter out."""
        words = {**self.window.address, **self.shape, **self.filters, **changed}
        return f"?{urlencode({name: text for name, text in words.items() if text})}"


def choice_of(query: Mapping[str, str]) -> Choice:
    """The choice of an address; the default for what it does not say."""
    measure = query.get("measure", "cost")
    group = RENAMED.get(query.get("by", ""), query.get("by", ""))
    group = group if group in GROUPS else "model"
    then = query.get("then", "")
    is_pair = then in GROUPS and can_pair(group, then)
    return Choice(
        window_of(query, "7d"),
        (group, then) if is_pair else (group,),
        measure if measure in MEASURES else "cost",
        filters_of(query, OF_SUMS),
    )


def can_pair(first: str, second: str) -> bool:
    """Whether sums can be grouped by both dimensions."""
    return first != second and not {first, second} & {*WHOLE, "reason"}


async def read_rows(api: Api, choice: Choice, **more: Any) -> History:
    """The groups of the window, and the sums of all of them."""
    query = {**choice.window.query, **choice.filters, **more}
    if choice.group in MANY:
        return await _read_largest(api, choice, query)
    if choice.group == "reason":
        # It is read from the requests, where percentiles of every group take long.
        query["percentiles"] = "false"
    return await read_history(api, ",".join(choice.groups), **query)


async def read_rows_before(api: Api, choice: Choice) -> History:
    """Like `read_rows`, for the period to compare with and without latencies."""
    query = {**choice.window.before.query, **choice.filters, "percentiles": "false"}
    try:
        if choice.group in (*MANY, *TIMES):
            return History([], await read_total(api, **query), [])
        return await read_history(api, ",".join(choice.groups), **query)
    except Refused:
        return History([], {**ZEROS}, [])


async def _read_largest(api: Api, choice: Choice, query: dict[str, Any]) -> History:
    """The largest groups alone: there may be millions."""
    answer = await api.get(
        "/api/usage/history",
        groupBy=choice.group,
        orderBy=choice.measure,
        limit=PAGE,
        totals="true",
        **query,
    )
    return History(answer["history"], answer["totals"] or {**ZEROS}, [])


def series_of(choice: Choice) -> dict[str, Any]:
    """The part of the query that asks for the largest groups over time, for the chart."""
    if choice.group in WHOLE:
        return {}
    return {
        "orderBy": choice.measure,
        "series": choice.window.bucket,
        "seriesTop": chart.SERIES_MAX,
    }


def measured(row: Row) -> Row:
    """The row with the sum of its tokens."""
    return {**row, "tokens": row["tokensInput"] + row["tokensOutput"]}


def name_of(choice: Choice, names: Names, row: Row) -> str:
    """The name of a row's group, or of both."""
    return " · ".join(name_in(group, names, row) for group in choice.groups)


def name_in(group: str, names: Names, row: Row) -> str:
    """The name of a row's group in one dimension."""
    value = row.get(GROUPS[group][1])
    if group == "key":
        return names.key(value)
    if group == "connection":
        return names.connection(value)
    if group == "provider":
        return names.provider(value)
    if group == "group":
        return names.group(value)
    if group in TIMES:
        return figures.moment(value)[: 10 if group == "day" else 16]
    if group == "reason":
        return "completed" if value is None else str(value).replace("_", " ").lower()
    return str(value) if value is not None else "none"


def filters_in(choice: Choice, row: Row) -> dict[str, str] | None:
    """The filters and the time that leave a row's requests alone; None where no filter does."""
    found: dict[str, str] = {}
    for group in choice.groups:
        _, field, name = GROUPS[group]
        value = row.get(field)
        if value is None:
            return None
        if group in TIMES:
            start_ms = int(figures.parse_time(value).timestamp() * 1000)
            length_ms = 86_400_000 if group == "day" else 3_600_000
            found |= own_address(start_ms, start_ms + length_ms)
        else:
            found[name] = str(value)
    return found

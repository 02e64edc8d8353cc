"""The last day at a glance, for the first page: each provider as a strip, errors by reason, and what costs more."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from fairlead.dashboard import figures
from fairlead.dashboard.api import Api
from fairlead.dashboard.names import Names
from fairlead.dashboard.window import Row, own_address, read_sums, window_of
from fairlead.moment import iso, moment_of, now_ms

QUARTER_MS: Final = 15 * 60_000
CELLS: Final = 96
PROVIDERS_SHOWN: Final = 8
REASONS_SHOWN: Final = 6
MOVERS_SHOWN: Final = 5
# All consoles read it once in this time.
HOLDS_MS: Final = 30_000
# The share of failures from which a quarter of an hour is amber, and red.
SOME: Final = 0.01
MUCH: Final = 0.2
# A rise of less than a cent is none.
RISE_MICROS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Stretch:
    """Quarters of an hour in a row with one state, in a box of 96."""

    x: int
    width: int
    mood: str
    tip: str
    href: str


@dataclass(frozen=True, slots=True)
class Strip:
    """A provider's last 24 hours; `None` as its name stands for requests that no provider was called for."""

    name: str
    href: str
    requests: int
    errors: int
    stretches: tuple[Stretch, ...]

    @property
    def mood(self) -> str:
        """The state of the whole time."""
        return _mood(self.requests, self.errors)


class ReasonCount(NamedTuple):
    """How many requests failed for a reason."""

    words: str
    requests: int
    part: float
    href: str


class Mover(NamedTuple):
    """A key or model that costs more than in the week before; micro-dollars."""

    kind: str
    name: str
    now: int
    before: int
    href: str


class Overview(NamedTuple):
    """The figures of the last day and of two weeks."""

    strips: list[Strip]
    reasons: list[ReasonCount]
    movers: list[Mover]


async def read_overview(api: Api, names: Names) -> Overview:
    """Read once in half a minute for all consoles."""
    at = now_ms() // HOLDS_MS

    async def read(api: Api) -> tuple[Any, list[Row], list[list[Row]]]:
        return await asyncio.gather(_read_series(api), _read_reasons(api), _read_costs(api))

    series, reasons, costs = await api.cached_for_a_while(f"overview {at}", read)
    return Overview(strips_of(series, names), reasons_of(reasons), movers_of(costs, names))


async def _read_series(api: Api) -> Any:
    until = now_ms()
    from_ms = until - until % QUARTER_MS - (CELLS - 1) * QUARTER_MS
    answer = await api.get(
        "/api/usage/history",
        groupBy="provider",
        series="quarter",
        seriesTop=PROVIDERS_SHOWN,
        percentiles="false",
        limit=1,
        **{"from": iso(moment_of(from_ms))},
    )
    return answer["series"]


async def _read_reasons(api: Api) -> list[Row]:
    window = window_of({"window": "24h"})
    return await read_sums(api, "reason", **window.query)


async def _read_costs(api: Api) -> list[list[Row]]:
    """Keys and models of the last seven days, and of the seven before."""
    window = window_of({"window": "7d"})
    return await asyncio.gather(
        *(
            read_sums(api, group, **each.query)
            for group in ("key", "model")
            for each in (window, window.before)
        )
    )


def strips_of(series: dict[str, Any] | None, names: Names) -> list[Strip]:
    """A strip for each provider that was called, the busiest first."""
    if series is None:
        return []
    starts = [round(figures.parse_time(each).timestamp() * 1000) for each in series["buckets"]]
    return [
        _strip(group, starts, names.provider(group["provider"]))
        for group in series["groups"]
        if group["provider"] is not None and not group["isOther"]
    ]


def _strip(group: Row, starts: list[int], name: str) -> Strip:
    stretches: list[Stretch] = []
    at = 0
    cells = list(zip(group["requests"], group["errors"], strict=True))
    while at < len(cells):
        mood = _mood(*cells[at])
        end = at + 1
        while end < len(cells) and _mood(*cells[end]) == mood:
            end += 1
        if mood:
            stretches.append(_stretch(group, starts, (at, end), mood))
        at = end
    query = urlencode({"provider": group["provider"], "window": "24h"})
    href = f"/dashboard/logs?{query}"
    return Strip(name, href, sum(group["requests"]), sum(group["errors"]), tuple(stretches))


def _stretch(group: Row, starts: list[int], place: tuple[int, int], mood: str) -> Stretch:
    at, end = place
    requests, errors = (sum(group[name][at:end]) for name in ("requests", "errors"))
    until_ms = starts[end - 1] + QUARTER_MS
    times = f"{moment_of(starts[at]):%H:%M} to {moment_of(until_ms):%H:%M}"
    failed = f"{errors:,} of {requests:,} failed ({figures.share(errors / requests)})"
    query = {"provider": group["provider"], **own_address(starts[at], until_ms)}
    if errors:
        query["outcome"] = "upstream_failed"
    return Stretch(at, end - at, mood, f"{times}\n{failed}", f"/dashboard/logs?{urlencode(query)}")


def _mood(requests: int, errors: int) -> str:
    if not requests:
        return ""
    share = errors / requests
    return "bad" if share >= MUCH else "warn" if share >= SOME else "good"


def reasons_of(rows: list[Row]) -> list[ReasonCount]:
    """The reasons for which most requests failed."""
    failed = sorted((row for row in rows if row["errors"]), key=lambda row: -row["errors"])
    most = failed[0]["errors"] if failed else 1
    return [
        ReasonCount(
            (row["errorKind"] or "no reason was stored").replace("_", " ").lower(),
            row["errors"],
            row["errors"] / most,
            f"/dashboard/logs?{urlencode({'errorKind': row['errorKind'] or '', 'window': '24h'})}",
        )
        for row in failed[:REASONS_SHOWN]
    ]


def movers_of(costs: list[list[Row]], names: Names) -> list[Mover]:
    """The keys and models whose cost rose most."""
    keys, keys_before, models, models_before = costs
    found = [
        *_risen("Key", "keyId", keys, keys_before),
        *_risen("Model", "model", models, models_before),
    ]
    found.sort(key=lambda each: each.before - each.now)
    return [
        each._replace(name=names.key(each.name)) if each.kind == "Key" else each
        for each in found[:MOVERS_SHOWN]
    ]


def _risen(kind: str, field: str, now: list[Row], before: list[Row]) -> list[Mover]:
    earlier = {row[field]: row["costUsdMicros"] for row in before}
    by = "model" if kind == "Key" else "key"
    return [
        Mover(
            kind,
            row[field],
            row["costUsdMicros"],
            earlier.get(row[field], 0),
            f"/dashboard/usage?{urlencode({field: row[field], 'window': '7d', 'by': by})}",
        )
        for row in now
        # Without a cost in the week before there is no rise to show.
        if row[field] is not None
        and earlier.get(row[field])
        and row["costUsdMicros"] - earlier[row[field]] >= RISE_MICROS
    ]

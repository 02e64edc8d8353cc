"""Spending of keys since the beginning of a day, a week or a month."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from fairlead.dashboard.api import Api
from fairlead.dashboard.window import Row, day_start_ms, read_history
from fairlead.moment import iso, moment_of

SUMMED: Final = (
    "requests",
    "errors",
    "tokensInput",
    "tokensOutput",
    "costUsdMicros",
    "unpricedRequests",
)


class Spending(NamedTuple):
    """The sums of each key by its id (None for calls without one), and those of all calls."""

    keys: dict[str | None, Row]
    total: Row


async def read_spending(api: Api, starts: Iterable[int]) -> dict[int, Spending]:
    """Since each of these times, UTC milliseconds.

    Today is read once for all of them: the days before it hardly ever change, and are answered from memory.
    """
    day_ms = day_start_ms()
    wanted = sorted({*starts, day_ms})
    read = await asyncio.gather(*(_read(api, start, day_ms) for start in wanted))
    found = dict(zip(wanted, read, strict=True))
    today = found[day_ms]
    return {
        start: _added(spent, today) if start < day_ms else spent for start, spent in found.items()
    }


async def _read(api: Api, start_ms: int, day_ms: int) -> Spending:
    """Since a time today, or from one before it until today."""
    query = {"from": iso(moment_of(start_ms))}
    if start_ms < day_ms:
        query["to"] = iso(moment_of(day_ms))
    answer = await read_history(api, "key", percentiles="false", **query)
    return Spending({row["keyId"]: row for row in answer.rows}, answer.totals)


def _added(one: Spending, other: Spending) -> Spending:
    keys = dict(one.keys)
    for key_id, row in other.keys.items():
        keys[key_id] = _sum(keys[key_id], row) if key_id in keys else row
    return Spending(keys, _sum(one.total, other.total))


def _sum(one: Row, other: Row) -> Row:
    return {name: one[name] + other[name] for name in SUMMED}

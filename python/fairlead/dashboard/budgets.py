"""Limits of money of keys, with what is spent of each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairlead.dashboard.api import Api
from fairlead.dashboard.names import read_keys
from fairlead.dashboard.window import read_sums
from fairlead.moment import iso, moment_of, now_ms
from fairlead.store.budgets import KINDS
from fairlead.store.budgets import window_of as budget_window

_PERIODS: Final = {"day": "today", "week": "this week", "month": "this month"}


@dataclass(frozen=True, slots=True)
class Budget:
    """A key's limit of money and what is spent of it; micro-dollars."""

    key_id: str
    name: str
    words: str
    spent: int
    limit: int

    @property
    def part(self) -> float:
        """From 0 on; more than 1 where the last request went over."""
        return self.spent / self.limit if self.limit else 1.0


async def read_budgets(api: Api, keys: Sequence[dict[str, Any]] | None = None) -> list[Budget]:
    """The limits of money of these keys, or of all, with what is spent of each since its day, week or month began
    in its zone.
    """
    at_ms = now_ms()
    if keys is None:
        keys = await read_keys(api)
    limits = [
        (key, kind, budget_window(kind, key["usageLimitTz"], at_ms)[0])
        for key in keys
        if key["usageLimitEnabled"]
        for kind in KINDS
        if key[kind.field] is not None
    ]
    starts = sorted({start for _, _, start in limits})
    rows = await asyncio.gather(
        *(read_sums(api, "key", **{"from": iso(moment_of(start))}) for start in starts)
    )
    spent = {
        (start, row["keyId"]): row["costUsdMicros"]
        for start, each in zip(starts, rows, strict=True)
        for row in each
    }
    return [
        Budget(
            key["id"],
            key["name"],
            f"{_PERIODS[kind.period]}, {key['usageLimitTz']}",
            spent.get((start, key["id"]), 0),
            round(key[kind.field] * 1_000_000),
        )
        for key, kind, start in limits
    ]

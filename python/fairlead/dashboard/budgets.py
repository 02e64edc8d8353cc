"""Spending limits of keys, with what is spent of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fairlead.dashboard.api import Api
from fairlead.dashboard.figures import total_of
from fairlead.dashboard.names import read_keys
from fairlead.dashboard.spending import Spending, read_spending
from fairlead.dashboard.window import ZEROS, Row, day_start_ms
from fairlead.moment import now_ms
from fairlead.records.budgets import KINDS, BudgetKind
from fairlead.records.budgets import window_of as budget_window

# The part of a window from which on its pace says something about its end.
SAYS_SOMETHING: Final = 0.05
_PERIODS: Final = {"day": "today", "week": "this week", "month": "this month"}


@dataclass(frozen=True, slots=True)
class Budget:
    """A key's limit of money and what is spent of it; micro-dollars."""

    key_id: str
    name: str
    words: str
    spent: int
    limit: int
    unpriced: int = 0
    """Requests in the window without a price: nobody knows what they add to `spent`."""

    passed: float = 1.0
    """The share of its day, week or month that is over."""

    @property
    def projected(self) -> int | None:
        """The amount that is spent by the end at the pace so far; None while hardly any of the time has passed."""
        return round(self.spent / self.passed) if self.passed >= SAYS_SOMETHING else None

    @property
    def spent_words(self) -> str:
        """The amount that is spent, as far as it is known."""
        return total_of(self.spent, self.unpriced)

    @property
    def part(self) -> float:
        """From 0 on; more than 1 where the last request went over."""
        return self.spent / self.limit if self.limit else 1.0


async def read_budgets(api: Api, keys: Sequence[dict[str, Any]] | None = None) -> list[Budget]:
    """The limits of money of these keys, or of all, with what is spent of each since its day, week or month began
    in its zone.
    """
    if keys is None:
        keys = await read_keys(api)
    limits = _limits_of(keys)
    return _budgets(limits, await read_spending(api, _starts(limits))) if limits else []


async def read_budgets_and_today(api: Api) -> tuple[list[Budget], Row]:
    """The limits of all keys, and the sums of today's calls, which are read with them."""
    limits, day_ms = _limits_of(await read_keys(api)), day_start_ms()
    spending = await read_spending(api, {*_starts(limits), day_ms})
    return _budgets(limits, spending), spending[day_ms].total


class _Limit(NamedTuple):
    key: dict[str, Any]
    kind: BudgetKind
    start_ms: int
    end_ms: int


def _limits_of(keys: Sequence[dict[str, Any]]) -> list[_Limit]:
    at_ms = now_ms()
    return [
        _Limit(key, kind, *budget_window(kind, key["usageLimitTz"], at_ms))
        for key in keys
        if key["usageLimitEnabled"]
        for kind in KINDS
        if key[kind.field] is not None
    ]


def _starts(limits: list[_Limit]) -> set[int]:
    return {limit.start_ms for limit in limits}


def _budgets(limits: list[_Limit], spending: dict[int, Spending]) -> list[Budget]:
    at_ms = now_ms()
    return [
        Budget(
            key["id"],
            key["name"],
            f"{_PERIODS[kind.period]}, {key['usageLimitTz']}",
            spent["costUsdMicros"],
            round(key[kind.field] * 1_000_000),
            spent["unpricedRequests"],
            (at_ms - start_ms) / (end_ms - start_ms),
        )
        for key, kind, start_ms, end_ms in limits
        for spent in [spending[start_ms].keys.get(key["id"], ZEROS)]
    ]

"""The budgets of keys: so much money in each day, week and month of the key's time zone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Literal

from fairlead import _core
from fairlead.store.file import Connection

Period = Literal["day", "week", "month"]


@dataclass(frozen=True, slots=True)
class BudgetKind:
    """The budget of one period: its field in the API, its column, and the adjective of its period."""

    period: Period
    word: str
    field: str
    column: str


KINDS: Final = (
    BudgetKind("day", "daily", "dailyUsageLimitUsd", "daily_usage_limit_usd_micros"),
    BudgetKind("week", "weekly", "weeklyUsageLimitUsd", "weekly_usage_limit_usd_micros"),
    BudgetKind("month", "monthly", "monthlyUsageLimitUsd", "monthly_usage_limit_usd_micros"),
)
COLUMNS: Final = tuple(kind.column for kind in KINDS)
_SELECT: Final = (
    f"SELECT id, name, usage_limit_tz, usage_alert_percents, {', '.join(COLUMNS)} FROM keys "
    "WHERE usage_limit_enabled AND id IN (SELECT unnest(?::VARCHAR[])) ORDER BY id"
)


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit that holds for a key, and at how many percent of it somebody wants to know."""

    key_id: str
    key_name: str
    kind: BudgetKind
    limit_usd_micros: int
    tz: str
    alert_percents: tuple[int, ...]

    def window(self, at_ms: int) -> tuple[int, int]:
        """Start and end of the window of that moment, Unix milliseconds."""
        return window_of(self.kind, self.tz, at_ms)


def window_of(kind: BudgetKind, tz: str, at_ms: int) -> tuple[int, int]:
    """Start and end of the window of that moment, Unix milliseconds."""
    return _core.limit_window(kind.period, 0, at_ms, tz)


def read_budgets(con: Connection, key_ids: Collection[str]) -> list[Budget]:
    """The budgets in force of these keys."""
    rows: list[tuple[Any, ...]] = con.execute(_SELECT, [sorted(key_ids)]).fetchall()
    return [
        Budget(key_id, name, kind, limit, tz, tuple(percents))
        for key_id, name, tz, percents, *limits in rows
        for kind, limit in zip(KINDS, limits, strict=True)
        if limit is not None
    ]

"""The budgets of keys and groups: so much money in each day, week and month of their time zone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Literal

from fairlead import _core
from fairlead.store.file import Connection

Period = Literal["day", "week", "month"]
BudgetScope = Literal["key", "group"]


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
_SELECTED: Final = f"SELECT id, name, usage_limit_tz, usage_alert_percents, {', '.join(COLUMNS)}"
_THESE: Final = "id IN (SELECT unnest(?::VARCHAR[])) ORDER BY id"
# Limits of a key count while they are switched on, those of a group always.
_SELECT: Final[dict[BudgetScope, str]] = {
    "key": f"{_SELECTED} FROM keys WHERE usage_limit_enabled AND {_THESE}",
    "group": f"{_SELECTED} FROM key_groups WHERE {_THESE}",
}


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit that holds for a key, or for all keys of a group together, and at how many percent of it somebody
    wants to know.
    """

    scope: BudgetScope
    owner_id: str
    owner_name: str
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


def read_budgets(
    con: Connection, key_ids: Collection[str], group_ids: Collection[str] = ()
) -> list[Budget]:
    """The budgets in force of these keys and groups."""
    return [
        *_read(con, "key", key_ids),
        *_read(con, "group", group_ids),
    ]


def _read(con: Connection, scope: BudgetScope, ids: Collection[str]) -> list[Budget]:
    rows: list[tuple[Any, ...]] = (
        con.execute(_SELECT[scope], [sorted(ids)]).fetchall() if ids else []
    )
    return [
        Budget(scope, owner_id, name, kind, limit, tz, tuple(percents))
        for owner_id, name, tz, percents, *limits in rows
        for kind, limit in zip(KINDS, limits, strict=True)
        if limit is not None
    ]

"""Alerts of budgets: a key has spent so many percent of one, or is about to pass it before its month ends.

Each is raised once in each window of a budget, also across restarts: the state database holds what was told, in the
transaction that queues its event.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from fairlead.moment import iso, moment_of
from fairlead.store.budgets import Budget, read_budgets
from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.store.state import State
from fairlead.usage.spent import Question, spent_of

EVENTS: Final = ("budget.reached", "budget.forecast")
# A projection from less than a tenth of the month says little.
_FORECAST_FROM: Final = 10


@dataclass(frozen=True, slots=True)
class Spending:
    """A budget, the window that it is in, and what is spent in that."""

    budget: Budget
    starts_ms: int
    ends_ms: int
    usd_micros: int

    def projected_usd_micros(self, at_ms: int) -> int:
        """The sum at the end of the window if spending goes on as it did."""
        elapsed_ms = max(at_ms - self.starts_ms, 1)
        return self.usd_micros * (self.ends_ms - self.starts_ms) // elapsed_ms


async def raise_alerts(state: State, usage: Database, key_ids: Collection[str], at_ms: int) -> None:
    """Emits an event for each alert of these keys' budgets that is due and was not raised yet."""
    budgets = await state.read(lambda con: read_budgets(con, key_ids))
    if not budgets:
        return
    windows = [budget.window(at_ms) for budget in budgets]
    questions = [
        Question(key_id=budget.key_id, unit="usd_micros", from_ms=starts_ms)
        for budget, (starts_ms, _) in zip(budgets, windows, strict=True)
    ]
    sums = await spent_of(state, usage, questions)
    due = [
        (spending, alert)
        for budget, window, spent in zip(budgets, windows, sums, strict=True)
        for spending in [Spending(budget, *window, spent)]
        for alert in due_alerts(spending, at_ms)
    ]
    if due and await state.read(lambda con: _untold(con, due)):
        await state.record(partial(_raise, due, at_ms))


def due_alerts(spending: Spending, at_ms: int) -> Iterator[int | None]:
    """The percents that are reached, and None where the month's end is projected to pass the limit."""
    budget, spent = spending.budget, spending.usd_micros
    for percent in sorted(budget.alert_percents):
        # A limit of nothing is used up from the beginning.
        if spent * 100 >= percent * budget.limit_usd_micros:
            yield percent
    elapsed_ms, length_ms = at_ms - spending.starts_ms, spending.ends_ms - spending.starts_ms
    if (
        budget.kind.period == "month"
        and budget.alert_percents
        and elapsed_ms * _FORECAST_FROM >= length_ms
        and spent < budget.limit_usd_micros < spending.projected_usd_micros(at_ms)
    ):
        yield None


def _untold(
    con: Connection, due: list[tuple[Spending, int | None]]
) -> list[tuple[Spending, int | None]]:
    key_ids = sorted({spending.budget.key_id for spending, _ in due})
    rows = con.execute(
        "SELECT key_id, field, limit_usd_micros, starts_ms, alert FROM budget_alerts "
        "WHERE key_id IN (SELECT unnest(?::VARCHAR[]))",
        [key_ids],
    ).fetchall()
    told = set(rows)
    return [(each, alert) for each, alert in due if _place(each, alert) not in told]


def _place(spending: Spending, alert: int | None) -> tuple[str, str, int, int, str]:
    budget = spending.budget
    name = "forecast" if alert is None else str(alert)
    return (budget.key_id, budget.kind.field, budget.limit_usd_micros, spending.starts_ms, name)


def _raise(due: list[tuple[Spending, int | None]], at_ms: int, con: Connection) -> None:
    con.execute("DELETE FROM budget_alerts WHERE ends_ms <= ?", [at_ms])
    for spending, alert in _untold(con, due):
        key_id, field, limit_usd_micros, starts_ms, name = _place(spending, alert)
        con.execute(
            "INSERT INTO budget_alerts VALUES (?, ?, ?, ?, ?, ?)",
            [key_id, field, limit_usd_micros, starts_ms, spending.ends_ms, name],
        )
        emit(con, _event(spending, alert, at_ms))


def _event(spending: Spending, alert: int | None, at_ms: int) -> Event:
    budget = spending.budget
    data = {
        "scope": "key",
        "id": budget.key_id,
        "name": budget.key_name,
        "field": budget.kind.field,
        "spentUsdMicros": spending.usd_micros,
        "limitUsdMicros": budget.limit_usd_micros,
        "startsAt": iso(moment_of(spending.starts_ms)),
        "resetsAt": iso(moment_of(spending.ends_ms)),
    }
    if alert is None:
        data["projectedUsdMicros"] = spending.projected_usd_micros(at_ms)
        return Event("budget.forecast", data)
    return Event("budget.reached", data | {"percent": alert})

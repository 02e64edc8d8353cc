"""Alerts of budgets: a key or a group has spent so many percent of one, or is about to pass it before its month ends.

Each is sent once in each window of a budget, also across restarts: the state database stores what was sent, in
the transaction that queues its event.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from fairlead.moment import iso, moment_of
from fairlead.records.budgets import Budget, read_budgets
from fairlead.records.mail_queue import queue_mails
from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.store.state import State
from fairlead.usage.budgets.budget_mail import alert_mail
from fairlead.usage.budgets.spending import Spending
from fairlead.usage.budgets.spent import Question, Unit, spent_of

EVENTS: Final = ("budget.reached", "budget.forecast")
# A projection from less than a tenth of the month says little.
_FORECAST_FROM: Final = 10
_UNITS: Final[tuple[Unit, Unit]] = ("usd_micros", "unpriced_requests")


@dataclass(frozen=True, slots=True)
class Payers:
    """The keys and groups that have just spent money."""

    key_ids: Collection[str] = ()
    group_ids: Collection[str] = ()


async def raise_alerts(state: State, usage: Database, payers: Payers, at_ms: int) -> None:
    """Emits an event for each alert of these budgets that is due and was not raised yet, and queues a mail about
    it where mails are wanted.
    """
    budgets = await state.read(lambda con: read_budgets(con, payers.key_ids, payers.group_ids))
    if not budgets:
        return
    windows = [budget.window(at_ms) for budget in budgets]
    questions = [
        _question(budget, starts_ms, unit)
        for unit in _UNITS
        for budget, (starts_ms, _) in zip(budgets, windows, strict=True)
    ]
    sums = await spent_of(state, usage, questions)
    spent, unpriced = sums[: len(budgets)], sums[len(budgets) :]
    due = [
        (spending, alert)
        for budget, window, *amounts in zip(budgets, windows, spent, unpriced, strict=True)
        for spending in [Spending(budget, *window, *amounts)]
        for alert in due_alerts(spending, at_ms)
    ]
    if due and await state.read(lambda con: _unannounced(con, due)):
        await state.record(partial(_raise, due, at_ms))


def _question(budget: Budget, starts_ms: int, unit: Unit) -> Question:
    if budget.scope == "group":
        return Question(group_id=budget.owner_id, unit=unit, from_ms=starts_ms)
    return Question(key_id=budget.owner_id, unit=unit, from_ms=starts_ms)


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


def _unannounced(
    con: Connection, due: list[tuple[Spending, int | None]]
) -> list[tuple[Spending, int | None]]:
    owner_ids = sorted({spending.budget.owner_id for spending, _ in due})
    rows = con.execute(
        "SELECT owner_id, field, limit_usd_micros, starts_ms, alert FROM budget_alerts "
        "WHERE owner_id IN (SELECT unnest(?::VARCHAR[]))",
        [owner_ids],
    ).fetchall()
    announced = set(rows)
    return [(each, alert) for each, alert in due if _place(each, alert) not in announced]


def _place(spending: Spending, alert: int | None) -> tuple[str, str, int, int, str]:
    budget = spending.budget
    name = "forecast" if alert is None else str(alert)
    return (budget.owner_id, budget.kind.field, budget.limit_usd_micros, spending.starts_ms, name)


def _raise(due: list[tuple[Spending, int | None]], at_ms: int, con: Connection) -> None:
    con.execute("DELETE FROM budget_alerts WHERE ends_ms <= ?", [at_ms])
    for spending, alert in _unannounced(con, due):
        owner_id, field, limit_usd_micros, starts_ms, name = _place(spending, alert)
        con.execute(
            "INSERT INTO budget_alerts VALUES (?, ?, ?, ?, ?, ?)",
            [owner_id, field, limit_usd_micros, starts_ms, spending.ends_ms, name],
        )
        emit(con, _event(spending, alert, at_ms))
        queue_mails(con, [alert_mail(spending, alert, at_ms)])


def _event(spending: Spending, alert: int | None, at_ms: int) -> Event:
    budget = spending.budget
    data = {
        "scope": budget.scope,
        "id": budget.owner_id,
        "name": budget.owner_name,
        "field": budget.kind.field,
        "spentUsdMicros": spending.usd_micros,
        "unpricedRequests": spending.unpriced_requests,
        "limitUsdMicros": budget.limit_usd_micros,
        "startsAt": iso(moment_of(spending.starts_ms)),
        "resetsAt": iso(moment_of(spending.ends_ms)),
    }
    if alert is None:
        data["projectedUsdMicros"] = spending.projected_usd_micros(at_ms)
        return Event("budget.forecast", data)
    return Event("budget.reached", data | {"percent": alert})

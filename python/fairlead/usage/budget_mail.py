"""The mail about an alert of a budget, in plain text."""

from __future__ import annotations

from fairlead.moment import iso, moment_of
from fairlead.money import usd_of
from fairlead.store.mail_queue import Mail
from fairlead.usage.spending import Spending


def alert_mail(spending: Spending, alert: int | None, at_ms: int) -> Mail:
    """Tells of a percent that is reached, or with None of a month that is projected to pass its limit."""
    budget = spending.budget
    whose = f"{budget.scope} {budget.owner_name}"
    limit = f"{usd_of(budget.limit_usd_micros):.2f} USD"
    spent = f"{usd_of(spending.usd_micros):.2f} USD"
    from_at, to_at = iso(moment_of(spending.starts_ms)), iso(moment_of(spending.ends_ms))
    lines = [
        f"{budget.scope.capitalize()}: {budget.owner_name} ({budget.owner_id})",
        f"Limit: {limit} ({budget.kind.field})",
        f"Spent: {spent}",
        f"Window: {from_at} to {to_at}, days of {budget.tz}",
    ]
    if alert is None:
        projected = f"{usd_of(spending.projected_usd_micros(at_ms)):.2f} USD"
        lines.append(f"Projected: {projected}, if spending goes on as it did")
        subject = f"The {whose} will pass its {budget.kind.word} limit of {limit}"
        event = "budget.forecast"
    else:
        subject = f"The {whose} has spent {alert} % of its {budget.kind.word} limit of {limit}"
        event = "budget.reached"
    return Mail(event, subject, "\n".join(lines) + "\n", at_ms)

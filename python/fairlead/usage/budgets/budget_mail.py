"""The mail about an alert of a budget, in plain text."""

from __future__ import annotations

from fairlead.moment import iso, moment_of
from fairlead.money import usd_of
from fairlead.records.mail_queue import Mail
from fairlead.usage.budgets.spending import Spending


def alert_mail(spending: Spending, alert: int | None, at_ms: int) -> Mail:
    """Reports a percentage that is reached, or with None a month that is projected to exceed its limit."""
    budget = spending.budget
    whose = f"{budget.scope} {budget.owner_name}"
    limit = _usd(budget.limit_usd_micros)
    spent = _usd(spending.usd_micros)
    from_at, to_at = iso(moment_of(spending.starts_ms)), iso(moment_of(spending.ends_ms))
    lines = [
        f"{budget.scope.capitalize()}: {budget.owner_name} ({budget.owner_id})",
        f"Limit: {limit} ({budget.kind.field})",
        f"Spent: {spent}",
        f"Window: {from_at} to {to_at}, days of {budget.tz}",
    ]
    if spending.unpriced_requests:
        lines.append(
            f"Requests without a price: {spending.unpriced_requests}, whose cost is not known and not in the sum"
        )
    if alert is None:
        projected = _usd(spending.projected_usd_micros(at_ms))
        lines.append(f"Projected: {projected}, at the current rate of spending")
        subject = f"The {whose} will pass its {budget.kind.word} limit of {limit}"
        event = "budget.forecast"
    else:
        subject = f"The {whose} has spent {alert} % of its {budget.kind.word} limit of {limit}"
        event = "budget.reached"
    return Mail(event, subject, "\n".join(lines) + "\n", at_ms)


def _usd(micros: int) -> str:
    """Dollars and cents, and as many decimals more as it takes."""
    dollars, rest = f"{usd_of(micros):.6f}".split(".")
    return f"{dollars}.{rest.rstrip('0').ljust(2, '0')} USD"

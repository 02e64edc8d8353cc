"""Money spent of a budget in the window that it is in."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.records.budgets import Budget


@dataclass(frozen=True, slots=True)
class Spending:
    """A budget, its current window, and the spending in it."""

    budget: Budget
    starts_ms: int
    ends_ms: int
    usd_micros: int
    unpriced_requests: int
    """Requests of the window whose cost is not known and not in the sum."""

    def projected_usd_micros(self, at_ms: int) -> int:
        """The sum at the end of the window at the current rate of spending."""
        elapsed_ms = max(at_ms - self.starts_ms, 1)
        return self.usd_micros * (self.ends_ms - self.starts_ms) // elapsed_ms

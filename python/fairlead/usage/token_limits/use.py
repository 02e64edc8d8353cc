"""The tokens that count for limits in their windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairlead import _core
from fairlead.store.services import Services
from fairlead.usage.budgets.spent import Question, spent_of
from fairlead.usage.token_limits.table import PERIODS, TokenLimit


@dataclass(frozen=True, slots=True)
class LimitUse:
    """A limit, the window that it is in, and the tokens that were used in it."""

    limit: TokenLimit
    starts_ms: int
    ends_ms: int
    used: int

    @property
    def remaining(self) -> int:
        return max(0, self.limit.token_limit - self.used)


async def use_of_limits(
    services: Services, limits: Sequence[TokenLimit], at_ms: int
) -> list[LimitUse]:
    """The use of each limit at a moment."""
    windows = [
        _core.limit_window(PERIODS[limit.reset_interval], limit.reset_minute, at_ms)
        for limit in limits
    ]
    questions = [
        Question(
            key_id=limit.key_id,
            unit="tokens",
            from_ms=starts_ms,
            model=limit.scope_value if limit.scope_type == "model" else None,
            provider=limit.scope_value if limit.scope_type == "provider" else None,
        )
        for limit, (starts_ms, _) in zip(limits, windows, strict=True)
    ]
    used = await spent_of(services.state, services.usage, questions) if questions else []
    return [
        LimitUse(limit, *window, tokens)
        for limit, window, tokens in zip(limits, windows, used, strict=True)
    ]

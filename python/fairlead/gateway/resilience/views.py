"""Resilience in the API: thresholds, and current cooldowns, lockouts and open breakers."""

from __future__ import annotations

from fairlead.gateway.resilience.fields import ResilienceSettings
from fairlead.moment import Time
from fairlead.wire import Wire


class WindowView(Wire):
    """A window of a provider's limits, as its last answer told it."""

    name: str
    remaining_percent: float
    resets_at: Time | None
    is_quota: bool


class ConnectionStateView(Wire):
    """`state` is `active`, `cooling`, `quota-exhausted`, `policy-blocked`, `terminal` or `deactivated`; `until` is
    null for a state that does not expire.
    """

    id: str
    name: str
    provider: str
    state: str
    reason: str | None
    until: Time | None
    quota: list[WindowView]


class BreakerView(Wire):
    """A provider that fails: `degraded`, `open` until a time, or `half-open`."""

    provider: str
    state: str
    failures: int
    until: Time | None


class ResilienceView(ResilienceSettings):
    """Every threshold, and the current states."""

    breakers: list[BreakerView]
    connections: list[ConnectionStateView]


class ModelCooldownView(Wire):
    """A model that rests at one connection."""

    provider: str
    connection: str
    model: str
    failures: int
    until: Time
    remaining_ms: int


class ModelCooldowns(Wire):
    cooldowns: list[ModelCooldownView]
    total: int

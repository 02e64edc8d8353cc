"""Reports of live relay workers about provider connections (docs/explanation/contracts.md), merged
into one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from fairlead.store.services import WorkerReport


@dataclass(frozen=True, slots=True)
class Window:
    """A limit of a provider's, from its answers: the remaining part (0 to 1), and when it is full
    again (UTC milliseconds). A used-up quota closes the connection; a used-up rate does not.
    """

    name: str
    remaining: float
    resets_at_ms: int | None
    is_quota: bool


RateName = Literal["requests", "tokens", "input-tokens"]


@dataclass(frozen=True, slots=True)
class LearnedRate:
    """A rate of one model's that the provider told: of `limit` so many are left, and in so long all of
    them are there again.
    """

    model: str
    name: RateName
    limit: int
    remaining: int
    per_minute: int | None
    full_in_ms: int


@dataclass(slots=True)
class ConnectionReport:
    """A connection's state, merged from all workers."""

    state: str = "active"
    cooling_ms: int = 0
    last_error: str | None = None
    successes: int = 0
    failures: int = 0
    in_flight: int = 0
    queued: int = 0
    remaining: dict[str, Any] | None = None
    """The remainder of the limits that the operator set (slots, requests, tokens): None if none is set and the
    provider reported no rate.
    """
    learned: dict[tuple[str, str], LearnedRate] = field(default_factory=dict)
    """By model and name."""
    windows: dict[str, Window] = field(default_factory=dict)
    lockouts: dict[str, int] = field(default_factory=dict)
    """The end of each locked model's lockout, UTC milliseconds."""


def merge_reports(reports: Iterable[WorkerReport]) -> dict[str, ConnectionReport]:
    """The merged reports by connection id: the longest cooldown, and the least remaining part of
    each window.
    """
    merged: dict[str, ConnectionReport] = {}
    for report in reports:
        for connection in report.stats.get("connections", ()) if report.live else ():
            _add(merged.setdefault(connection["id"], ConnectionReport()), connection)
    return merged


def _add(merged: ConnectionReport, connection: dict[str, Any]) -> None:
    if connection["state"] != "active" and (
        merged.state == "active" or connection["cooling_ms"] > merged.cooling_ms
    ):
        merged.state, merged.cooling_ms = connection["state"], connection["cooling_ms"]
    merged.last_error = merged.last_error or connection.get("last_error")
    merged.successes += connection.get("successes", 0)
    merged.failures += connection.get("failures", 0)
    merged.in_flight += connection.get("in_flight", 0)
    if limits := connection.get("limits"):
        merged.queued += limits["queued"]
        merged.remaining = _least(merged.remaining or {}, limits)
        for rate in limits.get("learned", ()):
            learned = LearnedRate(**rate)
            known_rate = merged.learned.get((learned.model, learned.name))
            if known_rate is None or learned.remaining < known_rate.remaining:
                merged.learned[learned.model, learned.name] = learned
    for quota in connection.get("quota", ()):
        window = Window(
            quota["name"],
            quota["remaining"],
            quota.get("resets_at_ms"),
            quota.get("is_quota", True),
        )
        known = merged.windows.get(window.name)
        if known is None or window.remaining < known.remaining:
            merged.windows[window.name] = window
    for lockout in connection.get("lockouts", ()):
        known_ms = merged.lockouts.get(lockout["model"], 0)
        merged.lockouts[lockout["model"]] = max(known_ms, lockout["until_ms"])


def _least(known: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    least: dict[str, Any] = {}
    for name in ("slots", "requests", "tokens"):
        values = [each for each in (known.get(name), limits[name]) if each is not None]
        least[name] = min(values, default=None)
    return least

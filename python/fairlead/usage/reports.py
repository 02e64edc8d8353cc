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
    """What is left of the limits that the operator set (slots, requests, tokens): None where none
    is set and the provider told no rate.
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
        for told in report.stats.get("connections", ()) if report.live else ():
            _add(merged.setdefault(told["id"], ConnectionReport()), told)
    return merged


def _add(said: ConnectionReport, told: dict[str, Any]) -> None:
    if told["state"] != "active" and (
        said.state == "active" or told["cooling_ms"] > said.cooling_ms
    ):
        said.state, said.cooling_ms = told["state"], told["cooling_ms"]
    said.last_error = said.last_error or told.get("last_error")
    said.successes += told.get("successes", 0)
    said.failures += told.get("failures", 0)
    said.in_flight += told.get("in_flight", 0)
    if limits := told.get("limits"):
        said.queued += limits["queued"]
        said.remaining = _least(said.remaining or {}, limits)
        for rate in limits.get("learned", ()):
            learned = LearnedRate(**rate)
            known_rate = said.learned.get((learned.model, learned.name))
            if known_rate is None or learned.remaining < known_rate.remaining:
                said.learned[learned.model, learned.name] = learned
    for quota in told.get("quota", ()):
        window = Window(
            quota["name"],
            quota["remaining"],
            quota.get("resets_at_ms"),
            quota.get("is_quota", True),
        )
        known = said.windows.get(window.name)
        if known is None or window.remaining < known.remaining:
            said.windows[window.name] = window
    for lockout in told.get("lockouts", ()):
        known_ms = said.lockouts.get(lockout["model"], 0)
        said.lockouts[lockout["model"]] = max(known_ms, lockout["until_ms"])


def _least(known: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    least: dict[str, Any] = {}
    for name in ("slots", "requests", "tokens"):
        values = [each for each in (known.get(name), told[name]) if each is not None]
        least[name] = min(values, default=None)
    return least

"""Reports of relay workers about connections and providers, merged into one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fairlead.store.services import WorkerReport

# States from best to worst; the worst that any worker reports is shown.
STATES: Final = (
    "active",
    "cooling",
    "quota-exhausted",
    "policy-blocked",
    "terminal",
    "deactivated",
)
PHASES: Final = ("closed", "degraded", "half-open", "open")


def merge_reports(reports: Iterable[WorkerReport]) -> dict[str, dict[str, Any]]:
    """The reports on each connection as one: it cools if it cools in any worker."""
    merged: dict[str, dict[str, Any]] = {}
    for report in reports:
        for connection in report.stats.get("connections", ()):
            one = merged.get(connection["id"])
            if one is None:
                merged[connection["id"]] = dict(connection)
            else:
                _add(one, connection)
    return merged


def merge_providers(reports: Iterable[WorkerReport]) -> dict[str, dict[str, Any]]:
    """The reports on each provider's breaker as one: the most open one."""
    merged: dict[str, dict[str, Any]] = {}
    for report in reports:
        for provider in report.stats.get("providers", ()):
            one = merged.setdefault(provider["id"], provider)
            if PHASES.index(provider["phase"]) > PHASES.index(one["phase"]):
                merged[provider["id"]] = provider
    return merged


def lockouts_of(connection: dict[str, Any]) -> list[dict[str, Any]]:
    """The locked models of a merged connection; for each the latest end of its lockout."""
    longest: dict[str, dict[str, Any]] = {}
    for lockout in connection.get("lockouts", ()):
        known = longest.setdefault(lockout["model"], lockout)
        if lockout["until_ms"] > known["until_ms"]:
            longest[lockout["model"]] = lockout
    return [longest[model] for model in sorted(longest)]


def _add(merged: dict[str, Any], connection: dict[str, Any]) -> None:
    mine = (STATES.index(merged["state"]), merged["cooling_ms"])
    if (STATES.index(connection["state"]), connection["cooling_ms"]) > mine:
        for name in ("state", "cooling_ms", "reason", "until_ms"):
            merged[name] = connection.get(name)
    merged["last_error"] = merged["last_error"] or connection["last_error"]
    merged["latency_ms"] = _mean_latency(merged, connection)
    merged["successes"] += connection["successes"]
    merged["failures"] += connection["failures"]
    merged["lockouts"] = [*merged.get("lockouts", ()), *connection.get("lockouts", ())]
    if len(connection.get("quota", ())) > len(merged.get("quota", ())):
        merged["quota"] = connection["quota"]


def _mean_latency(one: dict[str, Any], other: dict[str, Any]) -> float | None:
    known = [each for each in (one, other) if each["latency_ms"] is not None]
    weight = sum(each["successes"] for each in known)
    if not weight:
        return known[0]["latency_ms"] if known else None
    return float(sum(each["latency_ms"] * each["successes"] for each in known) / weight)

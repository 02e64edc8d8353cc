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
        for said in report.stats.get("connections", ()):
            one = merged.get(said["id"])
            if one is None:
                merged[said["id"]] = dict(said)
            else:
                _add(one, said)
    return merged


def merge_providers(reports: Iterable[WorkerReport]) -> dict[str, dict[str, Any]]:
    """The reports on each provider's breaker as one: the most open one."""
    merged: dict[str, dict[str, Any]] = {}
    for report in reports:
        for said in report.stats.get("providers", ()):
            one = merged.setdefault(said["id"], said)
            if PHASES.index(said["phase"]) > PHASES.index(one["phase"]):
                merged[said["id"]] = said
    return merged


def lockouts_of(said: dict[str, Any]) -> list[dict[str, Any]]:
    """The locked models of a merged connection; for each the latest end of its lockout."""
    longest: dict[str, dict[str, Any]] = {}
    for lockout in said.get("lockouts", ()):
        known = longest.setdefault(lockout["model"], lockout)
        if lockout["until_ms"] > known["until_ms"]:
            longest[lockout["model"]] = lockout
    return [longest[model] for model in sorted(longest)]


def _add(one: dict[str, Any], said: dict[str, Any]) -> None:
    mine = (STATES.index(one["state"]), one["cooling_ms"])
    if (STATES.index(said["state"]), said["cooling_ms"]) > mine:
        for name in ("state", "cooling_ms", "reason", "until_ms"):
            one[name] = said.get(name)
    one["last_error"] = one["last_error"] or said["last_error"]
    one["latency_ms"] = _mean_latency(one, said)
    one["successes"] += said["successes"]
    one["failures"] += said["failures"]
    one["lockouts"] = [*one.get("lockouts", ()), *said.get("lockouts", ())]
    if len(said.get("quota", ())) > len(one.get("quota", ())):
        one["quota"] = said["quota"]


def _mean_latency(one: dict[str, Any], other: dict[str, Any]) -> float | None:
    known = [each for each in (one, other) if each["latency_ms"] is not None]
    weight = sum(each["successes"] for each in known)
    if not weight:
        return known[0]["latency_ms"] if known else None
    return float(sum(each["latency_ms"] * each["successes"] for each in known) / weight)

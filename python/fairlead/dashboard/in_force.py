"""Fields of a form that count only where another field says so.

Typed values are in force or refused with a sentence: a value that is stored and not enforced is worse than
none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairlead.dashboard.api import Refused
from fairlead.dashboard.form import changed_values
from fairlead.records.budgets import KINDS

PAUSE: Final = "pauseLimits"
LIMITS: Final = tuple(kind.field for kind in KINDS)
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Dependence:
    """Fields that count only while `is_on`; `words` say what to do where they are typed all the same."""

    fields: tuple[str, ...]
    is_on: Callable[[Values], bool]
    words: str


def refuse_idle(values: Values, record: Values, dependences: Sequence[Dependence]) -> None:
    """`Refused` at the first field that was filled now and would not be in force."""
    changed = changed_values(values, record)
    for each in dependences:
        if each.is_on(values):
            continue
        for name in each.fields:
            if changed.get(name):
                raise Refused(400, each.words, name)


ACCESS: Final = (
    Dependence(
        ("allowedModels",),
        lambda values: values.get("modelAccessMode") == "restricted",
        "This list has no effect while all models are allowed: choose `only these` under Models, or leave it empty.",
    ),
    Dependence(
        ("allowedConnections",),
        lambda values: values.get("connectionAccessMode") == "restricted",
        "These have no effect while all connections are allowed: choose `only these` under Connections, or clear them.",
    ),
)
KEY: Final = (
    *ACCESS,
    Dependence(
        LIMITS,
        lambda values: not values.get(PAUSE),
        "These limits are paused, so a new amount would not be enforced: clear Pause, or keep the old amount.",
    ),
    Dependence(
        ("accessSchedule.from", "accessSchedule.until", "accessSchedule.days"),
        lambda values: bool(values.get("accessSchedule.enabled")),
        "These times have no effect: tick `Only at certain times`, or leave them empty.",
    ),
    Dependence(
        ("chaosRate", "chaosLatencyMs", "chaosFaults"),
        lambda values: bool(values.get("chaosModeEnabled")),
        "This has no effect while fault injection is off: switch it on, or keep the old value.",
    ),
)


def has_limits(record: Values) -> bool:
    """Whether a key has a limit of money, enforced or paused."""
    return any(record.get(name) is not None for name in LIMITS)


def is_paused(record: Values) -> bool:
    """Whether a key has limits of money that are not enforced."""
    return has_limits(record) and not record.get("usageLimitEnabled")


def with_enforcement(values: dict[str, Any], record: Values) -> dict[str, Any]:
    """The values with `usageLimitEnabled`: a limit that is typed is enforced unless the form pauses it."""
    rest = {name: value for name, value in values.items() if name != PAUSE}
    if has_limits(values):
        return {**rest, "usageLimitEnabled": not values.get(PAUSE)}
    return {**rest, "usageLimitEnabled": bool(record.get("usageLimitEnabled"))}

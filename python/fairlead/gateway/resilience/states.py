"""The state of a connection as people see it: what workers say of it now, or what was kept of it,
or that it is switched off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.gateway.health.reports import merge_reports
from fairlead.gateway.resilience.table import Held
from fairlead.store.services import Services


@dataclass(frozen=True, slots=True)
class Condition:
    """`until_ms` is None for what does not end by itself. `quota` as workers tell it."""

    state: str = "active"
    reason: str | None = None
    until_ms: int | None = None
    quota: list[dict[str, Any]] = field(default_factory=list)


class States:
    """Looked at once for each answer."""

    def __init__(self, services: Services, held: Mapping[str, Held]) -> None:
        self._held = held
        self._said = merge_reports(each for each in services.workers() if each.live)

    def of(self, connection_id: str, *, is_active: bool) -> Condition:
        """The connection's."""
        if not is_active:
            return Condition("deactivated")
        said = self._said.get(connection_id)
        held = self._held.get(connection_id)
        if said is not None:
            return Condition(
                said["state"], said.get("reason"), said.get("until_ms"), said.get("quota", [])
            )
        if held is not None:
            return Condition(held.state, held.reason, held.until_ms)
        return Condition()

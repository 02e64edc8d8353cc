"""The state of a connection as the API shows it: switched off, or as workers report it now, or as
it was stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.gateway.health.reports import merge_reports
from fairlead.gateway.resilience.table import PersistedState
from fairlead.store.services import Services


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """One connection's state. `until_ms` is None for a state without an end; `quota` is as workers
    report it.
    """

    state: str = "active"
    reason: str | None = None
    until_ms: int | None = None
    quota: list[dict[str, Any]] = field(default_factory=list)


class ConnectionStates:
    """The states of all connections at one moment, for one answer of the API."""

    def __init__(self, services: Services, persisted: Mapping[str, PersistedState]) -> None:
        self._persisted = persisted
        self._reports = merge_reports(each for each in services.workers() if each.live)

    def of(self, connection_id: str, *, is_active: bool) -> ConnectionState:
        """The state of one connection."""
        if not is_active:
            return ConnectionState("deactivated")
        report = self._reports.get(connection_id)
        persisted = self._persisted.get(connection_id)
        if report is not None:
            return ConnectionState(
                report["state"],
                report.get("reason"),
                report.get("until_ms"),
                report.get("quota", []),
            )
        if persisted is not None:
            return ConnectionState(persisted.state, persisted.reason, persisted.until_ms)
        return ConnectionState()

"""Limits: the current limits of connections and keys, the remainder of each, and the waiting requests."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fairlead.dashboard.budgets import read_budgets
from fairlead.dashboard.connection_state import connection_state_of
from fairlead.dashboard.names import read_names
from fairlead.dashboard.page import Page, View, Visit
from fairlead.dashboard.recent_failures import read_recent

_SET: Final = (
    ("maxConcurrent", "at once", "slots"),
    ("requestsPerMinute", "requests a minute", "requests"),
    ("tokensPerMinute", "tokens a minute", "tokens"),
)


async def show(visit: Visit) -> View:
    """The page."""
    limits, names, budgets, resilience, recent = await asyncio.gather(
        visit.api.get("/api/rate-limits"),
        read_names(visit.api),
        read_budgets(visit.api),
        visit.api.get("/api/resilience"),
        read_recent(visit.api),
    )
    connections = limits["connections"]
    fields = {
        "connections": sorted(connections, key=_pressure, reverse=True),
        "keys": limits["keys"],
        "overview": limits["overview"],
        "lockouts": limits["lockouts"],
        "connection_names": {each["connectionId"]: each["name"] for each in connections},
        "names": names.nodes,
        "connection_states": {
            each["connectionId"]: connection_state_of(
                each["state"], each["provider"], resilience["breakers"], recent.failing
            )
            for each in connections
        },
        "set_limits": _SET,
        "in_flight": sum(each["inFlight"] for each in connections),
        "queued": sum(each["queued"] for each in connections),
        "budgets": sorted(budgets, key=lambda each: -each.part),
    }
    return View("limits.html", fields, ("figures", "connections", "keys", "lockouts"))


def _pressure(connection: dict[str, Any]) -> tuple[bool, int, int, int]:
    """Connections that hold somebody up come first."""
    return (
        connection["state"] not in ("active", "deactivated"),
        connection["queued"],
        connection["inFlight"],
        connection["requestsLastMinute"],
    )


PAGES = (Page("limits", "Limits", show, group="Protect", rank=1, icon="limits"),)

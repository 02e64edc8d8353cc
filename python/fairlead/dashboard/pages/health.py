"""Health: which connections serve, and the gateway's own parts."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fairlead.dashboard.api import Refused
from fairlead.dashboard.connection_state import connection_state_of
from fairlead.dashboard.names import read_names
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.recent_failures import read_recent

PLACE: Final = "/health"
STATUS: Final = {"healthy": "good", "degraded": "warn", "error": "bad"}


async def show(visit: Visit) -> View:
    """The page."""
    health, cluster, resilience, cooldowns, limits, names, recent = await asyncio.gather(
        visit.api.get("/api/monitoring/health"),
        visit.api.get("/api/cluster"),
        visit.api.get("/api/resilience"),
        visit.api.get("/api/resilience/model-cooldowns"),
        visit.api.get("/api/rate-limits"),
        read_names(visit.api),
        read_recent(visit.api),
    )
    failing = recent.failing
    connection_states = {
        each["id"]: connection_state_of(
            each["state"], each["provider"], resilience["breakers"], failing
        )
        for each in resilience["connections"]
    }
    connections = {each["id"]: each["name"] for each in resilience["connections"]}
    fields = {
        "health": health,
        "cluster": cluster,
        "mood": STATUS.get(health["status"], "bad"),
        "breakers": resilience["breakers"],
        "connections": resilience["connections"],
        "measured": {each["id"]: each for each in health.get("connectionHealth", ())},
        "busy": {each["connectionId"]: each for each in limits["connections"]},
        "cooldowns": cooldowns["cooldowns"],
        "names": names.nodes,
        "connection_names": connections,
        "connection_states": connection_states,
        "is_used": recent.requests > 0,
        "failing": [each for each in failing if each.provider is not None],
        "refused": next((each for each in failing if each.provider is None), None),
        "down": [each for each in health["tasks"] if not each["running"]],
        "troubled": [each for each in connection_states.values() if each.mood in ("warn", "bad")],
        "serving": [each for each in connection_states.values() if each.mood == "good"],
    }
    return View("health.html", fields, ("figures", "connections", "cooldowns", "parts"))


async def reset(visit: Visit, typed: FormFields) -> str:
    """Resets the failures of one connection, of one provider, or of all."""
    await visit.api.send("POST", "/api/resilience/reset", _target_of(typed))
    return PLACE


async def confirm_reset_all(_visit: Visit, _typed: FormFields) -> Question:
    """Names what is forgotten."""
    goes = [
        "The failures of every connection: each gets requests again at once.",
        "Every provider's open circuit.",
        "The cooldown of every model. Models that still fail go into cooldown again.",
    ]
    return Question("Reset circuit breakers?", goes, "Reset them", f"/dashboard{PLACE}")


async def wake(visit: Visit, typed: FormFields) -> str:
    """Ends the cooldown of a model."""
    body = {**_target_of(typed), "model": typed.get("model", "")}
    await visit.api.send("DELETE", "/api/resilience/model-cooldowns", body)
    return PLACE


async def wake_all(visit: Visit, _typed: FormFields) -> str:
    """Ends the cooldown of every model."""
    await visit.api.send("DELETE", "/api/resilience/model-cooldowns", {"all": True})
    return PLACE


async def confirm_wake_all(visit: Visit, _typed: FormFields) -> Question:
    """Names the models that are used again."""
    cooldowns = await visit.api.get("/api/resilience/model-cooldowns")
    goes = [
        f"The cooldown of {cooldowns['total']:,} models: each is used again at once.",
        "A model that still fails goes into cooldown again.",
    ]
    return Question("End the cooldown of every model?", goes, "End them", f"/dashboard{PLACE}")


def _target_of(typed: FormFields) -> dict[str, Any]:
    body = {name: typed[name] for name in ("provider", "connection") if typed.get(name)}
    if not body and "all" not in typed:
        raise Refused(400, "The form names nothing: send it as the page does.")
    return body


PAGES = (
    Page(
        "health",
        "Health",
        show,
        group="Observe",
        rank=4,
        icon="health",
        actions={
            "reset": Action(reset, "Its circuit breaker was reset."),
            "reset_all": Action(reset, "All circuit breakers were reset.", confirm_reset_all),
            "wake": Action(wake, "The model is used again."),
            "wake_all": Action(wake_all, "Every model is used again.", confirm_wake_all),
        },
    ),
)

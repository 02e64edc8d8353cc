"""Every router and every background task of the control plane, by name."""

from __future__ import annotations

from importlib import import_module

from fastapi import APIRouter

from fairlead.store.services import BackgroundTask

_ROUTERS = (
    "fairlead.identity.router",
    "fairlead.gateway.keys.router",
    "fairlead.gateway.nodes.router",
    "fairlead.gateway.providers.router",
    "fairlead.gateway.settings.router",
    "fairlead.usage.router",
    "fairlead.gateway.health.router",
)
_TASKS = ("fairlead.identity.tasks", "fairlead.usage.tasks")


def _present(names: tuple[str, ...], attribute: str) -> list[object]:
    found = []
    for name in names:
        try:
            found.append(getattr(import_module(name), attribute))
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("fairlead."):
                raise
    return found


ROUTERS: tuple[APIRouter, ...] = tuple(
    r for r in _present(_ROUTERS, "router") if isinstance(r, APIRouter)
)
TASKS: tuple[BackgroundTask, ...] = tuple(
    task for tasks in _present(_TASKS, "TASKS") if isinstance(tasks, tuple) for task in tasks
)

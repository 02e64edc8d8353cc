"""Imports routers on demand.

Most gateways never use most packages. Imported at start, their code and models would be more than half of
control's memory and startup time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from importlib import import_module

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlead.control.routers import ROUTERS, RouterEntry

# Serialises imports: concurrent requests wait for one import.
_importing = threading.Lock()


class RouterLoader:
    """Adds routers to one application, in the order of the table whatever the order of requests."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._on_load: Callable[[], None] | None = None
        self._missing = dict(enumerate(ROUTERS))
        # By identity, because routes compare by value.
        self._rank: dict[int, int] = {}

    def on_load(self, notice: Callable[[], None]) -> None:
        """Registers a callback for after each import."""
        self._on_load = notice

    async def load_for(self, path: str) -> None:
        """Imports the routers that may answer this path, in a thread."""
        wanted = [number for number, entry in self._missing.items() if answers(entry, path)]
        for number in wanted:
            routers = await asyncio.to_thread(import_routers, ROUTERS[number])
            self._include(number, routers)
        if wanted and self._on_load is not None:
            self._on_load()

    def load_all(self) -> None:
        """Imports every router, for a description of the whole API."""
        for number in list(self._missing):
            self._include(number, import_routers(ROUTERS[number]))

    def _include(self, number: int, routers: tuple[APIRouter, ...]) -> None:
        if self._missing.pop(number, None) is None:
            # A concurrent request has imported it.
            return
        # Not by `include_router`, which builds each route a second time, with its models: nothing is added to any here.
        routes = self._app.router.routes
        for route in (route for router in routers for route in router.routes):
            routes.append(route)
            self._rank[id(route)] = number
        # Routes outside the table (the link's, the description's) share no path with one in it.
        routes.sort(key=lambda route: self._rank.get(id(route), -1))


class LoadOnDemand:
    """Middleware before the routes that imports the routers for a request's path."""

    def __init__(self, app: ASGIApp, loader: RouterLoader) -> None:
        self._app = app
        self._loader = loader

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._loader.load_for(scope["path"])
        await self._app(scope, receive, send)


def answers(entry: RouterEntry, path: str) -> bool:
    """Whether the module may answer this path."""
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in entry.paths)


def import_routers(entry: RouterEntry) -> tuple[APIRouter, ...]:
    """The routers of a module."""
    with _importing:
        module = import_module(entry.module)
    several: tuple[APIRouter, ...] | None = getattr(module, "ROUTERS", None)
    return several if several is not None else (module.router,)

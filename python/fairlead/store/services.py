"""What a router or a background task of the control plane works with.

Routers take it as a parameter: `services: ServicesDep`. Control makes one per process and puts it
into the app's state.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import Depends
from pydantic import SecretStr
from starlette.requests import HTTPConnection, Request

from fairlead.bearer import Bearers
from fairlead.caller import Caller
from fairlead.egress import Egress
from fairlead.errors import StorageUnavailable
from fairlead.settings import ControlConfig
from fairlead.store.database import Database, Work
from fairlead.store.state import State
from fairlead.store.tool_access import ToolAccess

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """What a relay worker last said of itself on the link; `stats` as in the contracts page."""

    worker_id: str
    pid: int
    live: bool
    applied_version: int
    age_ms: int
    stats: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TaskReport:
    """A background task: is it running, how often was it restarted, and what (type of error) ended
    it last.
    """

    name: str
    running: bool
    restarts: int
    last_error: str | None


class Operator(Protocol):
    """What identity offers to rooms that change security settings; control brings the two
    together.
    """

    async def confirm(
        self, request: Request, caller: Caller, current_password: SecretStr | None
    ) -> None:
        """That an operator asks who knows their password. `Forbidden` for keys and access tokens,
        `InvalidRequest` without the password, `Unauthenticated` for a wrong one.
        """

    async def new_password(
        self, request: Request, caller: Caller, password: SecretStr
    ) -> Work[None]:
        """What stores the caller's new password, for a commit."""


async def _nobody(_kind: str, _args: dict[str, Any]) -> list[Any]:
    raise StorageUnavailable("No relay worker is connected.", retry_after_s=1)


@dataclass(slots=True)
class Services:
    """One control process. `workers`, `tasks` and `snapshot_version` tell the present state each
    time they are called.
    """

    config: ControlConfig
    data_dir: Path
    state: State
    usage: Database
    egress: Egress = field(default_factory=Egress)
    workers: Callable[[], list[WorkerReport]] = field(default=list)
    connections_changed: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep)
    """Waits until a relay worker says something new of its connections, at most so many seconds."""
    command: Callable[[str, dict[str, Any]], Awaitable[list[Any]]] = field(default=_nobody)
    """Asks every live relay worker; one answer each (docs/explanation/contracts.md)."""
    tasks: Callable[[], list[TaskReport]] = field(default=list)
    snapshot_version: Callable[[], int] = field(default=int)
    operator: Operator | None = None
    tool_access: ToolAccess | None = None
    bearers: Bearers | None = None
    """Who judges the callers of agents; control sets it."""
    process: str = field(default_factory=lambda: secrets.token_hex(8))
    """A name of this process among all that there were."""
    _singletons: dict[type, object] = field(default_factory=dict)
    """Objects that live as long as the process, one for each class."""

    def singleton(self, kind: type[T], make: Callable[[], T]) -> T:
        """The process's one object of a class, made when it is first needed."""
        found = self.existing(kind)
        return self.put(kind, make()) if found is None else found

    def existing(self, kind: type[T]) -> T | None:
        """The process's one object of a class, or None when it has not been made."""
        found = self._singletons.get(kind)
        return found if isinstance(found, kind) else None

    def put(self, kind: type[T], value: T) -> T:
        """Stores the process's one object of a class, in place of one that is there."""
        self._singletons[kind] = value
        return value

    def discard(self, kind: type[object]) -> None:
        """Forgets the process's one object of a class, so that the next call makes another."""
        self._singletons.pop(kind, None)


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    """Work that a package wants done while control runs.

    A package lists its own in a module constant (`fairlead.usage.tasks.TASKS`, ...) which
    `control/app.py` collects. `run` lasts until it is cancelled; if it ends or raises, that is
    logged, readiness goes red, and it is started again with backoff.
    """

    name: str
    run: Callable[[Services], Awaitable[None]]


def services_of(request: HTTPConnection) -> Services:
    """The services of the app that serves this request."""
    services: Services = request.app.state.services
    return services


async def _services(request: HTTPConnection) -> Services:
    # FastAPI hands a plain function to a thread.
    return services_of(request)


ServicesDep = Annotated[Services, Depends(_services)]

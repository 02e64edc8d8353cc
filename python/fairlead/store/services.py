"""The dependencies of routers and background tasks in the control plane.

Routers take them as a parameter: `services: ServicesDep`. Control creates one `Services` per process and stores
it in the app's state.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import Depends
from pydantic import SecretStr
from starlette.requests import HTTPConnection, Request

from fairlead.calls.bearer import Bearers
from fairlead.calls.caller import Caller
from fairlead.errors import StorageUnavailable
from fairlead.net.egress import Egress
from fairlead.settings import ControlConfig
from fairlead.store.database import Database, Transaction
from fairlead.store.peers import Peers, WorkLeases
from fairlead.store.state import State
from fairlead.store.tool_access import ToolAccess

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """A relay worker's latest report on the link; `stats` as in docs/explanation/contracts.md."""

    worker_id: str
    pid: int
    live: bool
    applied_version: int
    age_ms: int
    stats: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The state of a background task: whether it runs, how often it was restarted, and the type of its last error."""

    name: str
    running: bool
    restarts: int
    last_error: str | None


class Operator(Protocol):
    """Identity's checks for routes that change security settings; control wires the implementation in."""

    async def confirm(
        self, request: Request, caller: Caller, current_password: SecretStr | None
    ) -> None:
        """Checks that the caller is an operator who knows their password.

        `Forbidden` for keys and access tokens, `InvalidRequest` without the password, `Unauthenticated` for a
        wrong one.
        """

    async def new_password(
        self, request: Request, caller: Caller, password: SecretStr
    ) -> Transaction[None]:
        """A function for `State.commit` that stores the caller's new password."""

    async def check_owner(self, caller: Caller) -> None:
        """Checks that no other person than the owner asks. `Forbidden`."""


async def _nobody(_kind: str, _args: dict[str, Any]) -> list[Any]:
    raise StorageUnavailable("No relay worker is connected.", retry_after_s=1)


@dataclass(slots=True)
class Services:
    """The services of one control process. `workers`, `tasks` and `snapshot_version` return the current state
    at each call.
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
    peers: Peers | None = None
    """The other controls of the database, if there may be any."""
    tool_access: ToolAccess | None = None
    bearers: Bearers | None = None
    """Who judges the callers of agents; control sets it."""
    process: str = field(default_factory=lambda: secrets.token_hex(8))
    """A name of this process among all that there were."""
    _singletons: dict[type, object] = field(default_factory=dict)
    """Objects that live as long as the process, one for each class."""
    _making: threading.RLock = field(default_factory=threading.RLock)
    """Held while one is made, which may ask for others."""

    @property
    def leases(self) -> WorkLeases | None:
        """The leases of work, if there may be other controls that work on the same."""
        return None if self.peers is None else self.peers.leases

    def singleton(self, kind: type[T], make: Callable[[], T]) -> T:
        """The process's only instance of a class, created on first use, by whichever thread asks first."""
        found = self.existing(kind)
        if found is not None:
            return found
        with self._making:
            found = self.existing(kind)
            return self.put(kind, make()) if found is None else found

    def existing(self, kind: type[T]) -> T | None:
        """The process's only instance of a class, or None when there is none yet."""
        found = self._singletons.get(kind)
        return found if isinstance(found, kind) else None

    def instances(self, kind: type[T]) -> list[T]:
        """The process's only instances of all classes below this one."""
        return [each for each in self._singletons.values() if isinstance(each, kind)]

    def put(self, kind: type[T], value: T) -> T:
        """Stores the process's only instance of a class, replacing any other."""
        self._singletons[kind] = value
        return value

    def discard(self, kind: type[object]) -> None:
        """Forgets the process's instance of a class, so that the next call creates another."""
        self._singletons.pop(kind, None)


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    """A task that runs for as long as control does.

    Each package lists its own in a constant `TASKS`, which `control/tasks.py` collects. `run` lasts until it is
    cancelled; if it ends or raises, that is logged, readiness fails, and it is restarted with backoff.
    """

    name: str
    run: Callable[[Services], Awaitable[None]]


def services_of(request: HTTPConnection) -> Services:
    """The services of the app that serves this request."""
    services: Services = request.app.state.services
    return services


async def _services(request: HTTPConnection) -> Services:
    # Async, because FastAPI runs a plain function in a thread.
    return services_of(request)


ServicesDep = Annotated[Services, Depends(_services)]

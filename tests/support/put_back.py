"""The state of an application that the tests of a file share: put back after each of them.

Starting the application takes a quarter of a second of a core, and putting its rows back a hundredth. What it
remembers beside its state database stays: windows of limiters, usage, files in the data directory. A test that looks at
these has an application to itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import httpx
import pytest
from fastapi import FastAPI

from fairlead.identity.guess_limit import GuessLimit
from fairlead.identity.oauth.service import open_oauth
from fairlead.identity.rate_window import RateWindow
from fairlead.identity.sign_in import ANSWERS_A_MINUTE, SignIn
from fairlead.settings import ControlConfig
from fairlead.store.file import Connection
from fairlead.store.meta import read_meta, write_meta
from fairlead.store.rows import is_copied
from fairlead.store.services import Services

Rows = dict[str, list[tuple[Any, ...]]]
# Relays have seen it, so it never decreases.
_VERSION = "snapshot_version"


def shares_control(request: pytest.FixtureRequest) -> bool:
    """Whether the test is marked `one_control`; `one_control(False)` at a test excepts it from the mark of its file."""
    mark = request.node.get_closest_marker("one_control")
    return mark is not None and mark.args != (False,)


@dataclass(frozen=True)
class StateAtStart:
    """The configuration and the rows of the state database, as they were when the application had started."""

    services: Services
    config: ControlConfig
    rows: Rows

    @classmethod
    async def of(cls, services: Services) -> Self:
        return cls(services, services.config, await services.state.database.write(_all_rows))

    async def put_back(self) -> None:
        """Makes the rows and the configuration what they were. Returns when this is in force."""
        self.services.config = self.config
        await self.services.state.commit(self._put_back)

    def _put_back(self, con: Connection) -> None:
        version = read_meta(con, _VERSION)
        for table, before in self.rows.items():
            # A read of an unchanged table is answered from memory.
            if con.execute(f"SELECT * FROM {table}").fetchall() == before:
                continue
            con.execute(f"DELETE FROM {table}")
            for row in before:
                marks = ", ".join("?" for _ in row)
                con.execute(f"INSERT INTO {table} VALUES ({marks})", list(row))
        if version is not None:
            write_meta(con, _VERSION, version)


def forget_guesses(app: FastAPI) -> None:
    """Gives every address its attempts at signing in back."""
    sign_in: SignIn = app.state.sign_in
    sign_in.limit, sign_in.window = GuessLimit(), RateWindow()
    sign_in.answers = RateWindow(ANSWERS_A_MINUTE)


Started = tuple[FastAPI, httpx.AsyncClient]


@dataclass
class SharedApplications:
    """The applications of a file, one for each configuration that its tests ask for. A context manager."""

    start: Callable[[dict[str, Any]], AbstractAsyncContextManager[Started]]
    _opened: dict[str, tuple[Started, StateAtStart]] = field(default_factory=dict)
    _ending: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._ending.aclose()

    @asynccontextmanager
    async def lease(self, settings: dict[str, Any]) -> AsyncIterator[Started]:
        """The application with these settings, for one test. Its state is put back afterwards."""
        name = repr(sorted(settings.items()))
        if name not in self._opened:
            started = await self._ending.enter_async_context(self.start(settings))
            self._opened[name] = started, await StateAtStart.of(started[0].state.services)
        (app, client), state_at_start = self._opened[name]
        forget_guesses(app)
        # Its ledger, its documents and its limits are memory.
        services: Services = app.state.services
        services.tool_access = await open_oauth(services)
        client.cookies.clear()
        yield app, client
        await state_at_start.put_back()


def _all_rows(con: Connection) -> Rows:
    found = con.execute(
        "SELECT table_name FROM information_schema.tables "
        "WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY table_name"
    ).fetchall()
    names = [str(name) for (name,) in found if is_copied(str(name))]
    return {name: con.execute(f"SELECT * FROM {name}").fetchall() for name in names}

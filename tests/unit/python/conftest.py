"""The control plane's parts on real files, without processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fairlead.store.file import Connection
from fairlead.store.sealer import Sealer
from fairlead.store.state import State
from tests.support.databases import open_fresh_database, open_fresh_file
from tests.support.management import Management, run_management
from tests.support.put_back import StateAtStart, shares_control


@pytest.fixture
def management(request: pytest.FixtureRequest) -> Management:
    """The control plane's application as it is shipped, in this process, with an empty state."""
    is_shared = shares_control(request)
    running: Management = request.getfixturevalue(
        "shared_management" if is_shared else "own_management"
    )
    return running


@pytest.fixture
async def own_management(tmp_path: Path) -> AsyncIterator[Management]:
    """An application that was just started."""
    async with run_management(tmp_path / "data") as running:
        yield running


@pytest.fixture(scope="module")
async def running_management(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[Management, StateAtStart]]:
    """The application of a file, with the state that it began with."""
    async with run_management(tmp_path_factory.mktemp("control") / "data") as running:
        yield running, await StateAtStart.of(running.services)


@pytest.fixture
async def shared_management(
    running_management: tuple[Management, StateAtStart],
) -> AsyncIterator[Management]:
    """The application of a file, whose state is put back after the test."""
    running, state_at_start = running_management
    yield running
    await state_at_start.put_back()


@pytest.fixture
def con(tmp_path: Path) -> Iterator[Connection]:
    """A connection to an empty state database."""
    connection = open_fresh_file(tmp_path, "state")
    yield connection
    connection.close()


@pytest.fixture
async def state(tmp_path: Path) -> AsyncIterator[State]:
    """An empty state database that nothing else works on."""
    database = await asyncio.to_thread(open_fresh_database, tmp_path, "state")
    yield State(database, Sealer(b"k" * 32))
    await database.close()

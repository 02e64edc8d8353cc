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


@pytest.fixture
async def management(tmp_path: Path) -> AsyncIterator[Management]:
    """The control plane's application as it is shipped, in this process."""
    async with run_management(tmp_path / "data") as running:
        yield running


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

"""An answer says when its change is not in force everywhere; and a snapshot of another control never goes back."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fairlead.control.publisher import Publisher
from fairlead.control.snapshot_lag import SnapshotLag, note_lag
from fairlead.control.workers import Workers
from fairlead.store.database import Database
from tests.support.databases import open_fresh_database

pytestmark = pytest.mark.anyio


async def late(_: Request) -> Response:
    note_lag()
    return PlainTextResponse("stored")


async def in_force(_: Request) -> Response:
    return PlainTextResponse("stored")


async def test_a_change_that_is_late_says_so() -> None:
    methods = ["GET", "POST"]
    app = Starlette(
        routes=[Route("/late", late, methods=methods), Route("/now", in_force, methods=methods)]
    )
    transport = httpx.ASGITransport(SnapshotLag(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://control") as client:
        assert (await client.post("/late")).headers["x-gateway-snapshot"] == "pending"
        for answer in (await client.post("/now"), await client.get("/late")):
            assert answer.status_code == 200
            assert "x-gateway-snapshot" not in answer.headers
    # Outside of a request there is nobody to tell.
    note_lag()


class Peers:
    """Other controls that have applied up to a version."""

    def __init__(self, version: int) -> None:
        self.version = version

    async def applied(self, version: int, deadline_s: float) -> bool:
        assert deadline_s > 0
        return version <= self.version

    async def alone(self, name: str, run: object) -> None:
        raise AssertionError(name)


@pytest.fixture
async def database(tmp_path: Path):
    opened: Database = open_fresh_database(tmp_path, "state")
    yield opened
    await opened.close()


async def test_the_newest_snapshot_stays(database: Database, tmp_path: Path) -> None:
    publisher = Publisher(database, lambda _con, floor: (floor + 1, b"{}"), tmp_path, Workers())
    await publisher.adopt(7, b'{"version":7}')
    await publisher.adopt(5, b'{"version":5}')
    assert (publisher.current.version, publisher.current.document) == (7, b'{"version":7}')
    assert (tmp_path / "snapshot.json").read_bytes() == b'{"version":7}'
    assert await publisher.newer_than(6, 0.1)
    publisher.peers = Peers(7)
    assert await publisher._applied(7)
    assert not await publisher._applied(8)

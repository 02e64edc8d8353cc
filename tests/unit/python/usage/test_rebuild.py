"""A usage database that is made anew from the log of a real server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fairlead.serve.directory import DataDirectory
from fairlead.store.database import Database
from fairlead.store.postgresql import usage_log
from fairlead.store.postgresql.channels import connect_async
from fairlead.store.postgresql.usage_log import OutgoingSegment, UsageLog
from fairlead.store.prepare import MIGRATIONS, usage_path
from fairlead.usage.ingestion.rebuild import rebuild_usage
from tests.support.command import fairlead, sentence

if TYPE_CHECKING:
    from tests.support.postgresql import PostgresqlServer

pytestmark = pytest.mark.anyio


@pytest.fixture
def url(postgresql: PostgresqlServer) -> Iterator[str]:
    made = postgresql.migrated()
    yield made
    postgresql.drop(made)


async def append(url: str, lines: Callable[..., bytes], *numbers: int) -> None:
    """A segment of one record for each number."""
    async with await connect_async(url, "test") as raw:
        log = UsageLog(raw)
        await log.begin()
        await log.append(
            [OutgoingSegment(f"worker-{n:08d}", 1, lines(f"req_{n}")) for n in numbers]
        )


def stop_after_one(segments: int, of: int) -> None:
    assert segments == 1 < of
    raise KeyError("power")


async def test_the_database_is_that_of_the_log_after_an_interruption_too(
    url: str, tmp_path: Path, lines: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_log, "READ_SEGMENTS", 1)
    (tmp_path / "spool").mkdir()
    damaged = usage_path(tmp_path)
    damaged.write_bytes(b"what is to be thrown away")
    await append(url, lines, 1, 2, 3)
    with pytest.raises(KeyError):
        await rebuild_usage(tmp_path, url, stop_after_one)
    assert damaged.read_bytes() == b"what is to be thrown away", "until the new one is whole"
    told: list[tuple[int, int]] = []
    made = await rebuild_usage(tmp_path, url, lambda *numbers: told.append(numbers))
    assert told == [(2, 3), (3, 3)], "it goes on where it stood"
    assert (made.segments, made.requests) == (3, 3)
    assert made.replaced is not None
    assert made.replaced.read_bytes() == b"what is to be thrown away"

    await append(url, lines, 4)
    again = await rebuild_usage(tmp_path, url, lambda *_: None)
    assert (again.segments, again.requests) == (4, 4), "and from its beginning the next time"
    database = Database.open(usage_path(tmp_path), MIGRATIONS / "usage")
    try:
        rows = await database.read(
            lambda con: con.execute("SELECT request_id FROM requests ORDER BY 1").fetchall()
        )
    finally:
        await database.close()
    assert [row[0] for row in rows] == ["req_1", "req_2", "req_3", "req_4"]


async def test_the_command_tells_how_far_it_is_and_what_is_in_the_way(
    url: str, tmp_path: Path, lines: Callable[..., bytes]
) -> None:
    folder = tmp_path / "data"
    command = ("usage", "rebuild", "--data-dir", str(folder))
    assert "FAIRLEAD_DATABASE_URL is not set" in sentence(fairlead(*command), 1)
    nobody = "postgresql://fairlead:secret-canary@127.0.0.1:1/nothing"
    unreachable = sentence(fairlead(*command, FAIRLEAD_DATABASE_URL=nobody), 1)
    assert "The log cannot be read" in unreachable
    assert "secret-canary" not in unreachable
    await append(url, lines, 1, 2)
    with DataDirectory(folder):
        assert str(folder) in sentence(fairlead(*command, FAIRLEAD_DATABASE_URL=url), 1)
    done = fairlead(*command, "--json", FAIRLEAD_DATABASE_URL=url)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 segments" in done.stderr
    assert json.loads(done.stdout) == {"segments": 2, "requests": 2, "replaced": None}

"""The log of usage that nodes share, over a real PostgreSQL: every record is at every node once, whatever dies."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from fairlead.settings import ControlConfig
from fairlead.store import segment
from fairlead.store.database import Database
from fairlead.store.file import Connection, open_file
from fairlead.store.prepare import MIGRATIONS
from fairlead.store.sealer import Sealer
from fairlead.store.services import Services
from fairlead.store.state import State
from fairlead.usage.ingestion import shared_log as module
from fairlead.usage.ingestion.ingest import Ingest
from fairlead.usage.ingestion.shared_log import SharedLog, store_of
from fairlead.usage.routes.purge_router import _note
from tests.support.databases import open_fresh_database, place_file
from tests.support.rollups import assert_levels_agree

if TYPE_CHECKING:
    from tests.support.postgresql import PostgresqlServer

pytestmark = pytest.mark.anyio


class Node:
    """The usage side of one control process."""

    def __init__(self, folder: Path, url: str, usage: Database | None = None) -> None:
        from fairlead.store.postgresql.engine import PostgresqlEngine

        folder.mkdir(exist_ok=True)
        self.spool = folder / "spool"
        self.spool.mkdir(exist_ok=True)
        config = ControlConfig(
            data_dir=folder,
            link_token="t" * 32,
            control_socket=folder / "control.sock",
            database_url=url,
        )
        state = State(Database(PostgresqlEngine(url, folder.name)), Sealer(bytes(32)))
        self.usage = usage or open_fresh_database(folder, "usage")
        self.services = Services(config=config, data_dir=folder, state=state, usage=self.usage)
        shared = SharedLog.of(self.services)
        assert shared is not None
        self.shared = shared
        self.ingest = Ingest(store_of(self.services), self.spool, None, shared)

    def settle(self, name: str, data: bytes) -> None:
        (self.spool / f"{name}.ndjson").write_bytes(data)

    async def ids(self) -> list[str]:
        """The requests of this node's usage database; each level of the rollups says the same."""

        def look(con: Connection) -> list[str]:
            assert_levels_agree(con)
            rows = con.execute("SELECT request_id FROM requests ORDER BY request_id").fetchall()
            return [row[0] for row in rows]

        return await self.usage.read(look)

    async def follow(self, until: Callable[[], Awaitable[bool]]) -> None:
        """Runs the task until something is so."""
        task = asyncio.create_task(self.shared.run())
        try:
            async with asyncio.timeout(20):
                while not await until():
                    assert not task.done(), task.exception()
                    await asyncio.sleep(0.02)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def settle_down(self) -> None:
        """Until all that it wrote is in the log, and all of the log is here."""
        self.shared._is_caught_up = False

        async def is_caught_up() -> bool:
            return self.shared.is_caught_up()

        await self.follow(is_caught_up)

    async def close(self) -> None:
        await self.usage.close()
        await self.services.state.database.close()


@pytest.fixture
async def nodes(tmp_path: Path, database_url: str) -> AsyncIterator[Callable[..., Node]]:
    async with AsyncExitStack() as stack:

        def make(name: str, usage: Database | None = None) -> Node:
            node = Node(tmp_path / name, database_url, usage)
            stack.push_async_callback(node.close)
            return node

        yield make


def logged(url: str) -> list[tuple[int, str]]:
    """Positions and names in the log."""
    with psycopg.connect(url) as raw:
        return raw.execute(
            "SELECT position, name FROM fairlead.usage_segments ORDER BY position"
        ).fetchall()


async def test_what_one_node_served_is_in_the_usage_of_every_node_once(
    nodes: Callable[..., Node], lines: Any, database_url: str
) -> None:
    one, two = nodes("one"), nodes("two")
    one.settle("a-00000000", lines("r1", "r2"))
    two.settle("b-00000000", lines("r3"))
    assert await one.ingest.ingest() == 1
    # Its own is here before the server was asked.
    assert await one.ids() == ["r1", "r2"]
    await two.ingest.ingest()
    for node in (one, two, one):
        await node.settle_down()
    assert await one.ids() == await two.ids() == ["r1", "r2", "r3"]
    assert sorted(name for _, name in logged(database_url)) == ["a-00000000", "b-00000000"]
    assert [position for position, _ in logged(database_url)] == [1, 2]
    assert not list((one.spool / "outgoing").iterdir())


async def test_segments_that_follow_each_other_are_stored_together(
    nodes: Callable[..., Node], lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TAKE_EVERY_S", 1.0)
    one, two = nodes("one"), nodes("two")
    await two.settle_down()
    rounds: set[int] = set()
    names = [f"a-{number:08}" for number in range(10)]

    async def two_has_all() -> bool:
        found = await two.usage.read(
            lambda con: con.execute("SELECT name, ingested_at_ms FROM segments").fetchall()
        )
        rounds.update(at_ms for _, at_ms in found)
        return len(found) == len(names)

    appending = asyncio.create_task(one.shared.run())
    following = asyncio.create_task(two.follow(two_has_all))
    for name in names:
        one.settle(name, lines(name))
        await one.ingest.ingest()
        # Time itself is what is tested.
        await asyncio.sleep(0.25)
    await following
    appending.cancel()
    await asyncio.gather(appending, return_exceptions=True)
    assert await two.ids() == names
    assert len(rounds) <= len(names) // 2


async def test_what_was_not_appended_is_in_a_usage_database_that_is_made_anew(
    nodes: Callable[..., Node], lines: Any
) -> None:
    one = nodes("one")
    one.settle("a-00000000", lines("r1"))
    await one.ingest.ingest()
    await one.usage.close()
    (one.spool.parent / "usage.duckdb").unlink()
    again = nodes("one")
    await again.settle_down()
    assert await again.ids() == ["r1"]


async def test_more_than_a_round_is_appended_without_another_word(
    nodes: Callable[..., Node], lines: Any, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = nodes("one")
    names = [f"a-{number:08}" for number in range(5)]
    for name in names:
        one.settle(name, lines(name))
    assert await one.ingest.ingest() == 5
    monkeypatch.setattr(segment, "ROUND_SEGMENTS", 2)
    await one.settle_down()
    assert [name for _, name in logged(database_url)] == names


async def test_the_content_of_own_segments_does_not_come_back(
    nodes: Callable[..., Node], lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = nodes("one"), nodes("two")
    contents: dict[str, bool] = {}
    read = module.batches_of

    def note_contents(segments: Any, *rest: Any) -> Any:
        contents.update({each.name: each.data is not None for each in segments})
        return read(segments, *rest)

    monkeypatch.setattr(module, "batches_of", note_contents)
    two.settle("b-00000000", lines("r2"))
    await two.ingest.ingest()
    await two.settle_down()
    contents.clear()
    one.settle("a-00000000", lines("r1"))
    await one.ingest.ingest()
    await one.settle_down()
    assert contents == {"a-00000000": False, "b-00000000": True}
    assert await one.ids() == ["r1", "r2"]


async def test_killed_between_commit_and_delete_a_segment_is_appended_once(
    nodes: Callable[..., Node],
    lines: Any,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = nodes("one")
    one.settle("a-00000000", lines("r1"))
    await one.ingest.ingest()
    with monkeypatch.context() as patch:
        patch.setattr(module, "_delete", _die)
        task = asyncio.create_task(one.shared.run())
        with pytest.raises(ConnectionAbortedError):
            await task
    assert (one.spool / "outgoing" / "a-00000000.ndjson").exists()
    assert len(logged(database_url)) == 1
    one.settle("a-00000001", lines("r2"))
    await one.ingest.ingest()
    await one.settle_down()
    assert [name for _, name in logged(database_url)] == ["a-00000000", "a-00000001"]
    assert await one.ids() == ["r1", "r2"]


def _die(_segments: object) -> None:
    raise ConnectionAbortedError


async def test_a_usage_database_that_is_thrown_away_is_made_anew(
    nodes: Callable[..., Node], lines: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairlead.store.postgresql import usage_log

    monkeypatch.setattr(usage_log, "READ_SEGMENTS", 3)
    one = nodes("one")
    for number in range(10):
        one.settle(f"a-{number:08}", lines(f"r{number}", f"s{number}"))
    await one.ingest.ingest()
    await one.settle_down()
    before = await one.ids()
    assert len(before) == 20

    fresh = Database.open(place_file(_folder(tmp_path / "fresh"), "usage"), MIGRATIONS / "usage")
    again = nodes("again", fresh)
    assert not again.shared.was_current
    await again.settle_down()
    assert again.shared.was_current
    assert again.shared.lag.segments == 0
    assert await again.ids() == before


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


async def test_a_copy_of_another_nodes_database_goes_on_from_there(
    nodes: Callable[..., Node], lines: Any, tmp_path: Path
) -> None:
    one = nodes("one")
    one.settle("a-00000000", lines("r1"))
    await one.ingest.ingest()
    await one.settle_down()
    # What is older than the log comes with the file alone.
    await one.usage.write(
        lambda con: con.execute("UPDATE requests SET request_id = 'older'").fetchall()
    )
    await one.usage.close()
    _folder(tmp_path / "copy")
    shutil.copy(tmp_path / "one" / "usage.duckdb", tmp_path / "copy" / "usage.duckdb")
    two = nodes("two", Database.open(tmp_path / "copy" / "usage.duckdb", MIGRATIONS / "usage"))
    two.settle("b-00000000", lines("r2"))
    await two.ingest.ingest()
    await two.settle_down()
    assert await two.ids() == ["older", "r2"]


async def test_a_log_that_lost_its_end_is_followed_from_what_both_have(
    nodes: Callable[..., Node], lines: Any, database_url: str
) -> None:
    """A replica that took over before the last commits had reached it."""
    one, two = nodes("one"), nodes("two")
    for number in range(3):
        one.settle(f"a-{number:08}", lines(f"r{number}"))
        await one.ingest.ingest()
        await one.settle_down()
    with psycopg.connect(database_url) as raw:
        raw.execute("DELETE FROM fairlead.usage_segments WHERE position > 1")
        raw.execute("UPDATE fairlead.usage_log SET position = 1")
    for number in range(4):
        two.settle(f"b-{number:08}", lines(f"t{number}"))
    await two.ingest.ingest()
    await two.settle_down()
    await one.settle_down()
    # It keeps what only it has, and misses nothing that came to the places of these.
    assert await one.ids() == ["r0", "r1", "r2", "t0", "t1", "t2", "t3"]


async def test_without_anything_in_common_nothing_is_mixed(
    nodes: Callable[..., Node], lines: Any, database_url: str
) -> None:
    one = nodes("one")
    one.settle("a-00000000", lines("r1"))
    await one.ingest.ingest()
    await one.settle_down()
    with psycopg.connect(database_url) as raw:
        raw.execute("UPDATE fairlead.usage_segments SET name = 'other'")
    with pytest.raises(module.LogDiverged):
        await one.shared.run()
    assert await one.ids() == ["r1"]


async def test_a_purge_reaches_every_node_and_leaves_sums(
    nodes: Callable[..., Node], lines: Any
) -> None:
    one, two = nodes("one"), nodes("two")
    one.settle("a-00000000", lines("r1"))
    await one.ingest.ingest()
    await one.settle_down()
    await two.settle_down()
    await one.services.state.record(lambda con: _note(1_900_000_000_000, con))

    def sums(con: Connection) -> tuple[int, int]:
        rows = con.execute(
            "SELECT (SELECT count(*) FROM requests), (SELECT sum(requests) FROM rollup_day)"
        ).fetchone()
        assert rows is not None
        return int(rows[0]), int(rows[1])

    async def is_gone() -> bool:
        return await two.usage.read(sums) == (0, 1)

    await two.follow(is_gone)


async def test_days_that_are_kept_no_longer_are_dropped(
    nodes: Callable[..., Node], lines: Any, database_url: str
) -> None:
    one = nodes("one")
    one.settle("a-00000000", lines("r1"))
    await one.ingest.ingest()
    await one.settle_down()
    with psycopg.connect(database_url) as raw:
        raw.execute("SET search_path = fairlead, pg_catalog")
        raw.execute(
            "CREATE TABLE usage_segments_20200102 PARTITION OF usage_segments "
            "FOR VALUES FROM ('2020-01-02') TO ('2020-01-03')"
        )

    def days() -> int:
        with psycopg.connect(database_url) as raw:
            row = raw.execute(
                "SELECT count(*) FROM pg_inherits i "
                "WHERE i.inhparent = 'fairlead.usage_segments'::regclass"
            ).fetchone()
            assert row is not None
            return int(row[0])

    assert days() == 2
    one.shared._drop_at_s = 0.0

    async def is_dropped() -> bool:
        return days() == 1

    await one.follow(is_dropped)
    assert len(logged(database_url)) == 1


async def test_sums_wait_until_a_new_database_is_filled(
    nodes: Callable[..., Node], lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit must not be counted from a usage database that is not whole yet."""
    from fairlead.usage.budgets import spent

    monkeypatch.setattr(spent, "WAIT_S", 0.1)
    one, two = nodes("one"), nodes("two")
    one.settle("a-00000000", lines("r1", key_id="k", tokens_input=70, tokens_output=7))
    await one.ingest.ingest()
    await one.settle_down()
    sums = spent.SpentSums(two.usage, two.spool, two.services.state, two.shared)
    question = spent.Question(key_id="k", unit="tokens", from_ms=0)
    asked = spent.SpentQuery(before_segment=0, questions=[question])
    assert await sums.sums("w", asked) is None
    await two.settle_down()
    assert await sums.sums("w", asked) == [77]


NODE = """
import asyncio, sys
from pathlib import Path
import structlog
from fairlead.store.database import Database
from fairlead.store.prepare import MIGRATIONS
from fairlead.store import segment
from fairlead.usage.ingestion import ingest
from tests.unit.python.usage.test_shared_log import Node

segment.ROUND_SEGMENTS = 3
ingest.ROUND_EVERY_S = 0.0
# Nobody reads its standard output once it has opened its file.
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
folder = Path(sys.argv[1])
usage = Database.open(folder / "usage.duckdb", MIGRATIONS / "usage")

async def keep(run):
    while True:
        try:
            await run()
        except Exception as error:
            print(type(error).__name__, file=sys.stderr)
            await asyncio.sleep(0.05)

async def main():
    node = Node(folder, sys.argv[2], usage)
    print("opened", flush=True)
    await asyncio.gather(keep(node.ingest.run), keep(node.shared.run))

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("segments", "restarts"), [(30, 1), pytest.param(400, 12, marks=pytest.mark.slow)]
)
async def test_nothing_twice_and_nothing_lost_whatever_is_killed(
    tmp_path: Path,
    record: Any,
    postgresql: PostgresqlServer,
    segments: int,
    restarts: int,
) -> None:
    """kill -9 of two nodes' processes again and again, and of PostgreSQL in between."""
    url = postgresql.migrated()
    folders = [_folder(tmp_path / name) for name in ("one", "two")]
    for at, folder in enumerate(folders):
        place_file(folder, "usage")
        (folder / "spool").mkdir()
        for number in range(segments):
            ids = [f"r{at}-{number}-{line}" for line in range(3)]
            data = "".join(json.dumps(record(each)) + "\n" for each in ids)
            (folder / "spool" / f"w{at}-{number:08}.ndjson").write_text(data)
    moments = random.Random(11)
    kills = 0
    while kills < restarts * 3 or any(list(each.rglob("*.ndjson")) for each in folders):
        running = [_start(folder, url) for folder in folders]
        time.sleep(moments.uniform(0.05, 0.4 + kills * 0.15))
        if kills < restarts:
            await asyncio.to_thread(postgresql.stop, "immediate")
            await asyncio.to_thread(postgresql.launch)
            time.sleep(moments.uniform(0.0, 0.3))
        for process in running:
            process.send_signal(signal.SIGKILL)
            process.wait()
        kills += 1
        assert kills < 80
    for folder in folders:
        usage = Database.open(folder / "usage.duckdb", MIGRATIONS / "usage")
        node = Node(folder, url, usage)
        try:
            await node.settle_down()
        finally:
            await node.close()
        con = open_file(folder / "usage.duckdb", MIGRATIONS / "usage")
        try:
            counts = con.execute("SELECT count(*), count(DISTINCT request_id) FROM requests")
            assert counts.fetchone() == (segments * 6, segments * 6)
            assert_levels_agree(con)
        finally:
            con.close()
    positions = [position for position, _ in logged(url)]
    assert positions == list(range(1, segments * 2 + 1))
    postgresql.drop(url)


def _start(folder: Path, url: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", NODE, str(folder), url], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline() == "opened\n"
    return process

"""The writer answers after COMMIT, groups what waits, and lets only the culprit fail."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest

from fairlead.errors import Conflict, Overloaded, StorageUnavailable
from fairlead.store import database as module
from fairlead.store.database import Database
from fairlead.store.file import Connection

pytestmark = pytest.mark.anyio

SLOW_QUERY = "SELECT count(*) FROM range(1000000000) a, range(1000) b"


def insert(number: int):
    def work(con: Connection) -> int:
        con.execute("INSERT INTO numbers VALUES (?)", [number])
        return number

    return work


def numbers(con: Connection) -> list[int]:
    return [n for (n,) in con.execute("SELECT n FROM numbers ORDER BY n").fetchall()]


class Hold:
    """Keeps the writer busy until it is let go."""

    def __init__(self) -> None:
        self.began, self.let_go = threading.Event(), threading.Event()

    def __call__(self, con: Connection) -> bool:
        self.began.set()
        return self.let_go.wait(10)


async def held(database: Database) -> tuple[Hold, asyncio.Task[bool]]:
    hold = Hold()
    task = asyncio.create_task(database.write(hold))
    assert await asyncio.to_thread(hold.began.wait, 10)
    return hold, task


@pytest.fixture
async def database(tmp_path: Path, migrations: Path):
    opened = Database.open(tmp_path / "d.duckdb", migrations)
    yield opened
    await opened.close()


async def test_concurrent_writes_are_all_kept_and_share_commits(database: Database) -> None:
    transactions = 0
    transact = database._transact

    def counting(group):
        nonlocal transactions
        transactions += 1
        return transact(group)

    database._transact = counting
    hold, first = await held(database)
    rest = [asyncio.create_task(database.write(insert(n))) for n in range(200)]
    await asyncio.sleep(0)  # each task puts its job into the queue
    hold.let_go.set()
    assert await first
    assert await asyncio.gather(*rest) == list(range(200))
    assert await database.read(numbers) == list(range(200))
    assert transactions <= 3


async def test_only_the_culprit_of_a_group_fails(database: Database) -> None:
    def culprit(con: Connection) -> None:
        insert(666)(con)
        raise Conflict("taken")

    outcomes = await asyncio.gather(
        *(database.write(insert(n)) for n in range(10)),
        database.write(culprit),
        *(database.write(insert(n)) for n in range(10, 20)),
        return_exceptions=True,
    )
    assert [o for o in outcomes if not isinstance(o, Exception)] == list(range(20))
    assert [type(o) for o in outcomes if isinstance(o, Exception)] == [Conflict]
    assert await database.read(numbers) == list(range(20))


async def test_a_refused_statement_leaves_the_writer_usable(database: Database) -> None:
    with pytest.raises(Exception, match="nope"):
        await database.write(lambda con: con.execute("SELECT * FROM nope"))
    assert await database.write(insert(1)) == 1


async def test_a_read_changes_nothing_and_sees_one_moment(database: Database) -> None:
    await database.write(insert(1))
    await database.read(insert(2))
    assert await database.read(numbers) == [1]

    began, go_on = threading.Event(), threading.Event()

    def twice(con: Connection) -> tuple[list[int], list[int]]:
        before = numbers(con)
        began.set()
        go_on.wait(10)
        return before, numbers(con)

    reading = asyncio.create_task(database.read(twice))
    assert await asyncio.to_thread(began.wait, 10)
    await database.write(insert(3))
    go_on.set()
    assert await reading == ([1], [1])


async def test_a_late_read_is_interrupted_and_the_reader_goes_on(database: Database) -> None:
    with pytest.raises(StorageUnavailable):
        await database.read(lambda con: con.execute(SLOW_QUERY).fetchall(), deadline_s=0.2)
    async with asyncio.timeout(10):
        reads = [database.read(numbers) for _ in range(module.READERS * 2)]
        assert await asyncio.gather(*reads) == [[]] * module.READERS * 2


async def test_a_write_that_gave_up_before_its_turn_is_never_made(database: Database) -> None:
    hold, first = await held(database)
    with pytest.raises(StorageUnavailable):
        await database.write(insert(1), deadline_s=0.05)
    hold.let_go.set()
    await first
    assert await database.read(numbers) == []


async def test_too_many_waiting_writes_are_shed(database: Database) -> None:
    hold, first = await held(database)
    tasks = [asyncio.create_task(database.write(numbers)) for _ in range(module.WRITES_WAITING_MAX)]
    await asyncio.sleep(0)  # each task puts its job into the queue
    with pytest.raises(Overloaded):
        await database.write(numbers)
    hold.let_go.set()
    assert await first
    assert await asyncio.gather(*tasks) == [[]] * module.WRITES_WAITING_MAX


async def test_closing_folds_the_log_in_and_later_work_is_refused(database: Database) -> None:
    await database.write(insert(1))
    await database.close()
    assert [path.name for path in database.path.parent.glob("d.duckdb*")] == ["d.duckdb"]
    with pytest.raises(StorageUnavailable):
        await database.write(insert(2))
    with pytest.raises(StorageUnavailable):
        await database.read(numbers)


WRITER = """
import asyncio, sys
from pathlib import Path
from fairlead.store.database import Database

async def one(db, n):
    await db.write(lambda con: con.execute("INSERT INTO numbers VALUES (?)", [n]).fetchall())
    print(n, flush=True)

async def main():
    db = Database.open(Path(sys.argv[1]), Path(sys.argv[2]))
    n = 0
    while True:
        await asyncio.gather(*(one(db, n + i) for i in range(5)))
        n += 5

asyncio.run(main())
"""


@pytest.mark.parametrize("lines", [1, 17, 60])
async def test_what_was_acknowledged_survives_kill_9(
    tmp_path: Path, migrations: Path, lines: int
) -> None:
    path = tmp_path / "k.duckdb"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(migrations)],
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(lines)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in writer.stdout if line.strip().isdigit()]
    reopened = Database.open(path, migrations)
    kept = await reopened.read(numbers)
    await reopened.close()
    assert set(acknowledged) <= set(kept)
    assert len(kept) == len(set(kept))


FULL = """
import asyncio, resource, sys
from pathlib import Path
from fairlead.errors import StorageUnavailable
from fairlead.store.database import Database

def fill(con):
    con.execute("INSERT INTO numbers SELECT * FROM range(100000)")

def count(con):
    return con.execute("SELECT count(*) FROM numbers").fetchone()[0]

async def main():
    db = Database.open(Path(sys.argv[1]), Path(sys.argv[2]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    try:
        await db.write(fill)
    except StorageUnavailable:
        print("refused", await db.read(count), db.fault is not None)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await db.write(fill)
    print("taken", await db.read(count), db.fault is not None)
    await db.close()

asyncio.run(main())
"""


async def test_a_write_without_space_is_refused_and_space_is_all_it_takes(
    tmp_path: Path, migrations: Path
) -> None:
    """The limit on file sizes stands in for a disk that is full."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "f.duckdb"), str(migrations)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if not line.startswith("20")]
    assert lines == ["refused 0 True", "taken 100000 False"], done.stderr


async def test_a_damaged_block_is_told_of_and_the_file_is_left_alone(
    tmp_path: Path, migrations: Path
) -> None:
    path = tmp_path / "d.duckdb"
    filled = Database.open(path, migrations)
    await filled.write(
        lambda con: con.execute("INSERT INTO numbers SELECT hash(i) % 1e9 FROM range(200000) t(i)")
    )
    await filled.close()

    database = Database.open(path, migrations)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xaa" * (path.stat().st_size // 4))
    with pytest.raises(StorageUnavailable):
        await database.read(lambda con: con.execute("SELECT sum(n) FROM numbers").fetchall())
    with pytest.raises(StorageUnavailable, match="damaged"):
        await database.write(insert(7))

    assert database.fault is not None
    await database.close()


async def test_an_engine_that_gave_up_is_left(database: Database) -> None:
    left: list[bool] = []
    database.on_fatal = lambda: left.append(True)

    def fatal(con: Connection) -> None:
        raise duckdb.FatalException("the database has been invalidated")

    with pytest.raises(StorageUnavailable):
        await database.write(fatal)
    with pytest.raises(StorageUnavailable):
        await database.read(fatal)

    assert left == [True, True]


async def test_a_read_that_failed_is_over_with_the_next_that_succeeds(database: Database) -> None:
    def fail(con: Connection) -> None:
        raise duckdb.IOException("the disk did not answer")

    with pytest.raises(StorageUnavailable):
        await database.read(fail)
    assert database.fault is not None
    await database.read(numbers_of)
    assert database.fault is None

    with pytest.raises(StorageUnavailable):
        await database.write(fail)
    await database.read(numbers_of)
    assert database.fault is not None, "a disk that takes no writes may answer reads"
    await database.write(insert(7))
    assert database.fault is None


def numbers_of(con: Connection) -> list[tuple[int]]:
    return con.execute("SELECT n FROM numbers").fetchall()

"""PostgreSQL behind a `Database`: what conflicts is run again, what was acknowledged is stored once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import psycopg
import pytest

from fairlead.errors import Conflict, InvalidRequest, StorageUnavailable
from fairlead.store.connection import Connection
from fairlead.store.database import Database
from fairlead.store.meta import count_up, read_meta, write_meta
from fairlead.store.postgresql.channels import connect_async
from fairlead.store.postgresql.engine import PostgresqlEngine
from fairlead.store.postgresql.schema import connect

if TYPE_CHECKING:
    from tests.support.postgresql import PostgresqlServer

pytestmark = pytest.mark.anyio


@pytest.fixture
async def nodes(database_url: str) -> AsyncIterator[tuple[Database, Database]]:
    """Two processes' databases."""
    opened = [Database(PostgresqlEngine(database_url, name)) for name in ("one", "two")]
    yield opened[0], opened[1]
    for each in opened:
        await each.close()


def insert_grant(con: Connection) -> None:
    con.execute(
        "INSERT INTO oauth_grants (id, client_id, user_id, resource, created_at_ms) VALUES (?, 'c', 'u', 'r', 0)",
        ["of one id"],
    )


async def test_counters_of_two_processes_lose_nothing(nodes: tuple[Database, Database]) -> None:
    writes = [nodes[at % 2].write(lambda con: count_up(con, "races")) for at in range(60)]
    seen = await asyncio.gather(*writes)
    assert sorted(seen) == list(range(1, 61))
    assert await nodes[0].read(lambda con: read_meta(con, "races")) == "60"


async def test_what_is_checked_by_a_select_holds_between_processes(
    nodes: tuple[Database, Database],
) -> None:
    """Write skew: each sees that the name is free, and one of them may take it."""

    def take(con: Connection) -> bool:
        taken = con.execute("SELECT 1 FROM combos WHERE name = ?", ["wanted"]).fetchone()
        if taken is not None:
            raise Conflict("The name is taken.")
        con.execute(
            "INSERT INTO combos (id, name, strategy, steps, config, is_active, created_at_ms, "
            "updated_at_ms) VALUES (?, ?, 'priority', '[]', '{}', true, 0, 0)",
            ["c", "wanted"],
        )
        return True

    results = await asyncio.gather(
        *(nodes[at % 2].write(take) for at in range(10)), return_exceptions=True
    )
    assert results.count(True) == 1
    assert all(isinstance(each, Conflict) for each in results if each is not True), results


async def test_a_row_that_the_other_process_made_meanwhile_is_seen_by_the_next_attempt(
    nodes: tuple[Database, Database],
) -> None:
    """Such a row is no conflict to the server, for the transaction read nothing that the other wrote."""
    first, second = nodes
    loop = asyncio.get_running_loop()
    seen = []

    def make_here(con: Connection) -> None:
        seen.append(con.execute("SELECT count(*) FROM oauth_clients").fetchone())
        if len(seen) == 1:
            asyncio.run_coroutine_threadsafe(first.write(insert_grant), loop).result(10)
        elif con.execute("SELECT 1 FROM oauth_grants").fetchone() is not None:
            return
        insert_grant(con)

    await second.write(make_here)
    assert len(seen) == 2


async def test_a_duplicate_of_its_own_is_reported(nodes: tuple[Database, Database]) -> None:
    def insert_twice(con: Connection) -> None:
        insert_grant(con)
        insert_grant(con)

    with pytest.raises(psycopg.errors.UniqueViolation):
        await nodes[0].write(insert_twice)


async def test_a_job_that_raises_leaves_no_trace_and_fails_alone(
    nodes: tuple[Database, Database],
) -> None:
    def refused(con: Connection) -> None:
        write_meta(con, "half", "done")
        raise Conflict("No.")

    results = await asyncio.gather(
        nodes[0].write(lambda con: write_meta(con, "before", "1")),
        nodes[0].write(refused),
        nodes[0].write(lambda con: write_meta(con, "after", "1")),
        return_exceptions=True,
    )
    assert [type(each) for each in results] == [type(None), Conflict, type(None)]
    names = await nodes[1].read(
        lambda con: [
            row[0]
            for row in con.execute(
                "SELECT name FROM meta WHERE name IN ('before', 'half', 'after') ORDER BY 1"
            ).fetchall()
        ]
    )
    assert names == ["after", "before"]


async def test_a_read_sees_one_moment_and_cannot_write(nodes: tuple[Database, Database]) -> None:
    def write(con: Connection) -> None:
        con.execute("DELETE FROM meta")

    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        await asyncio.to_thread(nodes[0]._engine.read, write, [])
    with pytest.raises(StorageUnavailable):
        await nodes[0].read(write)


async def test_values_are_those_of_the_embedded_store(nodes: tuple[Database, Database]) -> None:
    def both(con: Connection) -> list[object]:
        changed = con.execute("INSERT INTO meta (name, value) VALUES ('a', 'b'), ('c', 'd')")
        summed = con.execute(
            "SELECT sum(x)::BIGINT, sum(x) FROM (SELECT unnest(?::BIGINT[]) AS x) AS n", [[1, 2]]
        )
        return [
            changed.fetchone(),
            summed.fetchone(),
            con.execute("SELECT ?::VARCHAR[]", [["x"]]).fetchone(),
        ]

    assert await nodes[0].write(both) == [(2,), (3, 3), (["x"],)]


async def test_a_nul_in_a_text_is_the_callers_fault(nodes: tuple[Database, Database]) -> None:
    with pytest.raises(InvalidRequest, match="NUL"):
        await nodes[0].write(lambda con: write_meta(con, "text", "a\0b"))


async def test_lost_connections_are_replaced(
    nodes: tuple[Database, Database], database_url: str
) -> None:
    await nodes[0].write(lambda con: write_meta(con, "first", "1"))
    await asyncio.gather(*(nodes[0].read(lambda con: read_meta(con, "first")) for _ in range(8)))
    with connect(database_url, "test") as raw:
        raw.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'fairlead control'"
        )
    assert await nodes[0].read(lambda con: read_meta(con, "first")) == "1"
    await nodes[0].write(lambda con: write_meta(con, "second", "2"))
    assert await nodes[1].read(lambda con: read_meta(con, "second")) == "2"


async def test_a_server_that_is_gone_is_unavailable_and_named(postgresql: PostgresqlServer) -> None:
    url = postgresql.migrated()
    database = Database(PostgresqlEngine(url, "one"))
    await database.write(lambda con: write_meta(con, "there", "1"))
    postgresql.drop(url)
    with pytest.raises(StorageUnavailable):
        await database.read(lambda con: read_meta(con, "there"))
    with pytest.raises(StorageUnavailable):
        await database.write(lambda con: write_meta(con, "there", "2"))
    assert database.fault is not None
    assert "state.postgresql" in database.fault
    await database.close()


async def test_the_server_ends_sessions_of_machines_that_are_gone(
    nodes: tuple[Database, Database], database_url: str
) -> None:
    """Otherwise it keeps their locks for as long as the operating system waits: two hours."""
    names = ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count")
    wanted = ["10", "5", "3"]

    def read(con: Connection) -> list[str]:
        shown = (con.execute(f"SHOW {name}").fetchone() for name in names)
        return [row[0] for row in shown if row]

    assert await nodes[0].read(read) == wanted
    async with await connect_async(database_url, "locks") as raw:
        shown = [await (await raw.execute(f"SHOW {name}".encode())).fetchone() for name in names]
    assert [row[0] for row in shown if row] == wanted

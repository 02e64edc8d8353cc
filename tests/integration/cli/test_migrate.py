"""`fairlead migrate`: an instance goes to PostgreSQL and back with everything, and can be interrupted."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from fairlead.errors import Refusal
from fairlead.store.copying import CopiedTable, copy_tables
from fairlead.store.file import FileConnection
from fairlead.store.file_rows import FileTables
from fairlead.store.postgresql.rows import PostgresqlTables
from fairlead.store.postgresql.schema import connect
from fairlead.store.rows import sum_of
from fairlead.store.state_database import open_state
from tests.support.databases import open_fresh_file
from tests.support.polling import eventually
from tests.support.processes import Gateway
from tests.support.upstream import Upstream

if TYPE_CHECKING:
    from tests.support.postgresql import PostgresqlServer

KEY = "bm9kZXMgb2Ygb25lIGRhdGFiYXNlIHNoYXJlIGEga2U="


def migrate(gateway: Gateway, url: str, to: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairlead", "migrate", "--to", to]
    return subprocess.run(
        [*command, "--data-dir", str(gateway.data_dir)],
        env=dict(os.environ) | {"FAIRLEAD_DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def call(gateway: Gateway, key: str, body: dict) -> int:
    headers = {"authorization": f"Bearer {key}"}
    url = f"{gateway.url}/v1/chat/completions"
    return httpx.post(url, json=body, headers=headers, timeout=30).status_code


def test_an_instance_goes_to_postgresql_and_back(
    gateways: Callable[..., Gateway], postgresql: PostgresqlServer, upstream: Upstream
) -> None:
    if os.environ.get("FAIRLEAD_TEST_STORE") == "postgresql":
        pytest.skip("begins with the embedded store")
    url = postgresql.empty()
    gateway = gateways()
    body = gateway.add_lane(upstream).body()
    key = gateway.create_key(name="moves")["key"]
    assert migrate(gateway, url, "postgresql").returncode != 0, "it runs"
    gateway.stop()
    file = gateway.data_dir / "state.duckdb"
    before = hashlib.sha256(file.read_bytes()).hexdigest()

    done = migrate(gateway, url, "postgresql")
    assert done.returncode == 0, done.stderr
    assert "keys: 1 rows" in done.stderr
    assert hashlib.sha256(file.read_bytes()).hexdigest() == before
    again = migrate(gateway, url, "postgresql")
    assert again.returncode != 0
    assert "has rows already" in again.stderr

    gateway._environment["FAIRLEAD_DATABASE_URL"] = url
    gateway.start()
    assert call(gateway, key, body) == 200
    second = gateway.create_key(name="made there")["key"]
    assert "stop" in migrate(gateway, url, "embedded").stderr
    gateway.stop()

    kept = migrate(gateway, url, "embedded")
    assert kept.returncode != 0
    assert "state.duckdb exists" in kept.stderr
    file.rename(file.with_name("before.duckdb"))
    back = migrate(gateway, url, "embedded")
    assert back.returncode == 0, back.stderr
    del gateway._environment["FAIRLEAD_DATABASE_URL"]
    gateway.start()
    assert call(gateway, key, body) == call(gateway, second, body) == 200
    postgresql.drop(url)


@pytest.fixture
def filled(tmp_path: Path) -> FileConnection:
    """An embedded state with rows of every kind of column."""
    con = open_fresh_file(tmp_path, "state")
    odd = "a\tb\\N\n\"'{},é€\U0001f600"
    con.execute(
        "INSERT INTO webhook_attempts "
        "SELECT 'd' || n, 'e', n, ? + n, n / 7, NULL, ? FROM range(5000) AS numbers (n)",
        [2**52, odd],
    )
    con.execute("INSERT INTO static_tokens VALUES ('s', 'u', ?, 'h', '', 1, NULL)", [odd])
    con.execute(
        "INSERT INTO webhook_secrets VALUES ('i', 'e', ?, '', 1, NULL)", [bytes(range(256))]
    )
    con.execute(
        "INSERT INTO webhook_endpoints VALUES ('e', 'gateway', NULL, ?, 'u', ?, 's', NULL, NULL, 0, 0, 0)",
        [odd, ["a,b", '"', "\\", "NULL", "{}", ""]],
    )
    con.execute(
        "INSERT INTO board_sprints VALUES ('s', 'p', 'n', '', 'active', ?, NULL, 1, 1, 1)",
        [date(2026, 2, 28)],
    )
    return con


def test_every_kind_of_value_is_the_same_after_both_ways(
    filled: FileConnection, database_url: str, tmp_path: Path
) -> None:
    source = FileTables(filled)
    with connect(database_url, "test") as raw:
        there = copy_tables(source, PostgresqlTables(raw), lambda _: None)
        (tmp_path / "back").mkdir()
        back_file = open_fresh_file(tmp_path / "back", "state")
        back = FileTables(back_file)
        with raw.transaction():
            assert copy_tables(PostgresqlTables(raw), back, lambda _: None) == there
    assert there["webhook_attempts"].rows == 5000
    for table, columns in source.columns().items():
        assert sum_of(back, table, columns) == sum_of(source, table, columns)
    back_file.close()


async def _started(url: str, folder: Path) -> None:
    await open_state(folder, url, "test").close()


def test_an_interrupted_copy_goes_on_and_is_started_by_nobody(
    filled: FileConnection, database_url: str, tmp_path: Path
) -> None:
    seen: list[CopiedTable] = []

    def stop_after(table: CopiedTable) -> None:
        seen.append(table)
        if len(seen) == 20:
            raise KeyboardInterrupt

    with connect(database_url, "test") as raw, pytest.raises(KeyboardInterrupt):
        copy_tables(FileTables(filled), PostgresqlTables(raw), stop_after)
    with pytest.raises(Refusal, match="is not complete"):
        open_state(tmp_path, database_url, "test")
    # A row of a copied table changes meanwhile: that table is copied anew.
    first = seen[0].name
    filled.execute("INSERT INTO agent_messages VALUES ('t', 1, 'm', 'user', '[]', 1)")
    assert first == "agent_messages"
    later: list[CopiedTable] = []
    with connect(database_url, "test") as raw:
        copy_tables(FileTables(filled), PostgresqlTables(raw), later.append)
        assert raw.execute("SELECT count(*) FROM agent_messages").fetchone() == (1,)
    assert [each.is_new for each in later[:20]] == [True, *[False] * 19]
    assert all(each.is_new for each in later[20:])


def test_a_damaged_target_is_noticed(filled: FileConnection, database_url: str) -> None:
    with connect(database_url, "test") as raw, connect(database_url, "other") as other:

        def lose_a_row(table: CopiedTable) -> None:
            if table.name == "webhook_attempts":
                other.execute("DELETE FROM webhook_attempts WHERE delivery_id = 'd77'")

        with pytest.raises(Refusal, match="4999 of 5000 rows"):
            copy_tables(FileTables(filled), PostgresqlTables(raw), lose_a_row)


def test_a_text_that_postgresql_cannot_hold_is_named(
    filled: FileConnection, database_url: str
) -> None:
    filled.execute("INSERT INTO meta VALUES ('a', ?)", ["x\0y"])
    with connect(database_url, "test") as raw, pytest.raises(Refusal, match="table meta"):
        copy_tables(FileTables(filled), PostgresqlTables(raw), lambda _: None)


def shown_requests(gateway: Gateway) -> int:
    answer = gateway.admin.get("/api/usage/request-logs", params={"limit": 500})
    return len(answer.json()["logs"])


@pytest.fixture
def nodes(
    gateways: Callable[..., Gateway], postgresql: PostgresqlServer
) -> Iterator[tuple[Gateway, Gateway, str]]:
    """Two nodes of one new database, and its address."""
    url = postgresql.empty()
    settings = {"FAIRLEAD_DATABASE_URL": url, "FAIRLEAD_SECRET_KEY": KEY}
    yield gateways(**settings), gateways(**settings), url
    postgresql.drop(url)


def test_the_way_back_brings_what_other_nodes_have_served(
    nodes: tuple[Gateway, Gateway, str], upstream: Upstream
) -> None:
    """Also after this one was stopped."""
    gateway, other, url = nodes
    body = gateway.add_lane(upstream).body()
    key = gateway.create_key(name="moves")["key"]
    assert call(gateway, key, body) == 200
    eventually(lambda: shown_requests(other) == 1, "it is in the log", within_s=60, every_s=0.2)
    gateway.stop()
    assert [call(other, key, body) for _ in range(3)] == [200] * 3
    eventually(lambda: shown_requests(other) == 4, "all are in the log", within_s=60, every_s=0.2)
    other.stop()

    back = migrate(gateway, url, "embedded")
    assert back.returncode == 0, back.stderr
    del gateway._environment["FAIRLEAD_DATABASE_URL"]
    gateway.start()
    assert shown_requests(gateway) == 4
    assert call(gateway, key, body) == 200
    eventually(lambda: shown_requests(gateway) == 5, "one more is stored", within_s=30)


def test_the_way_back_goes_on_wherever_it_was_killed(
    nodes: tuple[Gateway, Gateway, str], tmp_path: Path
) -> None:
    gateway, other, url = nodes
    gateway.create_key(name="moves")
    gateway.stop()
    other.stop()
    file = gateway.data_dir / "state.duckdb"
    growing = file.with_name("state.duckdb.incoming")
    assert migrate(gateway, url, "embedded").returncode == 0
    # Killed when all was copied, before the file had its name.
    file.rename(growing)
    again = migrate(gateway, url, "embedded")
    assert again.returncode == 0, again.stderr
    assert not growing.exists()
    # A log of changes that another file has left would be read into the new one.
    file.unlink()
    log = file.with_name("state.duckdb.wal")
    log.write_bytes(b"left")
    refused = migrate(gateway, url, "embedded")
    assert refused.returncode != 0
    assert "state.duckdb.wal exists" in refused.stderr


def test_a_copy_that_was_killed_leaves_no_second_state(
    gateways: Callable[..., Gateway], postgresql: PostgresqlServer
) -> None:
    if os.environ.get("FAIRLEAD_TEST_STORE") == "postgresql":
        pytest.skip("begins with the embedded store")
    url = postgresql.empty()
    gateway = gateways()
    gateway.stop()
    file = gateway.data_dir / "state.duckdb"
    left = gateway.data_dir / "migrate"
    left.mkdir(mode=0o700)
    (left / file.name).write_bytes(b"the beginning of a file")
    assert migrate(gateway, url, "postgresql").returncode == 0
    assert not list(gateway.data_dir.glob("migrate*"))
    postgresql.drop(url)

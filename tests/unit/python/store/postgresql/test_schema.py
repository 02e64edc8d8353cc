"""Every migration runs on both stores and makes the same tables; a database that cannot be used is named."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from fairlead.errors import Refusal
from fairlead.store.file import NewerSchema, OlderSchema, read_migrations
from fairlead.store.postgresql.schema import connect, migrate, schema_version
from fairlead.store.prepare import MIGRATIONS
from tests.support.databases import open_fresh_file
from tests.support.process import free_port

if TYPE_CHECKING:
    from tests.support.postgresql import PostgresqlServer

STATE = MIGRATIONS / "state"
# PostgreSQL's names of DuckDB's types.
TYPES = {
    "VARCHAR": "character varying",
    "BLOB": "bytea",
    "BIGINT": "bigint",
    "INTEGER": "integer",
    "BOOLEAN": "boolean",
    "DOUBLE": "double precision",
    "DATE": "date",
    "VARCHAR[]": "ARRAY",
    "INTEGER[]": "ARRAY",
}
COLUMNS = (
    "SELECT table_name, column_name, data_type FROM information_schema.columns "
    "WHERE table_schema = '{schema}' AND table_name NOT IN ('schema_version', 'schema_files') "
    # The log of usage is of several nodes.
    "AND table_name NOT LIKE 'usage_%' "
    "ORDER BY table_name, column_name"
)


def test_both_stores_have_the_same_tables(database_url: str, tmp_path: Path) -> None:
    embedded = open_fresh_file(tmp_path, "state")
    ours = embedded.execute(COLUMNS.format(schema="main")).fetchall()
    embedded.close()
    with connect(database_url, "test") as raw:
        theirs = raw.execute(COLUMNS.format(schema="fairlead")).fetchall()  # type: ignore[arg-type]
        assert schema_version(raw) == read_migrations(STATE)[-1].version
    assert [(table, column, TYPES[kind]) for table, column, kind in ours] == theirs


def test_texts_are_compared_by_bytes(database_url: str) -> None:
    with connect(database_url, "test") as raw:
        other = raw.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = "
            "'fairlead' AND data_type = 'character varying' AND collation_name IS DISTINCT FROM 'C' "
            "AND table_name NOT IN ('schema_version', 'schema_files')"
        ).fetchall()
    assert other == []


def test_many_processes_migrate_an_empty_database_at_once(postgresql: PostgresqlServer) -> None:
    url = postgresql.empty()
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: migrate(url, STATE), range(6)))
    with connect(url, "test") as raw:
        versions = raw.execute("SELECT version FROM schema_version ORDER BY version").fetchall()
    assert [each for (each,) in versions] == [step.version for step in read_migrations(STATE)]
    postgresql.drop(url)


def test_a_schema_older_than_the_base_is_refused_and_left_alone(database_url: str) -> None:
    with connect(database_url, "test") as raw:
        raw.execute("DELETE FROM schema_version")
        raw.execute("INSERT INTO schema_version (version, name) VALUES (7, 'older')")
        tables = raw.execute(COLUMNS.format(schema="fairlead")).fetchall()  # type: ignore[arg-type]
    base = read_migrations(STATE)[0].version
    with pytest.raises(OlderSchema, match=rf"schema 7,.* schema {base} and later.* empty data dir"):
        migrate(database_url, STATE)
    with connect(database_url, "test") as raw:
        assert raw.execute(COLUMNS.format(schema="fairlead")).fetchall() == tables  # type: ignore[arg-type]


def test_a_newer_schema_is_refused(database_url: str) -> None:
    with connect(database_url, "test") as raw:
        raw.execute("INSERT INTO schema_version (version, name) VALUES (9999, 'later')")
    with pytest.raises(NewerSchema, match="9999"):
        migrate(database_url, STATE)


def test_an_unreachable_database_is_one_sentence_without_the_password() -> None:
    port = free_port()
    with pytest.raises(Refusal) as refused:
        migrate(f"postgresql://somebody:pass-canary@127.0.0.1:{port}/state", STATE)
    sentence = refused.value.sentence
    assert f"127.0.0.1:{port}" in sentence
    assert "state" in sentence
    assert "pass-canary" not in sentence
    assert "\n" not in sentence


def test_a_database_of_another_encoding_is_refused(postgresql: PostgresqlServer) -> None:
    postgresql.run(
        "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    with pytest.raises(Refusal, match="UTF8"):
        migrate(postgresql.url("latin"), STATE)


def test_a_user_without_rights_is_told(postgresql: PostgresqlServer) -> None:
    url = postgresql.empty()
    postgresql.run("DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN")
    with pytest.raises(Refusal, match="owner of the database"):
        migrate(url.replace("postgres@", "guest@"), STATE)
    postgresql.drop(url)


def test_functions_are_duckdbs(database_url: str) -> None:
    """What statements call by DuckDB's names gives what DuckDB gives."""
    import duckdb

    texts = "SELECT lower('ÄÖÜ Straße ЖЩ'), strlen('aä€'), contains('abc', 'bc'), list_position(ARRAY['a', 'b'], 'b')"
    more = "SELECT list_contains(ARRAY['a', 'b'], 'b'), list_contains(ARRAY['a'], 'b'), starts_with('ab', 'a')"
    with connect(database_url, "test") as raw:
        for text in (texts, more):
            assert raw.execute(text.encode()).fetchone() == duckdb.execute(text).fetchone()
        with pytest.raises(psycopg.Error):
            raw.execute("SELECT nothing_of_ours()")

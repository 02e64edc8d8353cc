"""What is answered from memory is what the file would have answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.store.file_engine import FileEngine
from fairlead.store.file_transaction import READS_MAX, ROWS_MAX, FileTransaction

TABLES = "CREATE TABLE keys (id INTEGER, name VARCHAR); CREATE TABLE nodes (id INTEGER)"
READS = (
    ("SELECT * FROM keys ORDER BY ALL", None),
    ("SELECT name FROM keys WHERE id = ? ORDER BY ALL", [1]),
    ("SELECT name FROM keys WHERE id = $id ORDER BY ALL", {"id": 2}),
    ("SELECT count(*) FROM keys, nodes WHERE keys.id = nodes.id", None),
    ("WITH keys AS (SELECT id FROM nodes) SELECT * FROM keys ORDER BY ALL", None),
    ('SELECT (SELECT max(id) FROM "Nodes")', None),
    ("SELECT id FROM main.nodes WHERE id IN (SELECT id FROM keys) ORDER BY ALL", None),
)
CHANGES = (
    ("INSERT INTO keys VALUES (?, ?)", [1, "a"]),
    ("insert into keys values (2, 'b')", None),
    ("INSERT INTO main.keys VALUES (1, 'c')", None),
    ('UPDATE "keys" SET name = ? WHERE id = 1', ["d"]),
    ("UPDATE keys SET id = id + 1", None),
    ("DELETE FROM nodes WHERE id > 2", None),
    ("INSERT INTO nodes SELECT id FROM keys LIMIT 3", None),
    ("WITH few AS (SELECT 2 AS id) INSERT INTO nodes SELECT id FROM few", None),
    ("DELETE FROM keys WHERE id > 3; INSERT INTO nodes VALUES (1)", None),
    ("TRUNCATE nodes", None),
)


@pytest.fixture
def file() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(TABLES)
    return connection


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("read"), st.integers(0, len(READS) - 1)),
            st.tuples(st.just("change"), st.integers(0, len(CHANGES) - 1)),
            st.tuples(st.just("many"), st.just(0)),
            st.tuples(st.just("roll back"), st.just(0)),
        ),
        max_size=25,
    )
)
def test_reads_are_those_of_the_file(steps: list[tuple[str, int]]) -> None:
    raw = duckdb.connect()
    raw.execute(TABLES)
    con = FileTransaction(raw, remembers=True)
    raw.begin()
    for step, at in steps:
        if step == "read":
            query, parameters = READS[at]
            expected = raw.execute(query, parameters).fetchall()
            assert con.execute(query, parameters).fetchall() == expected
            assert con.execute(query, parameters).fetchall() == expected
        elif step == "change":
            con.execute(*CHANGES[at])
        elif step == "many":
            con.executemany("INSERT INTO keys VALUES (?, ?)", [[5, "e"], [6, "f"]])
        else:
            raw.rollback()
            con.forget()
            raw.begin()


def test_a_read_of_unchanged_tables_does_not_ask_the_file(file: duckdb.DuckDBPyConnection) -> None:
    con = FileTransaction(file, remembers=True)
    con.execute("INSERT INTO keys VALUES (1, 'a')")
    query = "SELECT name FROM keys WHERE id = ?"
    assert con.execute(query, [1]).fetchone() == ("a",)
    file.execute("UPDATE keys SET name = 'past it'")
    con.execute("INSERT INTO nodes VALUES (1)")
    assert con.execute(query, [1]).fetchone() == ("a",)
    assert con.execute(query, [True]).fetchone() == ("past it",)
    con.execute("DELETE FROM keys WHERE id = 7")
    assert con.execute(query, [1]).fetchone() == ("past it",)


def test_a_list_that_a_reader_changes_is_its_own(file: duckdb.DuckDBPyConnection) -> None:
    file.execute("CREATE TABLE rules (models VARCHAR[], windows INTEGER[][])")
    con = FileTransaction(file, remembers=True)
    con.execute("INSERT INTO rules VALUES (['a'], [[1]])")
    for _ in range(3):
        row = con.execute("SELECT models, windows FROM rules").fetchone()
        assert row == (["a"], [[1]])
        row[0].append("b")
        row[1][0].append(2)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, random() FROM keys",
        "SELECT current_timestamp, id FROM keys",
        "SELECT keys.id FROM memory.main.keys",
        "SELECT table_name FROM duckdb_tables() WHERE table_name = 'keys'",
    ],
)
def test_what_rows_do_not_decide_is_asked_each_time(
    file: duckdb.DuckDBPyConnection, query: str
) -> None:
    con = FileTransaction(file, remembers=True)
    file.execute("INSERT INTO keys VALUES (1, 'a')")
    con.execute(query).fetchall()
    file.execute("DROP TABLE keys")
    if "duckdb_tables" in query:
        assert con.execute(query).fetchall() == []
    else:
        with pytest.raises(duckdb.CatalogException):
            con.execute(query)


def test_where_there_are_views_nothing_is_remembered(file: duckdb.DuckDBPyConnection) -> None:
    file.execute("CREATE VIEW names AS SELECT name FROM keys")
    con = FileTransaction(file, remembers=True)
    assert con.execute("SELECT * FROM names").fetchall() == []
    con.execute("INSERT INTO keys VALUES (1, 'a')")
    assert con.execute("SELECT * FROM names").fetchall() == [("a",)]


def test_many_rows_come_whole_and_are_not_remembered(file: duckdb.DuckDBPyConnection) -> None:
    con = FileTransaction(file, remembers=True)
    file.execute(f"INSERT INTO nodes SELECT * FROM range({ROWS_MAX + 700})")
    query = "SELECT id FROM nodes ORDER BY id"
    result = con.execute(query)
    assert result.fetchone() == (0,)
    assert result.fetchmany(ROWS_MAX + 100)[-1] == (ROWS_MAX + 100,)
    assert [row[0] for row in result.fetchall()] == list(range(ROWS_MAX + 101, ROWS_MAX + 700))
    file.execute("DELETE FROM nodes")
    assert con.execute(query).fetchall() == []


def test_the_oldest_reads_are_forgotten(file: duckdb.DuckDBPyConnection) -> None:
    con = FileTransaction(file, remembers=True)
    query = "SELECT id FROM keys WHERE id = ?"
    for number in range(READS_MAX + 1):
        con.execute(query, [number])
    file.execute("INSERT INTO keys VALUES (0, 'a'), (5, 'b')")
    assert con.execute(query, [5]).fetchall() == []
    assert con.execute(query, [0]).fetchall() == [(0,)]


def test_a_transaction_that_fails_leaves_no_rows_in_memory(tmp_path: Path) -> None:
    raw = duckdb.connect(str(tmp_path / "state.duckdb"))
    raw.execute(TABLES)
    engine = FileEngine(tmp_path / "state.duckdb", raw, remembers_reads=True)
    query = "SELECT id FROM keys"

    def fail(con: Any) -> None:
        con.execute("INSERT INTO keys VALUES (1, 'a')")
        assert con.execute(query).fetchall() == [(1,)]
        raise ValueError

    with pytest.raises(ValueError):
        engine.transact([fail])
    assert engine.transact([lambda con: con.execute(query).fetchall()]) == [[]]
    engine.close()

"""A statement that is parsed once runs anywhere, with other values each time."""

from __future__ import annotations

import duckdb
import pytest

from fairlead.store.statement import parsed

INSERT = "INSERT INTO one SELECT unnest(?::VARCHAR[]), unnest(?::BIGINT[])"


def test_it_runs_on_any_connection_and_after_the_first_is_closed() -> None:
    first, second = duckdb.connect(), duckdb.connect()
    for con in (first, second):
        con.execute("CREATE TABLE one (name VARCHAR, number BIGINT)")
    first.execute(parsed(first, INSERT), [["a", "b"], [1, 2]])
    assert parsed(second, INSERT) is parsed(first, INSERT)
    first.close()
    for number in range(3):
        second.begin()
        second.execute(parsed(second, INSERT), [["c"], [number]])
        second.commit()
    second.begin()
    second.execute(parsed(second, INSERT), [["d"], [9]])
    second.rollback()
    assert second.execute("SELECT name, number FROM one ORDER BY number").fetchall() == [
        ("c", 0),
        ("c", 1),
        ("c", 2),
    ]


def test_it_is_one_statement() -> None:
    with pytest.raises(ValueError, match="too many values"):
        parsed(duckdb.connect(), "SELECT 1; SELECT 2")

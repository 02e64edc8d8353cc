"""One set of statements: parameters are counted, and the rest of a text stays as it is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.store.postgresql.statements import for_postgresql, numbered


@pytest.mark.parametrize(
    ("text", "sent", "names"),
    [
        ("SELECT ?, ?", "SELECT $1, $2", ()),
        ("WHERE a = $b AND c = $d AND $b > 1", "WHERE a = $1 AND c = $2 AND $1 > 1", ("b", "d")),
        ("SELECT '?', \"a?\", 'it''s ?', ?", "SELECT '?', \"a?\", 'it''s ?', $1", ()),
        ("SELECT 1 -- why?\n, ?", "SELECT 1 -- why?\n, $1", ()),
        ("SELECT ?::VARCHAR[]", "SELECT $1::VARCHAR[]", ()),
        ("SELECT 1", "SELECT 1", ()),
    ],
)
def test_parameters_are_counted(text: str, sent: str, names: tuple[str, ...]) -> None:
    assert numbered(text) == (sent, names)


@given(st.lists(st.sampled_from(["?", "'?'", '"?"', "a", " ", "''", "-- ?\n", "="])))
def test_every_mark_outside_of_texts_has_its_number(parts: list[str]) -> None:
    # A blank between them, so that two quotes do not become one text.
    sent, _ = numbered(" ".join(parts))
    assert [int(each) for each in re.findall(r"\$(\d+)", sent)] == list(
        range(1, parts.count("?") + 1)
    )


@pytest.mark.parametrize(
    ("migration", "translated"),
    [
        ("a VARCHAR NOT NULL,", 'a VARCHAR COLLATE "C" NOT NULL,'),
        ("a VARCHAR[] NOT NULL", 'a VARCHAR[] COLLATE "C" NOT NULL'),
        ("b BLOB, c DOUBLE", "b BYTEA, c DOUBLE PRECISION"),
        (
            "SELECT uuid()::VARCHAR, CAST(x AS VARCHAR)",
            "SELECT uuid()::VARCHAR, CAST(x AS VARCHAR)",
        ),
        ("DEFAULT []", "DEFAULT '{}'"),
        ("DEFAULT [50, 80]", "DEFAULT ARRAY[50, 80]"),
        ("-- a BLOB\na BLOB", "a BYTEA"),
    ],
)
def test_types_of_migrations_are_translated(migration: str, translated: str) -> None:
    assert for_postgresql(migration) == translated

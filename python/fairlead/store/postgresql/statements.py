"""Differences between DuckDB and PostgreSQL, each with its reason. Nothing else in the package knows.

* Parameters are `?` or `$name` in our statements, as DuckDB takes them, and `$1` on PostgreSQL's wire. DuckDB takes
  `$1` too, but a list of conditions that is put together cannot know its numbers; so PostgreSQL's are counted here,
  once for each text.
* Functions that DuckDB has and PostgreSQL spells otherwise are made in the schema `fairlead` (`functions.sql`).
* Types of the migrations: PostgreSQL calls BLOB `bytea` and DOUBLE `double precision`. Texts are compared by bytes,
  as in DuckDB, and not by the rules of the database's language: an order must not depend on who made the database.
* Lists in migrations are `['a']`. PostgreSQL only has `ARRAY['a']`, and an empty list needs its type.
* Indexes: DuckDB scans columns and has none, PostgreSQL reads rows and locks what it read (`indexes.sql`).
* Sums of integers are `numeric` in PostgreSQL, which Python reads as Decimal; here they are integers, as in DuckDB.
* A statement that returns no rows has one in DuckDB, with the number of changed rows (`connection.py`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# Texts and comments are passed over, parameters are counted.
_PARTS: Final = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|(?P<mark>\?)|\$(?P<name>[A-Za-z_]\w*)"
)
_TYPES: Final = (
    (re.compile(r"\bBLOB\b"), "BYTEA"),
    (re.compile(r"\bDOUBLE\b"), "DOUBLE PRECISION"),
    # In definitions of columns, and not in casts.
    (re.compile(r"(?<!::)(?<!AS )\bVARCHAR\b(\[\])?"), r'VARCHAR\1 COLLATE "C"'),
    (re.compile(r"DEFAULT \[\]"), "DEFAULT '{}'"),
    (re.compile(r"(?<=[ (])\[([^\]]+)\]"), r"ARRAY[\1]"),
)
STATEMENTS_MAX: Final = 4096


@lru_cache(maxsize=STATEMENTS_MAX)
def numbered(text: str) -> tuple[str, tuple[str, ...]]:
    """The statement with `$1`, `$2` for its parameters, and the names of these where they have names."""
    names: list[str] = []
    count = 0

    def number(found: re.Match[str]) -> str:
        nonlocal count
        if found["mark"] is not None:
            count += 1
            return f"${count}"
        if (name := found["name"]) is None:
            return found[0]
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return _PARTS.sub(number, text), tuple(names)


def for_postgresql(migration: str) -> str:
    """A migration of DuckDB's in PostgreSQL's words."""
    # Comments first: they are prose, and may name anything.
    text = "\n".join(line for line in migration.splitlines() if not line.lstrip().startswith("--"))
    for pattern, replacement in _TYPES:
        text = pattern.sub(replacement, text)
    return text

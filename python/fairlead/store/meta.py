"""Single values of the state database: versions, the password's hash, the owner's id."""

from __future__ import annotations

from typing import Final

from fairlead.store.file import Connection

PURGED_BEFORE: Final = "usage_purged_before_ms"
"""The time before which an operator had single requests deleted at all nodes, in UTC milliseconds."""


def read_meta(con: Connection, name: str) -> str | None:
    """The value stored under `name`, or None."""
    row = con.execute("SELECT value FROM meta WHERE name = ?", [name]).fetchone()
    return None if row is None else str(row[0])


def write_meta(con: Connection, name: str, value: str) -> None:
    """Stores the value under `name`, in the writer."""
    if (
        con.execute(
            "UPDATE meta SET value = ? WHERE name = ? RETURNING 1", [value, name]
        ).fetchone()
        is None
    ):
        con.execute("INSERT INTO meta (name, value) VALUES (?, ?)", [name, value])


def count_up(con: Connection, name: str) -> int:
    """Adds one to a counter that starts at 0 and returns it, in the writer."""
    value = int(read_meta(con, name) or 0) + 1
    write_meta(con, name, str(value))
    return value

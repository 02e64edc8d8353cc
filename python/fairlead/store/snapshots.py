"""The newest snapshot that one of several controls has compiled, for the others."""

from __future__ import annotations

from fairlead.store.connection import Connection


def store_snapshot(con: Connection, version: int, document: bytes) -> None:
    """Stores a snapshot in place of the one before, in the writer."""
    con.execute("DELETE FROM published_snapshots")
    con.execute("INSERT INTO published_snapshots VALUES (?, ?)", [version, document])


def newer_snapshot(con: Connection, version: int) -> tuple[int, bytes] | None:
    """The stored snapshot, if it is above this version."""
    row = con.execute(
        "SELECT version, document FROM published_snapshots WHERE version > ?", [version]
    ).fetchone()
    return None if row is None else (int(row[0]), bytes(row[1]))

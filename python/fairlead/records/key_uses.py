"""When keys were last used: the table `key_uses` of the usage database, kept by ingestion."""

from __future__ import annotations

from fairlead.store.database import Database
from fairlead.store.file import Connection


async def read_last_uses(usage: Database, key_ids: list[str]) -> dict[str, int]:
    """UTC milliseconds of the newest settled request of each of these keys that was ever used; empty
    while the usage database cannot be read, which health tells.
    """
    if usage.fault is not None or not key_ids:
        return {}

    def read(con: Connection) -> dict[str, int]:
        rows = con.execute(
            "SELECT key_id, last_used_ms FROM key_uses WHERE key_id IN (SELECT unnest(?))",
            [key_ids],
        ).fetchall()
        return {key_id: int(at_ms) for key_id, at_ms in rows}

    return await usage.read(read)


def forget_other_uses(con: Connection, key_ids: list[str]) -> None:
    """Deletes the rows of keys that are none of these, in the writer."""
    con.execute("DELETE FROM key_uses WHERE key_id NOT IN (SELECT unnest(?))", [key_ids])

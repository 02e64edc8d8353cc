"""Up to where a usage database has followed the log that nodes share: its table `log_position`, of one row at most."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.store.file import Connection


@dataclass(frozen=True, slots=True)
class LogPosition:
    """The last segment that was taken from a log."""

    log_id: str
    position: int
    segment: str


def read_position(con: Connection) -> LogPosition | None:
    """The place, or None in a database that has followed no log."""
    row = con.execute("SELECT log_id, position, segment FROM log_place").fetchone()
    return None if row is None else LogPosition(str(row[0]), int(row[1]), str(row[2]))


def write_position(con: Connection, position: LogPosition) -> None:
    """Stores the place, in the transaction that stores the segment's records."""
    con.execute("DELETE FROM log_place")
    con.execute(
        "INSERT INTO log_place (log_id, position, segment) VALUES (?, ?, ?)",
        [position.log_id, position.position, position.segment],
    )

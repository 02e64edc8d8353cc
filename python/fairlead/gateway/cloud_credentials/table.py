"""The table `obtained_credentials`: when each credential that the gateway obtains ends, and is obtained next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.store.file import Connection
from fairlead.store.table import Table

# A credential that is younger was refused for another reason than its age.
REFUSED_AFTER_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class ObtainedCredential:
    """The row of a connection. `next_at_ms` is when its credential is obtained next, None if it does not end.
    `revision` counts the changes of the source: what an older source gave is not stored.
    """

    connection_id: str
    revision: int
    expires_at_ms: int | None = None
    obtained_at_ms: int | None = None
    next_at_ms: int | None = 0
    failures: int = 0
    last_error: str | None = None


_ROWS: Final = Table("obtained_credentials", ObtainedCredential)


def find_obtained(con: Connection, connection_id: str) -> ObtainedCredential | None:
    """The row of a connection."""
    return _ROWS.find(con, "connection_id = ?", connection_id)


def due_credentials(con: Connection, at_ms: int) -> list[ObtainedCredential]:
    """The credentials of active connections that are obtained at this moment: those whose time has come, and those
    that the provider refuses before they end.
    """
    return _ROWS.select(
        con,
        "WHERE connection_id IN (SELECT id FROM provider_connections WHERE is_active) AND (next_at_ms <= ? OR ("
        "failures = 0 AND obtained_at_ms < ? AND connection_id IN "
        "(SELECT connection_id FROM connection_states WHERE state = 'terminal' AND reason = 'expired'))"
        ") ORDER BY next_at_ms, connection_id",
        at_ms,
        at_ms - REFUSED_AFTER_MS,
    )


def awaited_connections(con: Connection) -> set[str]:
    """The ids of connections whose credential has not been obtained since they, or its source, changed."""
    rows = con.execute(
        "SELECT connection_id FROM obtained_credentials WHERE obtained_at_ms IS NULL"
    ).fetchall()
    return {str(row[0]) for row in rows}


def next_due_ms(con: Connection) -> int | None:
    """When the next credential is due, UTC milliseconds."""
    row = con.execute(
        "SELECT min(next_at_ms) FROM obtained_credentials "
        "WHERE connection_id IN (SELECT id FROM provider_connections WHERE is_active)"
    ).fetchone()
    return None if row is None else row[0]


def put_obtained(con: Connection, row: ObtainedCredential) -> None:
    """Stores the row in place of the connection's former one, in the writer."""
    drop_obtained(con, row.connection_id)
    _ROWS.insert(con, row)


def want_obtained(con: Connection, connection_id: str) -> None:
    """Makes the connection's credential due at once, in the writer: it is new, or its source has changed."""
    before = find_obtained(con, connection_id)
    revision = 1 if before is None else before.revision + 1
    put_obtained(con, ObtainedCredential(connection_id, revision))


def drop_obtained(con: Connection, connection_id: str) -> None:
    """Deletes the row of a connection that is deleted or has another kind of credential, in the writer."""
    con.execute("DELETE FROM obtained_credentials WHERE connection_id = ?", [connection_id])

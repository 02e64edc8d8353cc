"""The purposes of sealed secrets that share a record's id, and the step at start that binds older values to them.

A sealed value opens only with the associated data it was sealed with. If a record has two secrets, the id
alone would let somebody who can write to the database put one in place of the other.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.errors import Internal
from fairlead.store.file import Connection
from fairlead.store.meta import read_meta
from fairlead.store.sealer import Sealer

PENDING: Final = "seal_purposes"
"""The row of `meta` that migration 0048 writes: older values are not bound to their purpose yet."""


def refresh_token_of(connection_id: str) -> str:
    """The associated data of a provider connection's refresh token."""
    return f"refresh-token:{connection_id}"


def pending_totp_of(user_id: str) -> str:
    """The associated data of a second factor that is not confirmed yet."""
    return f"pending-totp:{user_id}"


_BOUND: Final = (
    ("provider_sign_ins", "connection_id", "refresh_sealed", refresh_token_of),
    ("users", "id", "totp_pending_sealed", pending_totp_of),
)


def bind_purposes(con: Connection, sealer: Sealer) -> None:
    """Seals older values for their purpose, once after migration 0048; in the writer, at start. A value that does
    not open stays as it is.
    """
    if read_meta(con, PENDING) is None:
        return
    for table, key, column, sealed_as in _BOUND:
        rows = con.execute(
            f"SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL"
        ).fetchall()
        for record_id, value in rows:
            plain = _opened(sealer, record_id, value)
            if plain is None:
                continue
            con.execute(
                f"UPDATE {table} SET {column} = ? WHERE {key} = ?",
                [sealer.seal(sealed_as(record_id), plain), record_id],
            )
    con.execute("DELETE FROM meta WHERE name = ?", [PENDING])


def _opened(sealer: Sealer, record_id: str, value: Any) -> bytes | None:
    try:
        return sealer.unseal(record_id, bytes(value))
    except Internal:
        # It was sealed with a lost key, which the use of it reports.
        return None

"""Stores a credential that was obtained, or the failure. Each function runs in the writer."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fairlead.gateway.cloud_credentials.obtained import Obtained
from fairlead.gateway.cloud_credentials.sources import filled
from fairlead.gateway.cloud_credentials.table import (
    ObtainedCredential,
    find_obtained,
    put_obtained,
)
from fairlead.gateway.providers.credentials import open_credentials, seal_credentials
from fairlead.gateway.providers.table import Connection, find_connection, update_connection
from fairlead.gateway.resilience.table import Clear, add_clear, read_persisted_states
from fairlead.moment import now_ms
from fairlead.store.file import Connection as Database
from fairlead.store.sealer import Sealer

# A credential is renewed so long before it ends, or after half of its life where that is shorter. Google's metadata
# server gives the same token again until four minutes before its end.
RENEW_BEFORE_MS: Final = 225_000
FAILED: Final = "error"
EXPIRED: Final = "expired"


def store_obtained(
    con: Database, sealer: Sealer, used: ObtainedCredential, obtained: Obtained
) -> bool:
    """Stores the credential; False where the connection or its source is another by now."""
    connection = _current(con, used)
    if connection is None:
        return False
    at_ms = now_ms()
    credentials = filled(open_credentials(sealer, connection), obtained)
    sealed = seal_credentials(sealer, connection.id, credentials)
    update_connection(con, _changed(connection, at_ms, sealed, failure=None))
    expires_at_ms = obtained.expires_at_ms
    next_at_ms = None
    if expires_at_ms is not None:
        life_ms = max(0, expires_at_ms - at_ms)
        next_at_ms = expires_at_ms - min(RENEW_BEFORE_MS, life_ms // 2)
    put_obtained(
        con,
        ObtainedCredential(connection.id, used.revision, expires_at_ms, at_ms, next_at_ms),
    )
    persisted = read_persisted_states(con).get(connection.id)
    if persisted is not None and persisted.reason == EXPIRED:
        # The provider refused the old credential; the new one has not been tried.
        add_clear(con, Clear(connection=connection.id))
    return True


def store_not_obtained(
    con: Database, used: ObtainedCredential, reason: str, next_at_ms: int
) -> bool:
    """Stores a failure and when the source is asked next; False where the connection or its source is another by
    now. A credential that has not ended stays in use.
    """
    connection = _current(con, used)
    if connection is None:
        return False
    failed = replace(used, failures=used.failures + 1, last_error=reason, next_at_ms=next_at_ms)
    put_obtained(con, failed)
    at_ms = now_ms()
    update_connection(con, _changed(connection, at_ms, None, failure=reason))
    return True


def _current(con: Database, used: ObtainedCredential) -> Connection | None:
    now = find_obtained(con, used.connection_id)
    if now is None or now.revision != used.revision:
        return None
    return find_connection(con, used.connection_id)


def _changed(
    connection: Connection, at_ms: int, sealed: bytes | None, *, failure: str | None
) -> Connection:
    if failure is not None:
        return replace(connection, test_status=FAILED, last_error=failure, last_error_at_ms=at_ms)
    updated_at_ms = max(at_ms, connection.updated_at_ms + 1)
    changed = replace(connection, credentials_sealed=sealed, updated_at_ms=updated_at_ms)
    if connection.test_status == FAILED:
        return replace(changed, test_status=None, last_error=None)
    return changed

"""Health of stored credentials, from their last tests and from the traffic since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairlead.store.file import Connection

# A failed test that is older counts as stale.
STALE_AFTER_MS = 86_400_000
FAILED_SHOWN = 50

_QUERY = """
SELECT id, name, provider, is_active, test_status, last_error, last_error_at_ms, last_tested_at_ms
FROM provider_connections ORDER BY priority, id
"""


@dataclass(frozen=True, slots=True)
class StoredConnection:
    id: str
    name: str
    provider: str
    is_active: bool
    test_status: str | None
    last_error: str | None
    last_error_at_ms: int | None
    last_tested_at_ms: int | None


@dataclass(frozen=True, slots=True)
class CredentialHealth:
    """Active connections by their last test.

    `stale` counts failures that are a day old or that traffic contradicts.
    """

    ok: int
    failed: list[StoredConnection]
    stale: int


def read_connections(con: Connection) -> list[StoredConnection]:
    """Every connection, the most preferred first."""
    return [StoredConnection(*row) for row in con.execute(_QUERY).fetchall()]


def assess_credentials(
    connections: list[StoredConnection], live: dict[str, dict[str, Any]], now_ms: int
) -> CredentialHealth:
    """Counts active connections by their last test. `live` has the workers' latest figures by
    connection id.
    """
    tested = [each for each in connections if each.is_active and each.test_status is not None]
    failed = [each for each in tested if each.test_status != "active"]
    stale = [
        each
        for each in failed
        if now_ms - (each.last_tested_at_ms or 0) > STALE_AFTER_MS
        or (live.get(each.id, {}).get("successes", 0) > 0 and not live[each.id].get("last_error"))
    ]
    return CredentialHealth(len(tested) - len(failed), failed, len(stale))

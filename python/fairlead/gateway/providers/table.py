"""The table `provider_connections`: one row per connection, its credential sealed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import structlog

from fairlead.store.file import Connection as Database
from fairlead.store.table import Table

log = structlog.get_logger("fairlead.gateway")


@dataclass(frozen=True, slots=True)
class Connection:
    """A row of the table. `provider` is a catalogue id or a node's id. `provider_specific` is
    `ProviderSpecific` in its JSON form. `models` is the list from the last successful test, None
    before. `api_key_tail` is the part of the key that may be shown.
    """

    id: str
    provider: str
    auth_type: str
    name: str
    display_name: str | None
    priority: int
    weight: int
    is_active: bool
    default_model: str | None
    max_concurrent: int | None
    requests_per_minute: int | None
    tokens_per_minute: int | None
    min_gap_ms: int | None
    queue_depth: int | None
    queue_timeout_ms: int | None
    quota_window_thresholds: dict[str, float] | None
    provider_specific: dict[str, Any]
    credentials_sealed: bytes | None
    api_key_tail: str | None
    test_status: str | None
    last_error: str | None
    last_error_at_ms: int | None
    last_tested_at_ms: int | None
    models: list[dict[str, Any]] | None
    created_at_ms: int
    updated_at_ms: int


_CONNECTIONS: Final = Table(
    "provider_connections",
    Connection,
    json={"provider_specific": dict, "quota_window_thresholds": dict, "models": list},
)
_BY_AGE: Final = "ORDER BY created_at_ms, id"


def insert_connection(con: Database, connection: Connection) -> None:
    """Adds a connection, in the writer."""
    _CONNECTIONS.insert(con, connection)


def update_connection(con: Database, connection: Connection) -> None:
    """Replaces a connection's row, in the writer."""
    _CONNECTIONS.update(con, connection)


def delete_connection(con: Database, connection_id: str) -> bool:
    """Removes a connection, in the writer; False when there is none."""
    query = "DELETE FROM provider_connections WHERE id = ? RETURNING 1"
    return con.execute(query, [connection_id]).fetchone() is not None


def find_connection(con: Database, connection_id: str) -> Connection | None:
    """The connection with this id."""
    return _CONNECTIONS.find(con, "id = ?", connection_id)


def list_connections(con: Database, limit: int, offset: int) -> list[Connection]:
    """Connections in the order of their making."""
    return _CONNECTIONS.select(con, f"{_BY_AGE} LIMIT ? OFFSET ?", limit, offset)


def connections_of(con: Database, provider: str) -> list[Connection]:
    """Every connection of a provider, in the order of their making."""
    return _CONNECTIONS.select(con, f"WHERE provider = ? {_BY_AGE}", provider)


def active_connections(con: Database) -> list[Connection]:
    """Active connections that can be read, the most preferred first; one that cannot is logged."""
    message = "a connection cannot be read"
    return _CONNECTIONS.select_readable(con, log, message, "WHERE is_active ORDER BY priority, id")


def forget_tests(con: Database, provider: str) -> None:
    """Deletes the test results of a provider's connections, in the writer, because its address has
    changed.
    """
    con.execute(
        "UPDATE provider_connections SET test_status = NULL, last_error = NULL, "
        "last_error_at_ms = NULL, models = NULL WHERE provider = ?",
        [provider],
    )


def set_priorities(con: Database, priorities: dict[str, int], at_ms: int) -> None:
    """Gives connections these priorities, in the writer."""
    con.executemany(
        "UPDATE provider_connections SET priority = ?, updated_at_ms = greatest(?, updated_at_ms + 1) WHERE id = ?",
        [[priority, at_ms, connection_id] for connection_id, priority in priorities.items()],
    )


def count_connections(con: Database) -> int:
    """How many connections there are."""
    return _CONNECTIONS.count(con)

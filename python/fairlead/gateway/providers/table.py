"""The table `provider_connections`: one row per connection, its credential sealed."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import orjson
import structlog

from fairlead.store.file import Connection as Database

log = structlog.get_logger("fairlead.gateway")

_COLUMNS = (
    "id",
    "provider",
    "auth_type",
    "name",
    "display_name",
    "priority",
    "weight",
    "is_active",
    "default_model",
    "max_concurrent",
    "requests_per_minute",
    "tokens_per_minute",
    "min_gap_ms",
    "queue_depth",
    "queue_timeout_ms",
    "quota_window_thresholds",
    "provider_specific",
    "credentials_sealed",
    "api_key_tail",
    "test_status",
    "last_error",
    "last_error_at_ms",
    "last_tested_at_ms",
    "models",
    "created_at_ms",
    "updated_at_ms",
)

_JSON = ("provider_specific", "quota_window_thresholds", "models")

# Built from the constants above: nothing that a caller sends becomes part of the statement.
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM provider_connections"
_INSERT = (
    f"INSERT INTO provider_connections ({', '.join(_COLUMNS)}) "
    f"VALUES ({', '.join('?' * len(_COLUMNS))})"
)
_UPDATE = (
    f"UPDATE provider_connections SET {', '.join(f'{c} = ?' for c in _COLUMNS[1:])} WHERE id = ?"
)


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


def insert_connection(con: Database, connection: Connection) -> None:
    """Adds a connection, in the writer."""
    con.execute(_INSERT, _written(connection))


def update_connection(con: Database, connection: Connection) -> None:
    """Replaces a connection's row, in the writer."""
    con.execute(_UPDATE, [*_written(connection)[1:], connection.id])


def delete_connection(con: Database, connection_id: str) -> bool:
    """Removes a connection, in the writer; False when there is none."""
    query = "DELETE FROM provider_connections WHERE id = ? RETURNING 1"
    return con.execute(query, [connection_id]).fetchone() is not None


def find_connection(con: Database, connection_id: str) -> Connection | None:
    """The connection with this id."""
    row = con.execute(f"{_SELECT} WHERE id = ?", [connection_id]).fetchone()
    return None if row is None else _read(row)


def list_connections(con: Database, limit: int, offset: int) -> list[Connection]:
    """Connections in the order of their making."""
    rows = con.execute(f"{_SELECT} ORDER BY created_at_ms, id LIMIT ? OFFSET ?", [limit, offset])
    return [_read(row) for row in rows.fetchall()]


def connections_of(con: Database, provider: str) -> list[Connection]:
    """Every connection of a provider, in the order of their making."""
    rows = con.execute(f"{_SELECT} WHERE provider = ? ORDER BY created_at_ms, id", [provider])
    return [_read(row) for row in rows.fetchall()]


def active_connections(con: Database) -> list[Connection]:
    """Active connections that can be read, the most preferred first; one that cannot is logged."""
    connections: list[Connection] = []
    for row in con.execute(f"{_SELECT} WHERE is_active ORDER BY priority, id").fetchall():
        try:
            connections.append(_read(row))
        except (ValueError, TypeError) as error:
            log.error("a connection cannot be read", id=row[0], error=type(error).__name__)
    return connections


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
    row = con.execute("SELECT count(*) FROM provider_connections").fetchone()
    return int(row[0]) if row else 0


def _written(connection: Connection) -> list[Any]:
    values = dict(zip(_COLUMNS, astuple(connection), strict=True))
    for name in _JSON:
        if values[name] is not None:
            values[name] = orjson.dumps(values[name]).decode()
    return list(values.values())


def _read(row: tuple[Any, ...]) -> Connection:
    values = dict(zip(_COLUMNS, row, strict=True))
    for name in _JSON:
        if values[name] is not None:
            values[name] = orjson.loads(values[name])
    return Connection(**values)

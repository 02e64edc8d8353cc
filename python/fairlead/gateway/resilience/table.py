"""The tables of resilience: the thresholds, the states that outlive a worker (`connection_states`),
and the resets that an operator asked for (`resilience_clears`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairlead.gateway.resilience.fields import ResilienceSettings
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.meta import count_up, read_meta, write_meta

SETTINGS = "resilience"
NEWEST_CLEAR = "resilience_clear"
# Resets that are remembered; a worker that missed more of them has been restarted anyway.
CLEARS_KEPT = 64


@dataclass(frozen=True, slots=True)
class PersistedState:
    """A stored state of a connection: `terminal` until its credential is replaced or an operator
    resets it, `quota-exhausted` until its reset.
    """

    connection_id: str
    state: str
    reason: str | None
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class Clear:
    """A reset that an operator asked for: of one provider, connection or model; None means every
    one. With a model (`*` means every one) only lockouts are reset.
    """

    provider: str | None = None
    connection: str | None = None
    model: str | None = None


def read_settings(con: Connection) -> ResilienceSettings:
    """The thresholds in force: stored values over defaults."""
    stored = read_meta(con, SETTINGS)
    if stored is None:
        return ResilienceSettings()
    return ResilienceSettings.model_validate_json(stored, by_alias=False, by_name=True)


def write_settings(con: Connection, settings: ResilienceSettings) -> None:
    """Stores the thresholds, in the writer."""
    write_meta(con, SETTINGS, settings.model_dump_json())


def read_persisted_states(con: Connection) -> dict[str, PersistedState]:
    """Every stored state that has not ended, by connection."""
    rows = con.execute(
        "SELECT connection_id, state, reason, until_ms FROM connection_states "
        "WHERE until_ms IS NULL OR until_ms > ?",
        [now_ms()],
    ).fetchall()
    return {row[0]: PersistedState(*row) for row in rows}


def put_persisted_state(con: Connection, state: PersistedState) -> None:
    """Stores a state in place of the one before, in the writer."""
    drop_persisted_state(con, state.connection_id)
    con.execute(
        "INSERT INTO connection_states (connection_id, state, reason, until_ms, since_ms) "
        "VALUES (?, ?, ?, ?, ?)",
        [state.connection_id, state.state, state.reason, state.until_ms, now_ms()],
    )


def drop_persisted_state(con: Connection, connection_id: str) -> None:
    """Deletes a connection's stored state, in the writer: it is deleted, works again, or has
    another credential.
    """
    con.execute("DELETE FROM connection_states WHERE connection_id = ?", [connection_id])


def add_clear(con: Connection, clear: Clear) -> int:
    """Stores a reset for the workers and deletes the states that it covers, in the writer; returns
    its number.
    """
    if clear.model is None:
        con.execute(
            "DELETE FROM connection_states WHERE (?::VARCHAR IS NULL OR connection_id = ?) AND "
            "(?::VARCHAR IS NULL OR connection_id IN "
            "(SELECT id FROM provider_connections WHERE provider = ?))",
            [clear.connection, clear.connection, clear.provider, clear.provider],
        )
    number = count_up(con, NEWEST_CLEAR)
    con.execute(
        "INSERT INTO resilience_clears (number, provider, connection, model, at_ms) "
        "VALUES (?, ?, ?, ?, ?)",
        [number, clear.provider, clear.connection, clear.model, now_ms()],
    )
    con.execute("DELETE FROM resilience_clears WHERE number <= ?", [number - CLEARS_KEPT])
    return number


def newest_clear(con: Connection) -> int:
    """The number of the latest reset; 0 when there was none."""
    return int(read_meta(con, NEWEST_CLEAR) or 0)


def compile_resilience(con: Connection) -> dict[str, Any]:
    """The section `resilience` of the snapshot."""
    rows = con.execute(
        "SELECT number, provider, connection, model FROM resilience_clears ORDER BY number"
    ).fetchall()
    names = ("number", "provider", "connection", "model")
    clears = [dict(zip(names, row, strict=True)) for row in rows]
    return {**read_settings(con).model_dump(), "clears": clears}


def add_persisted_states(con: Connection, connections: list[dict[str, Any]]) -> None:
    """Adds the stored states to the connections of the snapshot, as `held`."""
    persisted = read_persisted_states(con)
    for connection in connections:
        one = persisted.get(connection["id"])
        if one is not None:
            connection["held"] = {
                "state": one.state,
                "reason": one.reason,
                "until_ms": one.until_ms,
            }

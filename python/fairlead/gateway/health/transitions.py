"""Events when a connection begins to fail and when it serves again.

Relay workers report on the link, at least every two seconds, when each connection served and failed last, with
the last error. Connections that were announced as failed are stored, so any control that finds that one serves
again announces it, and none repeats an announcement.

    a worker's failure is later than what the workers of this control served -> `provider.error`, unless it is stored
    a worker of any control served after that                                -> `provider.recovered`, if it is stored

A connection that still fails at one control and serves at another is announced once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.gateway.health.credentials import StoredConnection, read_connections
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.store.services import BackgroundTask, Services

# Workers say on the link what has changed; this finds changes of a worker that is gone.
CHECK_EVERY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Failure:
    """The last failure of a connection at a worker."""

    kind: str
    at_ms: int


class HealthTransitions:
    """`check` emits events for connections that began to fail, and for those that serve again."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._failing: dict[tuple[str, str], Failure] = {}
        """By worker and connection, as they were reported last."""

    async def check(self) -> None:
        """Compares the latest reports of the workers with those before and with what is stored. Raises when the
        database does not answer; the change is then emitted by the next check.
        """
        failing, served = self._reported()
        began = {key[1]: failure for key, failure in failing.items() if key not in self._failing}
        stored = await self._services.state.read(_read_failing)
        ended = [each for each, since_ms in stored.items() if served.get(each, 0) > since_ms]
        if began.keys() - stored.keys() or ended:
            await self._services.state.record(lambda con: _emit_transitions(con, began, served))
        self._failing = failing

    def _reported(self) -> tuple[dict[tuple[str, str], Failure], dict[str, int]]:
        """The failures that no worker of this control has served after, and when each connection served last."""
        reports = [
            (report.worker_id, one)
            for report in self._services.workers()
            if report.live
            for one in report.stats.get("connections", ())
        ]
        served: dict[str, int] = {}
        for _, one in reports:
            served[one["id"]] = max(served.get(one["id"], 0), one.get("served_at_ms") or 0)
        failing = {
            (worker_id, one["id"]): Failure(one["last_error"], one.get("failed_at_ms") or 0)
            for worker_id, one in reports
            if one["last_error"] is not None
        }
        return {
            key: failure for key, failure in failing.items() if failure.at_ms >= served[key[1]]
        }, served


def _read_failing(con: Connection) -> dict[str, int]:
    """When each connection failed that was announced."""
    return dict(con.execute("SELECT connection_id, since_ms FROM failing_connections").fetchall())


def _emit_transitions(
    con: Connection, began: Mapping[str, Failure], served: Mapping[str, int]
) -> None:
    """Stores and announces changes, on top of those that other controls have stored meanwhile."""
    failing = _read_failing(con)
    known = {each.id: each for each in read_connections(con)}
    events: list[Event] = []
    for connection_id, since_ms in failing.items():
        connection = known.get(connection_id)
        # One that was deleted meanwhile was announced by its deletion.
        if connection is not None and served.get(connection_id, 0) <= since_ms:
            continue
        if connection is not None and connection_id in began:
            # It served, and failed again before the announcement.
            con.execute(
                "UPDATE failing_connections SET since_ms = ? WHERE connection_id = ?",
                [began[connection_id].at_ms, connection_id],
            )
            continue
        con.execute("DELETE FROM failing_connections WHERE connection_id = ?", [connection_id])
        if connection is not None:
            events.append(Event("provider.recovered", _event_data(connection)))
    for connection_id, failure in began.items():
        connection = known.get(connection_id)
        if connection_id in failing or connection is None:
            continue
        con.execute(
            "INSERT INTO failing_connections (connection_id, since_ms) VALUES (?, ?)",
            [connection_id, failure.at_ms],
        )
        data = {**_event_data(connection), "errorKind": failure.kind}
        events.append(Event("provider.error", data))
    emit(con, *events)


def _event_data(connection: StoredConnection) -> dict[str, Any]:
    return {"id": connection.id, "name": connection.name, "provider": connection.provider}


async def _watch(services: Services) -> None:
    transitions = HealthTransitions(services)
    while True:
        await transitions.check()
        await services.connections_changed(CHECK_EVERY_S)


TASKS = (BackgroundTask("health.turns", _watch),)

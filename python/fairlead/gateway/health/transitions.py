"""Events when a connection begins to fail and when it serves again.

Relay workers report the last error of each connection on the link, at least every two seconds; a
success clears it. The failing connections are remembered in this process only: after a restart of
control, a connection that still fails is announced again.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.gateway.health.credentials import StoredConnection, read_connections
from fairlead.gateway.health.reports import merge_reports
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.store.services import BackgroundTask, Services

# Workers say on the link what has changed; this finds changes of a worker that is gone.
CHECK_EVERY_S: Final = 10.0


class HealthTransitions:
    """The set of failing connections; `check` emits events for those that entered or left it."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._failing: dict[str, str] = {}

    async def check(self) -> None:
        """Compares the latest reports of the workers with the known failures. Raises when the
        database does not answer; the change is then emitted by the next check.
        """
        reports = merge_reports(each for each in self._services.workers() if each.live)
        failing = dict(self._failing)
        for connection_id, one in reports.items():
            if one["last_error"] is not None:
                failing.setdefault(connection_id, one["last_error"])
            elif one["successes"] > 0:
                failing.pop(connection_id, None)
        if failing.keys() == self._failing.keys():
            return
        before = self._failing
        await self._services.state.record(lambda con: _emit_transitions(con, before, failing))
        self._failing = failing


def _emit_transitions(con: Connection, before: dict[str, str], after: dict[str, str]) -> None:
    # A connection that was deleted meanwhile was announced by its deletion.
    stored = {each.id: each for each in read_connections(con)}
    began = [
        Event("provider.error", {**_event_data(stored[each]), "errorKind": after[each]})
        for each in after.keys() - before.keys()
        if each in stored
    ]
    ended = [
        Event("provider.recovered", _event_data(stored[each]))
        for each in before.keys() - after.keys()
        if each in stored
    ]
    emit(con, *began, *ended)


def _event_data(connection: StoredConnection) -> dict[str, Any]:
    return {"id": connection.id, "name": connection.name, "provider": connection.provider}


async def _watch(services: Services) -> None:
    transitions = HealthTransitions(services)
    while True:
        await transitions.check()
        await services.connections_changed(CHECK_EVERY_S)


TASKS = (BackgroundTask("health.turns", _watch),)

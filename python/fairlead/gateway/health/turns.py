"""When a connection begins to fail and when it serves again, as events.

Relay workers tell on the link, at least every two seconds, what the last error of each connection
was; a success clears it. What turned is known to this process only: after a restart of control a
connection that still fails is told of again.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.gateway.health.credentials import StoredConnection, read_connections
from fairlead.gateway.health.reports import merge_reports
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.store.services import BackgroundTask, Services

# Workers say on the link what has changed; this is for what they cannot say, as that one is gone.
LOOK_EVERY_S: Final = 10.0


class Turns:
    """Remembers which connections fail; `look` tells of those for which that has changed."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._failing: dict[str, str] = {}

    async def look(self) -> None:
        """One look at what workers said last. Raises when the database does not answer; what turned
        is told at the next look then.
        """
        said = merge_reports(each for each in self._services.workers() if each.live)
        failing = dict(self._failing)
        for connection_id, one in said.items():
            if one["last_error"] is not None:
                failing.setdefault(connection_id, one["last_error"])
            elif one["successes"] > 0:
                failing.pop(connection_id, None)
        if failing.keys() == self._failing.keys():
            return
        before = self._failing
        await self._services.state.record(lambda con: _tell(con, before, failing))
        self._failing = failing


def _tell(con: Connection, before: dict[str, str], after: dict[str, str]) -> None:
    # What is deleted meanwhile was told of by that.
    stored = {each.id: each for each in read_connections(con)}
    began = [
        Event("provider.error", {**_told(stored[each]), "errorKind": after[each]})
        for each in after.keys() - before.keys()
        if each in stored
    ]
    ended = [
        Event("provider.recovered", _told(stored[each]))
        for each in before.keys() - after.keys()
        if each in stored
    ]
    emit(con, *began, *ended)


def _told(connection: StoredConnection) -> dict[str, Any]:
    return {"id": connection.id, "name": connection.name, "provider": connection.provider}


async def _watch(services: Services) -> None:
    turns = Turns(services)
    while True:
        await turns.look()
        await services.connections_changed(LOOK_EVERY_S)


TASKS = (BackgroundTask("health.turns", _watch),)

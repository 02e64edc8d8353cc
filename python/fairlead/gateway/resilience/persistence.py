"""Stores the states of connections that must outlive a worker: `terminal` and `quota-exhausted`.

Relay workers report the state of each connection on the link. A report counts only for the version
of the record that it names: not after a change of the credential, and not after a reset that the
worker has not seen. A stored state goes into the snapshot, so that every worker knows it.

If several controls share a database, a quota that is stored as exhausted was announced by the control that
stored it. It is not over because the workers of another control do not know of it yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fairlead.gateway.resilience.table import (
    PersistedState,
    drop_persisted_state,
    newest_clear,
    put_persisted_state,
    read_persisted_states,
)
from fairlead.moment import iso, moment_of
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.store.services import BackgroundTask, Services, WorkerReport

# Workers say on the link what has changed; this finds changes of a worker that is gone.
CHECK_EVERY_S: Final = 10.0
PERSISTED_STATES: Final = frozenset({"terminal", "quota-exhausted"})
QUOTA_STATES: Final = frozenset({"quota-exhausted", "policy-blocked"})
# Two answers of a provider may give the same reset with this difference.
RESET_TOLERANCE_MS: Final = 5_000


class StatePersistence:
    """Remembers which exhausted quotas its workers reported; `check` stores and announces changes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._out: frozenset[str] = frozenset()

    async def check(self) -> None:
        """Compares the workers' latest reports with the stored states. Raises when the database
        does not answer.
        """
        reports = [each for each in self._services.workers() if each.live]
        if not reports:
            return
        persisted = await self._services.state.read(read_persisted_states)
        worst = _worst_reports(reports)
        news = {
            each: report
            for each, report in worst.items()
            if report[0]["state"] in PERSISTED_STATES or each in self._out
        }
        out = frozenset(
            each for each, (state, _) in worst.items() if state["state"] in QUOTA_STATES
        )
        is_due = _differs(persisted, news)
        began = out - self._out
        if not is_due and not began:
            self._out = out
            return

        def store(con: Connection) -> bool:
            before = read_persisted_states(con)
            _emit_quota_events(
                con,
                {
                    each: worst[each][0]
                    for each in began
                    if each not in before or before[each].state != worst[each][0]["state"]
                },
            )
            return _store_states(con, news)

        if await self._services.state.record(store):
            # Publishes a snapshot, so that every worker learns of it.
            await self._services.state.commit(_publish_only)
        self._out = out


def _worst_reports(reports: Iterable[WorkerReport]) -> dict[str, tuple[dict[str, Any], int]]:
    """The worst report on each connection, and the latest reset that its worker had seen."""
    order = ("active", "cooling", "policy-blocked", "quota-exhausted", "terminal")
    found: dict[str, tuple[dict[str, Any], int]] = {}
    for report in reports:
        for one in report.stats.get("connections", ()):
            known = found.get(one["id"])
            if known is None or order.index(one["state"]) > order.index(known[0]["state"]):
                found[one["id"]] = (one, report.stats.get("cleared", 0))
    return found


def _differs(
    persisted: dict[str, PersistedState], worst: dict[str, tuple[dict[str, Any], int]]
) -> bool:
    return any(
        _state_after(persisted.get(each), one) is not _UNCHANGED for each, (one, _) in worst.items()
    )


_UNCHANGED: Final = object()


def _state_after(persisted: PersistedState | None, one: dict[str, Any]) -> object:
    """The state to store after this report: a new one, None to delete it, `_UNCHANGED` to leave it."""
    if one["state"] in PERSISTED_STATES:
        until_ms = one.get("until_ms")
        wanted = PersistedState(one["id"], one["state"], one.get("reason"), until_ms)
        if persisted is None or persisted.state == "quota-exhausted" != wanted.state:
            return wanted
        is_later = abs((until_ms or 0) - (persisted.until_ms or 0)) > RESET_TOLERANCE_MS
        return (
            wanted
            if persisted.state == wanted.state == "quota-exhausted" and is_later
            else _UNCHANGED
        )
    # A terminal state ends only when an operator acts.
    return None if persisted is not None and persisted.state == "quota-exhausted" else _UNCHANGED


def _store_states(con: Connection, worst: dict[str, tuple[dict[str, Any], int]]) -> bool:
    """Stores the states that the reports changed; whether anything was stored or deleted."""
    is_changed = False
    cleared = newest_clear(con)
    rows = con.execute("SELECT id, updated_at_ms FROM provider_connections").fetchall()
    revisions = dict(rows)
    persisted = read_persisted_states(con)
    for connection_id, (one, seen_clear) in worst.items():
        is_of_now = revisions.get(connection_id) == one.get("revision") and seen_clear == cleared
        after = _state_after(persisted.get(connection_id), one)
        if not is_of_now or after is _UNCHANGED:
            continue
        is_changed = True
        if isinstance(after, PersistedState):
            put_persisted_state(con, after)
        else:
            drop_persisted_state(con, connection_id)
    return is_changed


def _emit_quota_events(con: Connection, began: dict[str, dict[str, Any]]) -> None:
    if not began:
        return
    rows = con.execute("SELECT id, name, provider FROM provider_connections").fetchall()
    emit(
        con,
        *(
            Event(
                "quota.exceeded",
                {
                    "scope": "connection",
                    "id": connection_id,
                    "name": name,
                    "provider": provider,
                    "reason": began[connection_id]["state"],
                    "resetsAt": _moment(began[connection_id].get("until_ms")),
                },
            )
            for connection_id, name, provider in rows
            if connection_id in began
        ),
    )


def _moment(ms: int | None) -> str | None:
    return None if ms is None else iso(moment_of(ms))


def _publish_only(con: Connection) -> None:
    """Writes nothing: the commit publishes what `record` wrote."""


async def _watch(services: Services) -> None:
    watch = StatePersistence(services)
    while True:
        await watch.check()
        await services.connections_changed(CHECK_EVERY_S)


TASKS = (BackgroundTask("resilience.states", _watch),)

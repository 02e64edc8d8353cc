"""Keeps what must outlive a worker: that a connection is of no more use, or has no quota left.

Relay workers tell the state of each connection on the link. What they say counts for the record that
they say it of: not for a credential that was changed since, nor for what an operator has had
forgotten since. A kept state goes into the snapshot, so every worker knows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fairlead.gateway.resilience.table import (
    Held,
    drop_held,
    newest_clear,
    put_held,
    read_held,
)
from fairlead.moment import iso, moment_of
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.store.services import BackgroundTask, Services, WorkerReport

# Workers say on the link what has changed; this is for what they cannot say, as that one is gone.
LOOK_EVERY_S: Final = 10.0
KEPT: Final = frozenset({"terminal", "quota-exhausted"})
QUOTA: Final = frozenset({"quota-exhausted", "policy-blocked"})
# The same reset told by two answers differs by so much.
SAME_MS: Final = 5_000


class Watch:
    """Remembers which quotas were told of; `look` keeps and tells what has changed."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._out: frozenset[str] = frozenset()

    async def look(self) -> None:
        """One look at what workers said last. Raises when the database does not answer."""
        reports = [each for each in self._services.workers() if each.live]
        if not reports:
            return
        held = await self._services.state.read(read_held)
        said = _said(reports)
        out = frozenset(each for each, (state, _) in said.items() if state["state"] in QUOTA)
        is_due = _differs(held, said)
        began = out - self._out
        if not is_due and not began:
            self._out = out
            return

        def work(con: Connection) -> bool:
            _tell(con, {each: said[each][0] for each in began})
            return _keep(con, said)

        if await self._services.state.record(work):
            # Every worker is to know.
            await self._services.state.commit(_nothing)
        self._out = out


def _said(reports: Iterable[WorkerReport]) -> dict[str, tuple[dict[str, Any], int]]:
    """The gravest word on each connection, and the last clear of the worker that said it."""
    order = ("active", "cooling", "policy-blocked", "quota-exhausted", "terminal")
    found: dict[str, tuple[dict[str, Any], int]] = {}
    for report in reports:
        for one in report.stats.get("connections", ()):
            known = found.get(one["id"])
            if known is None or order.index(one["state"]) > order.index(known[0]["state"]):
                found[one["id"]] = (one, report.stats.get("cleared", 0))
    return found


def _differs(held: dict[str, Held], said: dict[str, tuple[dict[str, Any], int]]) -> bool:
    return any(_next(held.get(each), one) is not _SAME for each, (one, _) in said.items())


_SAME: Final = object()


def _next(held: Held | None, one: dict[str, Any]) -> object:
    """What is to be kept after this word: a state, None for nothing, `_SAME` for what is kept."""
    if one["state"] in KEPT:
        until_ms = one.get("until_ms")
        wanted = Held(one["id"], one["state"], one.get("reason"), until_ms)
        if held is None or held.state == "quota-exhausted" != wanted.state:
            return wanted
        is_later = abs((until_ms or 0) - (held.until_ms or 0)) > SAME_MS
        return wanted if held.state == wanted.state == "quota-exhausted" and is_later else _SAME
    # Nobody but an operator ends what is terminal.
    return None if held is not None and held.state == "quota-exhausted" else _SAME


def _keep(con: Connection, said: dict[str, tuple[dict[str, Any], int]]) -> bool:
    """Whether anything is kept now that was not, or the other way round."""
    is_changed = False
    cleared = newest_clear(con)
    rows = con.execute("SELECT id, updated_at_ms FROM provider_connections").fetchall()
    revisions = dict(rows)
    held = read_held(con)
    for connection_id, (one, seen_clear) in said.items():
        is_of_now = revisions.get(connection_id) == one.get("revision") and seen_clear == cleared
        after = _next(held.get(connection_id), one)
        if not is_of_now or after is _SAME:
            continue
        is_changed = True
        if isinstance(after, Held):
            put_held(con, after)
        else:
            drop_held(con, connection_id)
    return is_changed


def _tell(con: Connection, began: dict[str, dict[str, Any]]) -> None:
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


def _nothing(con: Connection) -> None:
    """Nothing to write: what was recorded is to be published."""


async def _watch(services: Services) -> None:
    watch = Watch(services)
    while True:
        await watch.look()
        await services.connections_changed(LOOK_EVERY_S)


TASKS = (BackgroundTask("resilience.states", _watch),)

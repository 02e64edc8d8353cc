"""Stores what relay workers report of callers that they refused."""

from __future__ import annotations

from typing import Any, Final

import structlog
from pydantic import TypeAdapter, ValidationError

from fairlead.moment import now_ms
from fairlead.records.refused_callers import (
    RETENTION_MS,
    RefusedCallers,
    delete_counts_before,
    replace_counts,
)
from fairlead.store.file import Connection
from fairlead.store.services import Services

LOOK_EVERY_S: Final = 2.0
DELETE_EVERY_MS: Final = 3_600_000
MEMBER: Final = "refused_callers"

_COUNTS: Final = TypeAdapter(list[RefusedCallers])

log = structlog.get_logger("fairlead.usage")


class RefusedCallersIntake:
    """Takes in the reports of all workers; `_stored` has the last report of each that is stored."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._stored: dict[str, list[Any]] = {}
        self._deleted_at_ms = 0

    async def delete_old(self) -> None:
        """Deletes counts after their retention, once an hour, even if no new ones arrive."""
        at_ms = now_ms()
        if at_ms - self._deleted_at_ms >= DELETE_EVERY_MS:
            self._deleted_at_ms = at_ms
            await self._services.state.database.write(
                lambda con: delete_counts_before(con, at_ms - RETENTION_MS)
            )

    async def store_news(self) -> None:
        """Stores the counts that have changed since the last look."""
        reports = {
            report.worker_id: report.stats.get(MEMBER, []) for report in self._services.workers()
        }
        self._stored = {each: known for each, known in self._stored.items() if each in reports}
        news = {
            worker_id: counts
            for worker_id, sent in reports.items()
            if (changed := _changed_minutes(sent, self._stored.get(worker_id, [])))
            and (counts := _read(worker_id, changed))
        }
        if news:
            await self._services.state.database.write(lambda con: _store(con, news))
        self._stored |= {worker_id: sent for worker_id, sent in reports.items() if sent}


def _changed_minutes(sent: list[Any], stored: list[Any]) -> list[Any]:
    """The counts of minutes that differ from the last report: an attack changes one minute out of five."""
    if sent == stored:
        return []
    known = _by_minute(stored)
    changed = [counts for minute, counts in _by_minute(sent).items() if counts != known.get(minute)]
    return [count for counts in changed for count in counts]


def _by_minute(counts: list[Any]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for count in counts:
        found.setdefault(count.get("minute_ms") if isinstance(count, dict) else None, []).append(
            count
        )
    return found


def _read(worker_id: str, sent: list[Any]) -> list[RefusedCallers]:
    try:
        return _COUNTS.validate_python(sent)
    except ValidationError as error:
        log.error("a report of refused callers cannot be read", worker=worker_id, error=str(error))
        return []


def _store(con: Connection, news: dict[str, list[RefusedCallers]]) -> None:
    for worker_id, counts in news.items():
        replace_counts(con, worker_id, counts)
    delete_counts_before(con, now_ms() - RETENTION_MS)


async def run_intake(services: Services) -> None:
    """Stores counts as they are reported; runs until it is cancelled."""
    intake = RefusedCallersIntake(services)
    while True:
        await intake.store_news()
        await intake.delete_old()
        await services.connections_changed(LOOK_EVERY_S)

"""Runs jobs: takes up every one that has not ended, in the order of its age, a task for each. One runner for the
process.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import Final

import structlog

from fairlead.errors import FairleadError, OwnerStorageFull, StorageFull
from fairlead.moment import now_ms
from fairlead.scrape.agent.run import AgentRun
from fairlead.scrape.cache import sweep_cache
from fairlead.scrape.change_tracking import sweep_fingerprints
from fairlead.scrape.css.table import sweep_css_schemas
from fairlead.scrape.jobs.completion import conclude
from fairlead.scrape.jobs.listener import sweep_listeners
from fairlead.scrape.jobs.pages_run import PagesRun
from fairlead.scrape.jobs.table import (
    Job,
    Kind,
    active_jobs,
    count_pages,
    forget_orphans,
    job_with_options,
    sweep_jobs,
)
from fairlead.scrape.map.cache import sweep_maps
from fairlead.scrape.scraper import Scraper, scraper_of
from fairlead.store.call_windows import sweep_call_windows
from fairlead.store.file import Connection
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.owner_bytes import MIB, count_bytes
from fairlead.store.runner import Runner
from fairlead.store.services import Services

JOBS_AT_ONCE: Final = 16
# Jobs of a kind that run at once, in all and of one key: an agent has a browser session, of which there are few.
OF_KIND_AT_ONCE: Final[dict[Kind, tuple[int, int]]] = {"agent": (3, 2)}
JOB_DEADLINE_S: Final = 6 * 3600.0
RETRY_S: Final = 2.0

log = structlog.get_logger("fairlead.scrape")


class JobRunner(Runner[Job]):
    """The runner of every kind of job. Routes call `wake`, `stop` and `wait_for_change`."""

    kind = "job"
    at_once = JOBS_AT_ONCE

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._scraper: Scraper = scraper_of(services)
        self._kinds: Counter[Kind] = Counter()
        self._of_owners: Counter[tuple[Kind, str]] = Counter()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            await self._scraper.close()
            self.services.discard(Scraper)

    async def active(self) -> list[Job]:
        return await self.services.state.read(active_jobs)

    def owner_of(self, item: Job) -> str:
        return item.owner

    def key_of(self, item: Job) -> str | None:
        return item.owner

    async def steps_of(self, items: list[Job]) -> dict[str, int]:
        ids = [item.id for item in items]
        return await self.services.state.read(lambda con: count_pages(con, ids))

    async def revoke(self, item: Job, reason: str) -> None:
        await self._end(item, "failed", reason)
        self.stop(item.id)

    async def sweep(self) -> None:
        await self.services.state.database.write(_sweep)

    def stop(self, item_id: str) -> None:
        super().stop(item_id)
        self._announce_change()

    async def wait_for_change(self, within_s: float) -> None:
        """Waits until some job has changed, at most `within_s`."""
        changed = self._changed
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await changed.wait()

    def _announce_change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def has_capacity(self, item: Job) -> bool:
        most, own = OF_KIND_AT_ONCE.get(item.kind, (JOBS_AT_ONCE, JOBS_AT_ONCE))
        return self._kinds[item.kind] < most and self._of_owners[item.kind, item.owner] < own

    def began(self, item: Job) -> None:
        self._kinds[item.kind] += 1
        self._of_owners[item.kind, item.owner] += 1

    def ended(self, item: Job) -> None:
        self._kinds[item.kind] -= 1
        self._of_owners[item.kind, item.owner] -= 1
        # Drops keys whose count is 0, so that the table does not grow with every key.
        self._of_owners += Counter()
        self._announce_change()

    async def process(self, job: Job) -> None:
        try:
            job = await self.services.state.read(lambda con: job_with_options(con, job))
            run = AgentRun if job.kind == "agent" else PagesRun
            async with asyncio.timeout(JOB_DEADLINE_S):
                await run(self.services, self._scraper, job, self._announce_change).run()
        except TimeoutError:
            await self._end(
                job, "failed", f"The job was not done within {JOB_DEADLINE_S / 3600:g} h."
            )
        except (OwnerStorageFull, StorageFull) as error:
            await self._end(job, "failed", error.message)
        except FairleadError as error:
            # The database does not answer: the job keeps its rows, and is taken up again.
            log.error("job interrupted", job=job.id, error=error.kind)
            await asyncio.sleep(RETRY_S)
        except Exception as error:  # noqa: BLE001 - a defect ends this job, not the others
            log.error("job failed", job=job.id, error=type(error).__name__)
            await self._end(job, "failed", "This is a defect of fairlead; its log has more.")

    async def give_up(self, job: Job, reason: str) -> None:
        await self._end(job, "failed", reason)
        self._announce_change()

    async def _end(self, job: Job, status: str, error: str | None) -> None:
        await self.services.state.record(lambda con: conclude(con, job, status, error))


def _sweep(con: Connection) -> None:
    at_ms = now_ms()
    forget_orphans(con)
    sweep_jobs(con, at_ms)
    sweep_listeners(con)
    sweep_cache(con, at_ms, read_operator_settings(con).scrape_cache_mb * MIB)
    sweep_maps(con, at_ms)
    sweep_css_schemas(con, at_ms)
    sweep_fingerprints(con, at_ms)
    sweep_call_windows(con)
    count_bytes(con)

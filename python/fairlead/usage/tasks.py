"""The background tasks of usage."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from fairlead.store.arrivals import Arrivals
from fairlead.store.services import BackgroundTask, Services
from fairlead.store.spool_watch import SpoolWatch
from fairlead.usage.bodies.body_keeping import body_keeper_of
from fairlead.usage.ingestion.refused_callers import run_intake
from fairlead.usage.ingestion.retention import run_merging, run_retention
from fairlead.usage.ingestion.shared_log import SharedLog, store_of
from fairlead.usage.telemetry.traces import traces_of

if TYPE_CHECKING:
    import polars as pl

    from fairlead.store.database import Database
    from fairlead.store.state import State
    from fairlead.usage.ingestion.ingest import Ingest
    from fairlead.usage.ingestion.segment_store import SegmentStore


def _intake(
    services: Services,
) -> tuple[
    Callable[[State, Database, Sequence[pl.DataFrame]], Awaitable[None]], type[Ingest], SegmentStore
]:
    """The ingestion task. It is imported on first use, because polars is large."""
    from fairlead.usage.budgets.announce import announce  # noqa: PLC0415
    from fairlead.usage.ingestion.ingest import Ingest  # noqa: PLC0415

    return announce, Ingest, store_of(services)


async def _ingest(services: Services) -> None:
    spool_dir = services.data_dir / "spool"
    with SpoolWatch(spool_dir) as watch:
        await watch.wait_for_segment()
    announce, ingest, store = await asyncio.to_thread(_intake, services)
    traces, arrivals = traces_of(services), services.singleton(Arrivals, Arrivals)

    async def notify_subscribers(batches: Sequence[pl.DataFrame]) -> None:
        arrivals.announce()
        await announce(services.state, services.usage, batches)
        traces.offer(batches)

    rounds = ingest(store, spool_dir, notify_subscribers, SharedLog.of(services))
    rounds.wanted = arrivals.wanted
    await rounds.run()


async def _log(services: Services) -> None:
    shared = SharedLog.of(services)
    if shared is None:
        raise LookupError("a single node has no log of usage")
    await shared.run()


async def _retention(services: Services) -> None:
    await run_retention(services.state, services.usage)


async def _traces(services: Services) -> None:
    await traces_of(services).run()


async def _merging(services: Services) -> None:
    await run_merging(services.usage)


async def _bodies(services: Services) -> None:
    await body_keeper_of(services).run()


TASKS = (
    BackgroundTask("usage.ingest", _ingest),
    BackgroundTask("usage.log", _log),
    BackgroundTask("usage.retention", _retention),
    BackgroundTask("usage.merging", _merging),
    BackgroundTask("usage.traces", _traces),
    BackgroundTask("usage.bodies", _bodies),
    BackgroundTask("usage.refused-callers", run_intake),
)

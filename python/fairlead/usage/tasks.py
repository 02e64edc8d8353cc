"""The background tasks of usage."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from fairlead.store.arrivals import Arrivals
from fairlead.store.services import BackgroundTask, Services
from fairlead.usage.body_keeping import body_keeper_of
from fairlead.usage.retention import run_merging, run_retention
from fairlead.usage.spool_watch import SpoolWatch
from fairlead.usage.traces import traces_of

if TYPE_CHECKING:
    import polars as pl

    from fairlead.store.database import Database
    from fairlead.store.state import State
    from fairlead.usage.closed_bins import ClosedBins
    from fairlead.usage.ingest import Ingest


def _intake() -> tuple[
    Callable[[State, Database, Sequence[pl.DataFrame]], Awaitable[None]],
    type[Ingest],
    type[ClosedBins],
]:
    """The ingestion task. It is imported on first use, because polars is large."""
    from fairlead.usage.announce import announce  # noqa: PLC0415
    from fairlead.usage.closed_bins import ClosedBins  # noqa: PLC0415
    from fairlead.usage.ingest import Ingest  # noqa: PLC0415

    return announce, Ingest, ClosedBins


async def _ingest(services: Services) -> None:
    spool_dir = services.data_dir / "spool"
    with SpoolWatch(spool_dir) as watch:
        await watch.wait_for_segment()
    announce, ingest, closed_bins = await asyncio.to_thread(_intake)
    closed = services.singleton(closed_bins, closed_bins)
    traces, arrivals = traces_of(services), services.singleton(Arrivals, Arrivals)

    async def notify_subscribers(batches: Sequence[pl.DataFrame]) -> None:
        for rows in batches:
            times: list[int] = rows["ts_ms"].to_list()
            if times:
                closed.forget(min(times), max(times) + 1)
        arrivals.announce()
        await announce(services.state, services.usage, batches)
        traces.offer(batches)

    await ingest(services.usage, spool_dir, notify_subscribers).run()


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
    BackgroundTask("usage.retention", _retention),
    BackgroundTask("usage.merging", _merging),
    BackgroundTask("usage.traces", _traces),
    BackgroundTask("usage.bodies", _bodies),
)

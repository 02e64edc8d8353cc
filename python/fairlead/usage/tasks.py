"""The background tasks of usage."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from fairlead.store.services import BackgroundTask, Services
from fairlead.usage.announce import announce
from fairlead.usage.ingest import Ingest
from fairlead.usage.retention import run_merging, run_retention
from fairlead.usage.traces import traces_of


async def _ingest(services: Services) -> None:
    traces = traces_of(services)

    async def notify_subscribers(batches: Sequence[pl.DataFrame]) -> None:
        await announce(services.state, batches)
        traces.offer(batches)

    await Ingest(services.usage, services.data_dir / "spool", notify_subscribers).run()


async def _retention(services: Services) -> None:
    await run_retention(services.state, services.usage)


async def _traces(services: Services) -> None:
    await traces_of(services).run()


async def _merging(services: Services) -> None:
    await run_merging(services.usage)


TASKS = (
    BackgroundTask("usage.ingest", _ingest),
    BackgroundTask("usage.retention", _retention),
    BackgroundTask("usage.merging", _merging),
    BackgroundTask("usage.traces", _traces),
)

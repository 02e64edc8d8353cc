"""What control keeps running for usage."""

from __future__ import annotations

from functools import partial

from fairlead.store.services import BackgroundTask, Services
from fairlead.usage.announce import announce
from fairlead.usage.ingest import Ingest
from fairlead.usage.retention import run_merging, run_retention


async def _ingest(services: Services) -> None:
    tell = partial(announce, services.state)
    await Ingest(services.usage, services.data_dir / "spool", tell).run()


async def _retention(services: Services) -> None:
    await run_retention(services.state, services.usage)


async def _merging(services: Services) -> None:
    await run_merging(services.usage)


TASKS = (
    BackgroundTask("usage.ingest", _ingest),
    BackgroundTask("usage.retention", _retention),
    BackgroundTask("usage.merging", _merging),
)

"""What control keeps running for usage."""

from __future__ import annotations

from fairlead.store.services import BackgroundTask, Services
from fairlead.usage.ingest import Ingest
from fairlead.usage.retention import run_retention


async def _ingest(services: Services) -> None:
    await Ingest(services.usage, services.data_dir / "spool").run()


async def _retention(services: Services) -> None:
    await run_retention(services.state, services.usage)


TASKS = (
    BackgroundTask("usage.ingest", _ingest),
    BackgroundTask("usage.retention", _retention),
)

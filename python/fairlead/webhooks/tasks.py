"""The background tasks of webhooks."""

from __future__ import annotations

from fairlead.calls.origin import public_base
from fairlead.store.services import BackgroundTask, Services
from fairlead.webhooks.retention import run_retention
from fairlead.webhooks.worker import Worker


async def _deliver(services: Services) -> None:
    worker = Worker(
        services.state,
        services.egress,
        issuer=public_base(services.config),
        leases=services.leases,
    )
    await worker.run()


async def _retention(services: Services) -> None:
    await run_retention(services.state)


TASKS = (
    BackgroundTask("webhooks.deliver", _deliver),
    BackgroundTask("webhooks.retention", _retention),
)

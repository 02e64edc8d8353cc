"""The background tasks of webhooks."""

from __future__ import annotations

from fairlead.origin import public_base
from fairlead.store.services import BackgroundTask, Services
from fairlead.webhooks.retention import run_retention
from fairlead.webhooks.worker import Worker


async def _deliver(services: Services) -> None:
    await Worker(services.state, services.egress, issuer=public_base(services.config)).run()


async def _retention(services: Services) -> None:
    await run_retention(services.state)


TASKS = (
    BackgroundTask("webhooks.deliver", _deliver),
    BackgroundTask("webhooks.retention", _retention),
)

"""What control keeps running for batches."""

from __future__ import annotations

from fairlead.gateway.batches.runner import Runner, runner_of
from fairlead.store.services import BackgroundTask, Services


async def _batches(services: Services) -> None:
    try:
        await runner_of(services).run()
    finally:
        # Another start makes everything anew.
        services.rooms.pop(Runner, None)


TASKS = (BackgroundTask("gateway.batches", _batches),)

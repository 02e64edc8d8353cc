"""The console's background task."""

from __future__ import annotations

from fairlead.dashboard.live import LivePages
from fairlead.store.services import BackgroundTask, Services


async def _live(services: Services) -> None:
    await services.singleton(LivePages, LivePages).follow(services)


TASKS = (BackgroundTask("dashboard.live", _live),)

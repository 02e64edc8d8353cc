"""What control keeps running for agents."""

from __future__ import annotations

from fairlead.agents.runner import running
from fairlead.store.services import BackgroundTask, Services


async def _tasks(services: Services) -> None:
    async with running(services) as runner:
        await runner.run()


TASKS = (BackgroundTask("agents.tasks", _tasks),)
"""Work on the tasks of agents."""

"""What control keeps running for scraping."""

from __future__ import annotations

from fairlead.scrape.browser.router import expiring
from fairlead.scrape.jobs.runner import running
from fairlead.scrape.quota import writing_down
from fairlead.store.services import BackgroundTask, Services


async def _jobs(services: Services) -> None:
    async with running(services) as runner:
        await runner.run()


TASKS = (
    BackgroundTask("scrape.jobs", _jobs),
    BackgroundTask("scrape.sessions", expiring),
    BackgroundTask("scrape.calls", writing_down),
)

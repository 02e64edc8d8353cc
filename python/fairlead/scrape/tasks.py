"""What control keeps running for scraping."""

from __future__ import annotations

from fairlead.scrape.browser.router import expiring
from fairlead.scrape.jobs.runner import JobRunner
from fairlead.scrape.quota import writing_down
from fairlead.store.services import BackgroundTask

TASKS = (
    BackgroundTask("scrape.jobs", JobRunner.run_one),
    BackgroundTask("scrape.sessions", expiring),
    BackgroundTask("scrape.calls", writing_down),
)

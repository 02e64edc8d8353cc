"""Background tasks of scraping, which control keeps running."""

from __future__ import annotations

from fairlead.scrape.browser.router import expire_sessions
from fairlead.scrape.jobs.runner import JobRunner
from fairlead.scrape.limits.quota import store_daily_calls
from fairlead.store.services import BackgroundTask

TASKS = (
    BackgroundTask("scrape.jobs", JobRunner.run_one),
    BackgroundTask("scrape.sessions", expire_sessions),
    BackgroundTask("scrape.calls", store_daily_calls),
)

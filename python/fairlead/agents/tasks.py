"""The background tasks of this package."""

from __future__ import annotations

from fairlead.agents.runner import TaskRunner
from fairlead.store.services import BackgroundTask

TASKS = (BackgroundTask("agents.tasks", TaskRunner.run_one),)
"""Work on the tasks of agents."""

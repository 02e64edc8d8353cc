"""The background task that runs batches."""

from __future__ import annotations

from fairlead.gateway.batches.runner import BatchRunner
from fairlead.store.services import BackgroundTask

TASKS = (BackgroundTask("gateway.batches", BatchRunner.run_one),)

"""What control keeps running for batches."""

from __future__ import annotations

from fairlead.gateway.batches.runner import BatchRunner
from fairlead.store.services import BackgroundTask

TASKS = (BackgroundTask("gateway.batches", BatchRunner.run_one),)

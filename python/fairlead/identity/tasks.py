"""What identity has done in the background: expired sessions are deleted."""

from __future__ import annotations

import asyncio
import time

from fairlead.identity.sessions import sweep_sessions
from fairlead.store.services import BackgroundTask, Services

SWEEP_EVERY_S = 3600.0


async def _sweep(services: Services) -> None:
    while True:
        # Expiry itself is held by the relay, so nothing waits for a snapshot without them.
        await services.state.database.write(
            lambda con: sweep_sessions(con, time.time_ns() // 1_000_000)
        )
        await asyncio.sleep(SWEEP_EVERY_S)


TASKS = (BackgroundTask("session-sweep", _sweep),)

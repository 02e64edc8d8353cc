"""What identity has done in the background: expired sessions are deleted."""

from __future__ import annotations

import asyncio

from fairlead.identity.oauth.tasks import TASKS as OAUTH_TASKS
from fairlead.identity.sessions import sweep_sessions
from fairlead.moment import now_ms
from fairlead.store.services import BackgroundTask, Services

SWEEP_EVERY_S = 3600.0


async def _sweep(services: Services) -> None:
    while True:
        # Expiry itself is held by the relay, so nothing waits for a snapshot without them.
        await services.state.database.write(lambda con: sweep_sessions(con, now_ms()))
        await asyncio.sleep(SWEEP_EVERY_S)


TASKS = (BackgroundTask("session-sweep", _sweep), *OAUTH_TASKS)

"""The background task of identity: deleting expired sessions."""

from __future__ import annotations

import asyncio

from fairlead.identity.oauth.tasks import TASKS as OAUTH_TASKS
from fairlead.identity.sessions import sweep_sessions
from fairlead.moment import now_ms
from fairlead.store.services import BackgroundTask, Services

SWEEP_EVERY_S = 3600.0


async def _sweep(services: Services) -> None:
    while True:
        # The relay checks the expiry itself, so no new snapshot is needed.
        await services.state.database.write(lambda con: sweep_sessions(con, now_ms()))
        await asyncio.sleep(SWEEP_EVERY_S)


TASKS = (BackgroundTask("session-sweep", _sweep), *OAUTH_TASKS)

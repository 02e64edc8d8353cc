"""The background task of the authorization server: deleting expired records."""

from __future__ import annotations

import asyncio

from fairlead.identity.oauth.service import oauth_service
from fairlead.store.services import BackgroundTask, Services

SWEEP_EVERY_S = 600.0


async def _sweep(services: Services) -> None:
    while True:
        await oauth_service(services).ledger.sweep()
        await asyncio.sleep(SWEEP_EVERY_S)


TASKS = (BackgroundTask("oauth-sweep", _sweep),)

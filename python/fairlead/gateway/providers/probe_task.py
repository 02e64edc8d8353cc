"""The task that tests credentials by the clock.

The code that calls providers is imported only if the operator turns this on, since most do not.
"""

from __future__ import annotations

import asyncio
from typing import Final

from fairlead.moment import now_ms
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.services import BackgroundTask, Services

LOOK_EVERY_S: Final = 30.0


async def run_probes(services: Services) -> None:
    """Tests what is due; runs until it is cancelled."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        settings = await services.state.read(read_operator_settings)
        if settings.credential_probe_minutes == 0:
            continue
        from fairlead.gateway.providers.prober import probe_due  # noqa: PLC0415

        await probe_due(services, now_ms())


TASKS = (BackgroundTask("providers.probes", run_probes),)

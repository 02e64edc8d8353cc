"""The background task of mails."""

from __future__ import annotations

from fairlead.gateway.mail.worker import deliver
from fairlead.store.services import BackgroundTask, Services


async def _deliver(services: Services) -> None:
    await deliver(services.state, services.leases)


TASKS = (BackgroundTask("mail.deliver", _deliver),)

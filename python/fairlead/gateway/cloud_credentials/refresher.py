"""The one task that obtains credentials of the machine and of clouds, and renews them before they end.

A failed attempt is repeated with growing pauses, while a credential that has not ended stays in use.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Self

import structlog

from fairlead.errors import FairleadError
from fairlead.gateway.cloud_credentials.obtained import NotObtained
from fairlead.gateway.cloud_credentials.renewal import store_not_obtained, store_obtained
from fairlead.gateway.cloud_credentials.sources import Source, obtain
from fairlead.gateway.cloud_credentials.table import (
    ObtainedCredential,
    due_credentials,
    find_obtained,
    next_due_ms,
)
from fairlead.gateway.outbound.table import proxy_for
from fairlead.gateway.providers.credentials import open_credentials
from fairlead.gateway.providers.table import find_connection
from fairlead.moment import now_ms
from fairlead.store.due_rows import Turns, pause_ms, run_when_due
from fairlead.store.file import Connection
from fairlead.store.services import BackgroundTask, Services

log = structlog.get_logger("fairlead.gateway")


@dataclass
class CredentialRefresher:
    """One for the process, for the task and for connections that were just made."""

    services: Services
    _turns: Turns = field(default_factory=Turns)

    @classmethod
    def of(cls, services: Services) -> Self:
        """The process's object, made when it is first needed."""
        return services.singleton(cls, lambda: cls(services))

    async def refresh_due(self) -> None:
        """Obtains every credential that is due. Raises when the database does not answer."""
        due = await self.services.state.read(lambda con: due_credentials(con, now_ms()))
        async with asyncio.TaskGroup() as group:
            for row in due:
                group.create_task(self._refresh(row))

    async def refresh_if_due(self, connection_id: str) -> None:
        """Obtains one credential now, if it is due; a failure is stored with the connection. When it returns, a
        credential that the task obtained meanwhile is in use as well.
        """
        async with self._turns.slots, self._turns.of(connection_id):
            row = await self.services.state.read(lambda con: find_obtained(con, connection_id))
            if row is not None and row.next_at_ms is not None and row.next_at_ms <= now_ms():
                await self._try(row)

    async def _refresh(self, due: ObtainedCredential) -> None:
        async with self._turns.slots, self._turns.of(due.connection_id):
            now = await self.services.state.read(lambda con: find_obtained(con, due.connection_id))
            if now == due:
                await self._try(due)

    async def _try(self, row: ObtainedCredential) -> None:
        """Obtains a credential; stores a failure and when the source is asked next."""
        try:
            await self._obtain(row)
        except NotObtained as error:
            await self._fail(row, str(error))
        except FairleadError as error:
            # The database may not answer; the row stays due.
            log.warning("credential not stored", connection_id=row.connection_id, reason=error.kind)
            with contextlib.suppress(FairleadError):
                await self._fail(row, f"The credential was not stored ({error.kind}).")
        except Exception as error:  # noqa: BLE001 - one odd row must not stop the renewal of the others
            await self._fail(row, f"internal: {type(error).__name__}")

    async def _obtain(self, row: ObtainedCredential) -> None:
        state = self.services.state
        sealer = state.sealer

        def read(con: Connection) -> Source | None:
            connection = find_connection(con, row.connection_id)
            if connection is None:
                return None
            return Source(
                connection.auth_type,
                connection.provider_specific,
                open_credentials(sealer, connection).entra,
                proxy_for(con, sealer, connection.provider),
            )

        source = await state.read(read)
        if source is None:
            return
        obtained = await obtain(source)
        await state.commit(lambda con: store_obtained(con, sealer, row, obtained))
        log.info("credential obtained", connection_id=row.connection_id, source=source.auth_type)

    async def _fail(self, row: ObtainedCredential, reason: str) -> None:
        next_at_ms = now_ms() + pause_ms(row.failures)
        log.warning("credential not obtained", connection_id=row.connection_id, reason=reason)
        await self.services.state.record(
            lambda con: store_not_obtained(con, row, reason, next_at_ms)
        )


async def _watch(services: Services) -> None:
    await run_when_due(services.state, CredentialRefresher.of(services).refresh_due, next_due_ms)


TASKS = (BackgroundTask("gateway.cloud-credentials", _watch),)

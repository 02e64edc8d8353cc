"""Videos whose provider is being asked to begin them: stored before that, so that each has a row
whatever happens to the process.

This process knows which videos it is beginning itself. A row that has not begun, and that this
process is not beginning, was left by a process that ended in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

import structlog

from fairlead.errors import FairleadError
from fairlead.gateway.videos.table import (
    Operation,
    begin_operation,
    check_capacity,
    forget_operation,
    insert_operation,
)
from fairlead.records.service_jobs import Subscribers, end_job, insert_job
from fairlead.store.file import Connection
from fairlead.store.services import Services
from fairlead.store.work_leases import Lease, insert_lease

KIND: Final = "video"

log = structlog.get_logger("fairlead.gateway")


@dataclass(frozen=True, slots=True)
class ProviderOperation:
    """The connection that began a video, the provider's name of the operation, and through which proxy it
    was begun.
    """

    connection_id: str
    provider_operation: str
    proxy: str


@dataclass
class VideoStarts:
    """The videos that are being begun; one object for the process. Its size is bounded by
    `check_capacity`.
    """

    services: Services
    under_way: set[str] = field(default_factory=set)
    _leases: dict[str, Lease] = field(default_factory=dict)
    unwritten: dict[str, ProviderOperation] = field(default_factory=dict)
    """Begun videos that the database could not store yet: `VideoRunner` stores them."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The process's object, made when it is first needed."""
        return services.singleton(cls, lambda: cls(services))

    async def record_start(self, operation: Operation, subscribers: Subscribers | None) -> None:
        """Stores a video before its provider is asked. Raises `RateLimited` at the limit,
        checked in the writer so that concurrent requests cannot pass together.
        """
        leases = self.services.leases
        # Until it has begun, no other node may think that whoever began it is gone.
        lease = None if leases is None else leases.begin(KIND, operation.id)

        def insert(con: Connection) -> None:
            check_capacity(con, operation.owner)
            insert_operation(con, operation)
            if leases is not None and lease is not None:
                insert_lease(con, lease, leases.holder, leases.length_ms)
            if subscribers is not None:
                created_at_ms = operation.created_at_ms
                insert_job(con, operation.owner, operation.id, subscribers, created_at_ms)

        self.under_way.add(operation.id)
        if lease is not None:
            self._leases[operation.id] = lease
        try:
            await self.services.state.record(insert)
        except BaseException:
            self.under_way.discard(operation.id)
            await self._release(operation.id)
            raise

    async def record_refusal(self, operation: Operation) -> None:
        """Deletes the row of a video that no provider accepted. If that fails, the runner ends the row."""

        def delete_row(con: Connection) -> None:
            forget_operation(con, operation.id)
            end_job(con, operation.id, operation.created_at_ms)

        try:
            await self.services.state.record(delete_row)
        except FairleadError as error:
            log.error("video not released", operation=operation.id, error=type(error).__name__)
        finally:
            self.under_way.discard(operation.id)
            await self._release(operation.id)

    async def begin(self, operation: Operation, started: ProviderOperation) -> None:
        """Stores the provider's operation. The video is paid for by now, so a failing database must
        not lose it: it stays in `unwritten`.
        """
        self.unwritten[operation.id] = started
        try:
            await self.write(operation.id)
        except FairleadError as error:
            log.error("video not recorded", operation=operation.id, error=type(error).__name__)
        finally:
            self.under_way.discard(operation.id)

    async def write(self, operation_id: str) -> None:
        """Stores the provider's operation from `unwritten`, if there is one."""
        started = self.unwritten.get(operation_id)
        if started is None:
            return
        await self.services.state.record(
            lambda con: begin_operation(
                con,
                operation_id,
                started.connection_id,
                started.provider_operation,
                started.proxy,
            )
        )
        self.unwritten.pop(operation_id, None)
        await self._release(operation_id)

    async def _release(self, operation_id: str) -> None:
        lease = self._leases.pop(operation_id, None)
        if lease is not None and self.services.peers is not None:
            await self.services.peers.leases.release([lease])

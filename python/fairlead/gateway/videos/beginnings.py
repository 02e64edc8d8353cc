"""Videos that are being begun: noted before their provider is asked, so that each of them has a row
whatever happens to the process.

What this process is beginning it knows itself; a row that has not begun and is nobody's here is of a
process that ended in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import structlog

from fairlead.errors import FairleadError
from fairlead.gateway.videos.table import (
    Operation,
    begin_operation,
    check_room,
    forget_operation,
    insert_operation,
)
from fairlead.store.file import Connection
from fairlead.store.service_jobs import end_job, insert_job
from fairlead.store.services import Services

log = structlog.get_logger("fairlead.gateway")


@dataclass(frozen=True, slots=True)
class Begun:
    """By which connection a video was begun, and its provider's name of it."""

    connection_id: str
    provider_operation: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Who is told of a video, where its caller says so."""

    uris: list[str]
    metadata: dict[str, object] | None


@dataclass
class Beginnings:
    """One for the process. What is in it is bounded by the rows that `check_room` lets in."""

    services: Services
    under_way: set[str] = field(default_factory=set)
    unwritten: dict[str, Begun] = field(default_factory=dict)
    """Begun, while the database did not take the news: `VideoRunner` writes them."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The process's own."""
        return services.singleton(cls, lambda: cls(services))

    async def note(self, operation: Operation, notice: Notice | None) -> None:
        """Writes down that a provider is about to be asked. `RateLimited` where there is no room:
        looked at in the writer, so that many at once do not pass together.
        """

        def work(con: Connection) -> None:
            check_room(con, operation.owner)
            insert_operation(con, operation)
            if notice is not None:
                insert_job(
                    con,
                    operation.owner,
                    operation.id,
                    notice.uris,
                    notice.metadata,
                    operation.created_at_ms,
                )

        self.under_way.add(operation.id)
        try:
            await self.services.state.record(work)
        except BaseException:
            self.under_way.discard(operation.id)
            raise

    async def refuse(self, operation: Operation) -> None:
        """No provider took it. Where that cannot be written, the runner ends the row."""

        def work(con: Connection) -> None:
            forget_operation(con, operation.id)
            end_job(con, operation.id, operation.created_at_ms)

        try:
            await self.services.state.record(work)
        except FairleadError as error:
            log.error("video not let go", operation=operation.id, error=type(error).__name__)
        finally:
            self.under_way.discard(operation.id)

    async def begin(self, operation: Operation, begun: Begun) -> None:
        """A provider has taken it. It is paid for from here on, so a database that takes no news now is
        no reason to lose it.
        """
        self.unwritten[operation.id] = begun
        try:
            await self.write(operation.id)
        except FairleadError as error:
            log.error("video not noted", operation=operation.id, error=type(error).__name__)
        finally:
            self.under_way.discard(operation.id)

    async def write(self, operation_id: str) -> None:
        """Writes what is known of a video that has begun, if there is anything."""
        begun = self.unwritten.get(operation_id)
        if begun is None:
            return
        await self.services.state.record(
            lambda con: begin_operation(
                con, operation_id, begun.connection_id, begun.provider_operation
            )
        )
        self.unwritten.pop(operation_id, None)

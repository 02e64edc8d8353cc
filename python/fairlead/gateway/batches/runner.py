"""The runner of batches: takes up every batch that has not ended, and deletes files that have
expired.
"""

from __future__ import annotations

import asyncio
from typing import Final

import orjson
import structlog

from fairlead.calls.origin import public_base
from fairlead.calls.own_relay import relay_client
from fairlead.errors import FairleadError
from fairlead.gateway.batches.notifications import notify_end
from fairlead.gateway.batches.run import WIDTH, BatchRun
from fairlead.gateway.batches.table import (
    Batch,
    active_batches,
    change_batch,
    delete_ownerless,
)
from fairlead.gateway.cached_contents.table import delete_expired_cached
from fairlead.gateway.files.contents import contents_of
from fairlead.gateway.files.google_table import take_expired_google_uploads
from fairlead.gateway.files.table import all_ids, take_expired
from fairlead.gateway.files.upload_table import all_part_ids, take_expired_uploads
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.runner import Runner
from fairlead.store.services import Services

BATCHES_AT_ONCE: Final = 16
RETRY_S: Final = 2.0
STRAYS_EVERY_S: Final = 3600.0

log = structlog.get_logger("fairlead.gateway")


class BatchRunner(Runner[Batch]):
    """The process's runner of batches. Routes call `wake` and `cancel`."""

    kind = "batch"
    at_once = BATCHES_AT_ONCE

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._contents = contents_of(services)
        self._strays_looked_s: float | None = None
        self._runs: dict[str, BatchRun] = {}

    async def run(self) -> None:
        self._client = relay_client(self.services.config, connections=BATCHES_AT_ONCE * WIDTH)
        try:
            await self._bring_in()
            await super().run()
        finally:
            await self._client.aclose()

    async def active(self) -> list[Batch]:
        found = await self.services.state.read(active_batches)
        for batch in found:
            # Its owner may have cancelled it at another node.
            if batch.status == "cancelling" and (run := self._runs.get(batch.id)):
                run.cancel()
        return found

    def owner_of(self, item: Batch) -> str:
        return item.owner

    def key_of(self, item: Batch) -> str | None:
        return item.owner

    async def steps_of(self, items: list[Batch]) -> dict[str, int]:
        return {item.id: item.completed + item.failed for item in items}

    async def revoke(self, item: Batch, reason: str) -> None:
        """Ends a batch whose key is no longer valid. Its results so far are kept, and its errors
        give the reason.
        """
        if run := self._runs.get(item.id):
            run.revoke(reason)
        elif item.id not in self._tasks:
            run = BatchRun(self.services, self._client, item)
            run.revoke(reason)
            await run.run()

    async def sweep(self) -> None:
        gone = await self.services.state.database.write(lambda con: _take_expired(con, now_ms()))
        await self._contents.remove(*gone)
        now_s = asyncio.get_running_loop().time()
        if self._strays_looked_s is None or now_s - self._strays_looked_s >= STRAYS_EVERY_S:
            self._strays_looked_s = now_s
            await self._forget_strays()

    def cancel(self, batch_id: str) -> None:
        """Stops a batch in progress; its row is already marked as cancelling."""
        if run := self._runs.get(batch_id):
            run.cancel()
        self.wake()

    async def _bring_in(self) -> None:
        try:
            count = await self._contents.bring_in(self.services.data_dir)
        except (FairleadError, OSError) as error:
            # They stay where they are until the next start.
            log.error("files not brought in", error=type(error).__name__)
            return
        if count:
            log.info("files brought into the store", files=count)

    async def _forget_strays(self) -> None:
        """Deletes contents that have been without a row for long: uploads that a crash interrupted. A batch that is
        about to end has named its files in its row.
        """

        async def known() -> set[str]:
            # A batch that ends between the two has its files in the second.
            active = await self.services.state.read(active_batches)
            named = {name for each in active for name in (each.output_file_id, each.error_file_id)}
            rows = await self.services.state.read(lambda con: all_ids(con) | all_part_ids(con))
            return {name for name in named if name} | rows

        try:
            strays = await self._contents.forget_strays(known, now_ms())
        except (FairleadError, OSError) as error:
            log.error("strays not deleted", error=type(error).__name__)
            return
        if strays:
            log.info("contents without a row deleted", files=strays)

    def began(self, item: Batch) -> None:
        self._runs[item.id] = BatchRun(self.services, self._client, item)

    def ended(self, item: Batch) -> None:
        self._runs.pop(item.id, None)

    async def process(self, batch: Batch) -> None:
        try:
            await self._runs[batch.id].run()
        except (FairleadError, OSError) as error:
            # The database or the disk does not answer: the row is unchanged, and the batch is taken
            # up
            # again.
            log.error("batch interrupted", batch=batch.id, error=type(error).__name__)
            await asyncio.sleep(RETRY_S)
        except Exception as error:  # noqa: BLE001 - a defect ends this batch, not the others
            log.error("batch failed", batch=batch.id, error=type(error).__name__)
            await self._fail(batch, None)

    async def give_up(self, batch: Batch, reason: str) -> None:
        error = {"code": "internal_error", "message": reason, "param": None, "line": None}
        await self._fail(batch, orjson.dumps({"object": "list", "data": [error]}).decode())

    async def _fail(self, batch: Batch, errors: str | None) -> None:
        origin = public_base(self.services.config)
        changes = {"errors": errors} if errors is not None else {}

        def end(con: Connection) -> None:
            change_batch(con, batch.id, status="failed", ended_at_ms=now_ms(), **changes)
            notify_end(con, batch.id, origin)

        await self.services.state.record(end)


def _take_expired(con: Connection, at_ms: int) -> list[str]:
    """Deletes the rows of everything that has expired or whose key was deleted, and returns the ids of its contents."""
    delete_ownerless(con)
    delete_expired_cached(con, at_ms)
    return [
        *take_expired(con, at_ms),
        *take_expired_uploads(con, at_ms),
        *take_expired_google_uploads(con, at_ms),
    ]

"""What works on batches: takes up every one that has not ended, and lets files go whose time is over."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import Final

import structlog

from fairlead.errors import FairleadError
from fairlead.gateway.batches.run import WIDTH, BatchRun
from fairlead.gateway.batches.table import Batch, active_batches, change_batch
from fairlead.gateway.batches.tell import tell_end
from fairlead.gateway.files.contents import Contents
from fairlead.gateway.files.table import all_ids, take_expired
from fairlead.moment import now_ms
from fairlead.own_relay import public_origin, relay_client
from fairlead.store.file import Connection
from fairlead.store.services import Services

BATCHES_AT_ONCE: Final = 8
LOOK_EVERY_S: Final = 5.0
SWEEP_EVERY_S: Final = 60.0
RETRY_S: Final = 2.0

log = structlog.get_logger("fairlead.gateway")


class Runner:
    """`run` is a background task; routes call `wake` and `cancel`."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._runs: dict[str, BatchRun] = {}
        self._wanted = asyncio.Event()

    async def run(self) -> None:
        """Lasts until it is cancelled."""
        services = self._services
        contents = Contents(services.data_dir)
        self._client = relay_client(services.config, connections=BATCHES_AT_ONCE * WIDTH)
        loop = asyncio.get_running_loop()
        swept_s = loop.time()
        try:
            await self._forget_strays(contents)
            while True:
                self._wanted.clear()
                await self._take_up()
                if loop.time() - swept_s > SWEEP_EVERY_S:
                    swept_s = loop.time()
                    gone = await services.state.database.write(
                        lambda con: take_expired(con, now_ms())
                    )
                    await contents.remove(*gone)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY_S):
                        await self._wanted.wait()
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            await self._client.aclose()

    def wake(self) -> None:
        """There is a new batch."""
        self._wanted.set()

    def cancel(self, batch_id: str) -> None:
        """The batch's row says so already; this is for what is under way."""
        if run := self._runs.get(batch_id):
            run.cancel()
        self.wake()

    async def _forget_strays(self, contents: Contents) -> None:
        """Contents without a row, of uploads that ended with the process; a batch that is about to
        end has named its files.
        """
        known = await self._services.state.read(all_ids)
        for batch in await self._services.state.read(active_batches):
            known |= {batch.output_file_id or "", batch.error_file_id or ""}
        await contents.sweep(known)

    async def _take_up(self) -> None:
        for batch in await self._services.state.read(active_batches):
            if len(self._tasks) >= BATCHES_AT_ONCE:
                return
            if batch.id not in self._tasks:
                run = self._runs[batch.id] = BatchRun(self._services, self._client, batch)
                task = asyncio.create_task(self._work(batch, run), name=f"batch {batch.id}")
                self._tasks[batch.id] = task
                task.add_done_callback(partial(self._done, batch.id))

    def _done(self, batch_id: str, _: asyncio.Task[None]) -> None:
        self._tasks.pop(batch_id, None)
        self._runs.pop(batch_id, None)
        self.wake()

    async def _work(self, batch: Batch, run: BatchRun) -> None:
        try:
            await run.run()
        except (FairleadError, OSError) as error:
            # The database or the disk does not answer: the batch stands as it is, and is taken up
            # again.
            log.error("batch interrupted", batch=batch.id, error=type(error).__name__)
            await asyncio.sleep(RETRY_S)
        except Exception as error:  # noqa: BLE001 - a defect ends this batch, not the others
            log.error("batch failed", batch=batch.id, error=type(error).__name__)
            origin = public_origin(self._services.config)

            def end(con: Connection) -> None:
                change_batch(con, batch.id, status="failed", ended_at_ms=now_ms())
                tell_end(con, batch.id, origin)

            await self._services.state.record(end)


def runner_of(services: Services) -> Runner:
    """The process's runner, made when it is first needed."""
    runner = services.rooms.get(Runner)
    if not isinstance(runner, Runner):
        runner = services.rooms[Runner] = Runner(services)
    return runner

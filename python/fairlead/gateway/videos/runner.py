"""The runner of videos: asks their providers until each has ended, and announces it.

An operation is a row before its provider is asked to begin it, so a restart continues it. The
result and its event are one write.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

import orjson
import structlog

from fairlead.calls.origin import public_base
from fairlead.errors import FairleadError
from fairlead.gateway.google import (
    DEADLINE_EXCEEDED,
    INTERNAL,
    UNKNOWN,
    rpc_code,
    rpc_error,
)
from fairlead.gateway.videos.provider import MESSAGE_MAX_CHARS, OperationStatus, read_status
from fairlead.gateway.videos.starts import KIND, VideoStarts
from fairlead.gateway.videos.table import (
    Operation,
    VideoFile,
    active_operations,
    end_operation,
    insert_file,
    note_progress,
    take_old,
)
from fairlead.gateway.videos.targets import target_of
from fairlead.gateway.videos.view import event_data, replace_addresses
from fairlead.moment import now_ms
from fairlead.records.service_jobs import JobEvent, end_job, queue_job_event
from fairlead.store.file import Connection
from fairlead.store.runner import Runner
from fairlead.store.services import BackgroundTask, Services

FIRST_S: Final = 0.5
"""The wait before a provider is first asked for the status; each further wait is half as long again."""
SLOWEST_S: Final = 15.0
WITHOUT_ANSWER_S: Final = 60.0
"""The longest wait while the provider gives no answer."""
ASKED_AT_ONCE: Final = 16
REFUSALS_MAX: Final = 10
"""Refusals in a row after which a video has failed; a few may come from a credential that is being replaced."""
RETRY_S: Final = 5.0

log = structlog.get_logger("fairlead.gateway")


class VideoRunner(Runner[Operation]):
    """The process's runner of videos. Routes call `wake`."""

    kind = KIND
    sweep_every_s = 600.0

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._slots = asyncio.Semaphore(ASKED_AT_ONCE)
        self._origin = public_base(services.config)
        self._starts = VideoStarts.of(services)

    async def active(self) -> list[Operation]:
        # Copied before the rows are read: a start that ends in between has its final row by then.
        starting = set(self._starts.under_way)
        found = await self.services.state.read(active_operations)
        return [each for each in found if each.id not in starting]

    def key_of(self, item: Operation) -> str | None:
        return item.owner

    async def revoke(self, item: Operation, reason: str) -> None:
        await self.stop_and_wait(item.id)
        await self._fail(item, rpc_code(401), reason)

    async def sweep(self) -> None:
        await self.services.state.record(lambda con: take_old(con, now_ms()))

    async def process(self, operation: Operation) -> None:
        try:
            await self._take_up_one(operation)
        except FairleadError as error:
            # The database does not answer: the video is taken up again later.
            log.error("video interrupted", operation=operation.id, error=type(error).__name__)
            await asyncio.sleep(RETRY_S)
        except Exception as error:  # noqa: BLE001 - a defect ends this video, not the others
            log.error("video failed", operation=operation.id, error=type(error).__name__)
            await self._fail(operation, INTERNAL, "This is a defect of fairlead; see its log.")

    async def give_up(self, operation: Operation, reason: str) -> None:
        await self._fail(operation, INTERNAL, reason)

    async def _take_up_one(self, operation: Operation) -> None:
        started = self._starts.unwritten.get(operation.id)
        if started is not None:
            await self._starts.write(operation.id)
            operation = replace(
                operation,
                connection_id=started.connection_id,
                provider_operation=started.provider_operation,
            )
        if not operation.provider_operation:
            await self._fail(
                operation,
                UNKNOWN,
                "The gateway stopped during the call that starts this video, so it is not known "
                "whether it was started: request it again.",
            )
        else:
            await self._follow(operation, operation.provider_operation)

    async def _follow(self, operation: Operation, name: str) -> None:
        wait_s, refusals = FIRST_S, 0
        while True:
            left_s = (operation.expires_at_ms - now_ms()) / 1000
            if left_s <= 0:
                return await self._fail(
                    operation, DEADLINE_EXCEEDED, "The provider did not finish the video in time."
                )
            await asyncio.sleep(min(wait_s, left_s))
            status = await self._poll_provider(operation, name)
            if status is not None:
                operation = await self._note_progress(operation, status.progress)
            if status is None:
                return await self._fail(
                    operation, UNKNOWN, "The connection that began the video is gone."
                )
            if status.operation is not None and status.operation.get("done") is True:
                return await self._end(operation, status.operation)
            if status.fault == 404:
                return await self._fail(
                    operation, rpc_code(404), "The provider does not know the video any more."
                )
            is_refused = status.fault is not None and 400 <= status.fault < 500
            refusals = refusals + 1 if is_refused and status.fault not in (408, 429) else 0
            if refusals >= REFUSALS_MAX:
                return await self._fail(
                    operation,
                    rpc_code(status.fault or 0),
                    f"The provider refuses to report the video's progress ({status.fault}).",
                )
            slowest_s = SLOWEST_S if status.fault is None else WITHOUT_ANSWER_S
            wait_s = min(slowest_s, wait_s * 1.5)

    async def _poll_provider(self, operation: Operation, name: str) -> OperationStatus | None:
        sealer = self.services.state.sealer
        target = await self.services.state.read(
            lambda con: target_of(con, sealer, operation.connection_id, operation.proxy)
        )
        if target is None:
            return None
        async with self._slots:
            return await read_status(target, name)

    async def _note_progress(self, operation: Operation, progress: int | None) -> Operation:
        if progress is None or progress == operation.progress:
            return operation
        await self.services.state.record(lambda con: note_progress(con, operation.id, progress))
        return replace(operation, progress=progress)

    async def _end(self, operation: Operation, finished: dict[str, Any]) -> None:
        fault, response = finished.get("error"), finished.get("response")
        if isinstance(fault, dict):
            code, message = fault.get("code"), fault.get("message")
            await self._fail(
                operation,
                code if isinstance(code, int) else UNKNOWN,
                message[:MESSAGE_MAX_CHARS] if isinstance(message, str) else "The video failed.",
            )
        elif isinstance(response, dict):
            shown, files = replace_addresses(operation, response, self._origin)
            await self._store_end(operation, orjson.dumps(shown).decode(), None, files)
        else:
            await self._fail(operation, UNKNOWN, "The provider's answer holds no video.")

    async def _fail(self, operation: Operation, code: int, message: str) -> None:
        error = orjson.dumps(rpc_error(code, message)).decode()
        await self._store_end(operation, None, error, [])

    async def _store_end(
        self, operation: Operation, response: str | None, error: str | None, files: list[VideoFile]
    ) -> None:
        at_ms = now_ms()

        def store_end(con: Connection) -> None:
            if not end_operation(con, operation, response, error, at_ms):
                return
            for file in files:
                insert_file(con, file)
            if files:
                data = event_data(files, self._origin)
                happened = JobEvent(operation.id, "video.generated", data, at_ms)
                queue_job_event(con, operation.owner, happened)
            else:
                # There is no event for a failed video.
                end_job(con, operation.id, at_ms)

        await self.services.state.record(store_end)


TASKS = (BackgroundTask("gateway.videos", VideoRunner.run_one),)

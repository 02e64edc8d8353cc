"""What follows videos: asks their providers until each has ended, and tells of it.

An operation is a row before its provider is asked for it, so a restart takes it up where it stands.
What came of it and the telling are one write.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

import orjson
import structlog

from fairlead.errors import FairleadError
from fairlead.gateway.google import (
    DEADLINE_EXCEEDED,
    INTERNAL,
    UNKNOWN,
    rpc_code,
    rpc_error,
)
from fairlead.gateway.videos.beginnings import Beginnings
from fairlead.gateway.videos.lanes import lane_of
from fairlead.gateway.videos.provider import MESSAGE_MAX_CHARS, Told, ask
from fairlead.gateway.videos.table import (
    Operation,
    VideoFile,
    active_operations,
    end_operation,
    insert_file,
    take_old,
)
from fairlead.gateway.videos.view import take_in, told_of
from fairlead.moment import now_ms
from fairlead.origin import public_base
from fairlead.store.file import Connection
from fairlead.store.runner import Runner
from fairlead.store.service_jobs import end_job, tell_job
from fairlead.store.services import BackgroundTask, Services

FIRST_S: Final = 0.5
"""Before a provider is asked for the first time; then half as long again each time."""
SLOWEST_S: Final = 15.0
WITHOUT_ANSWER_S: Final = 60.0
"""The slowest while there is no answer."""
ASKED_AT_ONCE: Final = 16
REFUSALS_MAX: Final = 10
"""In a row: of a credential, say, until an operator has set it right."""
RETRY_S: Final = 5.0

log = structlog.get_logger("fairlead.gateway")


class VideoRunner(Runner[Operation]):
    """Routes call `wake`."""

    kind = "video"
    sweep_every_s = 600.0

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._room = asyncio.Semaphore(ASKED_AT_ONCE)
        self._origin = public_base(services.config)
        self._beginnings = Beginnings.of(services)

    async def active(self) -> list[Operation]:
        # Looked at before the rows: one that is over by then has its row as it is now.
        beginning = set(self._beginnings.under_way)
        found = await self.services.state.read(active_operations)
        return [each for each in found if each.id not in beginning]

    def key_of(self, item: Operation) -> str | None:
        return item.owner

    async def revoke(self, item: Operation, reason: str) -> None:
        await self.stop_and_wait(item.id)
        await self._fail(item, rpc_code(401), reason)

    async def sweep(self) -> None:
        await self.services.state.record(lambda con: take_old(con, now_ms()))

    async def work(self, operation: Operation) -> None:
        try:
            await self._take_up_one(operation)
        except FairleadError as error:
            # The database does not answer: it is taken up again at the next look.
            log.error("video interrupted", operation=operation.id, error=type(error).__name__)
            await asyncio.sleep(RETRY_S)
        except Exception as error:  # noqa: BLE001 - a defect ends this video, not the others
            log.error("video failed", operation=operation.id, error=type(error).__name__)
            await self._fail(operation, INTERNAL, "This is a defect of fairlead; see its log.")

    async def give_up(self, operation: Operation, reason: str) -> None:
        await self._fail(operation, INTERNAL, reason)

    async def _take_up_one(self, operation: Operation) -> None:
        begun = self._beginnings.unwritten.get(operation.id)
        if begun is not None:
            await self._beginnings.write(operation.id)
            operation = replace(
                operation,
                connection_id=begun.connection_id,
                provider_operation=begun.provider_operation,
            )
        if not operation.provider_operation:
            await self._fail(
                operation,
                UNKNOWN,
                "The gateway stopped while a provider was asked for this video, so whether it was "
                "begun is not known: ask for it again.",
            )
        else:
            await self._follow(operation, operation.provider_operation)

    async def _follow(self, operation: Operation, name: str) -> None:
        wait_s, refusals = FIRST_S, 0
        while True:
            left_s = (operation.expires_at_ms - now_ms()) / 1000
            if left_s <= 0:
                return await self._fail(
                    operation, DEADLINE_EXCEEDED, "The provider did not end the video in time."
                )
            await asyncio.sleep(min(wait_s, left_s))
            told = await self._ask(operation, name)
            if told is None:
                return await self._fail(
                    operation, UNKNOWN, "The connection that began the video is gone."
                )
            if told.operation is not None and told.operation.get("done") is True:
                return await self._end(operation, told.operation)
            if told.fault == 404:
                return await self._fail(
                    operation, rpc_code(404), "The provider does not know the video any more."
                )
            is_refused = told.fault is not None and 400 <= told.fault < 500
            refusals = refusals + 1 if is_refused and told.fault not in (408, 429) else 0
            if refusals >= REFUSALS_MAX:
                return await self._fail(
                    operation,
                    rpc_code(told.fault or 0),
                    f"The provider refuses to say how far the video is ({told.fault}).",
                )
            slowest_s = SLOWEST_S if told.fault is None else WITHOUT_ANSWER_S
            wait_s = min(slowest_s, wait_s * 1.5)

    async def _ask(self, operation: Operation, name: str) -> Told | None:
        sealer = self.services.state.sealer
        lane = await self.services.state.read(
            lambda con: lane_of(con, sealer, operation.connection_id)
        )
        if lane is None:
            return None
        async with self._room:
            return await ask(lane, name)

    async def _end(self, operation: Operation, told: dict[str, Any]) -> None:
        fault, response = told.get("error"), told.get("response")
        if isinstance(fault, dict):
            code, said = fault.get("code"), fault.get("message")
            await self._fail(
                operation,
                code if isinstance(code, int) else UNKNOWN,
                said[:MESSAGE_MAX_CHARS] if isinstance(said, str) else "The video failed.",
            )
        elif isinstance(response, dict):
            shown, files = take_in(operation, response, self._origin)
            await self._keep(operation, orjson.dumps(shown).decode(), None, files)
        else:
            await self._fail(operation, UNKNOWN, "The provider's answer holds no video.")

    async def _fail(self, operation: Operation, code: int, message: str) -> None:
        error = orjson.dumps(rpc_error(code, message)).decode()
        await self._keep(operation, None, error, [])

    async def _keep(
        self, operation: Operation, response: str | None, error: str | None, files: list[VideoFile]
    ) -> None:
        at_ms = now_ms()

        def store_end(con: Connection) -> None:
            if not end_operation(con, operation, response, error, at_ms):
                return
            for file in files:
                insert_file(con, file)
            if files:
                data = told_of(files, self._origin)
                tell_job(con, operation.owner, operation.id, "video.generated", data, at_ms)
            else:
                # There is no event for a video that is not there.
                end_job(con, operation.id, at_ms)

        await self.services.state.record(store_end)


TASKS = (BackgroundTask("gateway.videos", VideoRunner.run_one),)

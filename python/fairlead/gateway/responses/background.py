"""Background responses: answered later, and readable at any time.

Each is a row before it starts, so that its owner can find it whatever happens. The call uses this instance's
relay with its owner's key, which pays for it (`relay_call`). Its events stay in memory, numbered, for any
number of readers, and are stored with the answer. A response that a restart interrupts has failed when control
is back.

    queued -> in_progress -> completed | incomplete | failed | cancelled

If several controls share a database, a response runs at the control that started it, which has its lease. An
open response without a lease is marked as failed by the first control that notices; a response that was ended
elsewhere is stopped here.

This loop is not `store.runner`, which resumes rows after a restart and reads them at each turn: these live in
memory, start at most once, and must continue while the database does not answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Final

import httpx
import orjson
import structlog

from fairlead.calls.own_relay import relay_client
from fairlead.errors import FairleadError, RateLimited
from fairlead.gateway.responses.background_request import BackgroundRequest
from fairlead.gateway.responses.background_response import INTERRUPTED, BackgroundResponse
from fairlead.gateway.responses.events import Event
from fairlead.gateway.responses.notifications import notify_end
from fairlead.gateway.responses.relay_call import call_relay
from fairlead.gateway.responses.table import (
    StoredResponse,
    insert_response,
    open_envelope,
    open_ids,
    store_answer,
)
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.key_watch import end_with_keys
from fairlead.store.services import BackgroundTask, Services
from fairlead.store.shares import Shares
from fairlead.store.work_leases import insert_lease, working_under

AT_ONCE: Final = 64
WAITING_MAX: Final = 1_000
WAITING_OF_OWNER_MAX: Final = 100
# Memory for the bodies of requests and for their events.
WAITING_MAX_BYTES: Final = 512 * 1024 * 1024
WAITING_OF_OWNER_MAX_BYTES: Final = 128 * 1024 * 1024
DEADLINE_S: Final = 3_600.0
"""The longest time for one answer, from its beginning."""
CHECKED_EVERY_S: Final = 5.0
KIND: Final = "response"

log = structlog.get_logger("fairlead.gateway")


class BackgroundResponses:
    """The responses that wait or run; one object for the process. `run` is a background task;
    routes call `begin`, `find` and `cancel`.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._responses: dict[str, BackgroundResponse] = {}
        self._waiting: dict[str, BackgroundResponse] = {}
        self._shares = Shares(AT_ONCE)
        self._check_at_s = 0.0
        self._changed = asyncio.Event()

    async def find(self, response_id: str, owner: str) -> BackgroundResponse | None:
        """The response with this id, if it is this owner's and has not ended.

        One whose end is being stored is waited for: what is shown here as ended has ended, and may be deleted, at every
        node.
        """
        job = self._responses.get(response_id)
        if job is None or job.owner != owner:
            return None
        if job.is_ending:
            await job.wait_until_finished()
            return None
        return job

    async def begin(
        self,
        owner: str,
        request: BackgroundRequest,
        headers: dict[str, str],
        note: Callable[[Connection, str], None] | None = None,
    ) -> BackgroundResponse:
        """Stores the request, calls `note` with its id in the same write, and queues it.
        `RateLimited` when too many are waiting, or the owner has used up its share of the
        memory.
        """
        self._check_capacity(owner, len(request.body))
        job = BackgroundResponse(owner, request, headers)
        stored = StoredResponse(
            job.id, owner, request.previous_id, request.model, request.input, request.envelope
        )
        self._responses[job.id] = job
        leases = self._services.leases
        if leases is not None:
            job.lease = leases.begin(KIND, job.id)
            job.lease.on_lost = partial(self._mark_lost, job)

        def write(con: Connection) -> None:
            insert_response(con, stored, now_ms(), is_open=True)
            if leases is not None and job.lease is not None:
                insert_lease(con, job.lease, leases.holder, leases.length_ms)
            if note is not None:
                note(con, stored.id)

        try:
            await self._services.state.record(write)
        except BaseException:
            self._responses.pop(job.id, None)
            await self._release(job)
            raise
        self._waiting[job.id] = job
        self._changed.set()
        return job

    def _check_capacity(self, owner: str, size: int) -> None:
        mine = [job for job in self._responses.values() if job.owner == owner]
        if len(mine) >= WAITING_OF_OWNER_MAX or len(self._responses) >= WAITING_MAX:
            raise RateLimited("Too many background responses are in progress.", retry_after_s=5)
        own = size + sum(job.size_bytes for job in mine)
        if own > WAITING_OF_OWNER_MAX_BYTES:
            raise RateLimited(
                "This caller's background responses in progress hold more than "
                f"{WAITING_OF_OWNER_MAX_BYTES} bytes: wait for some to end.",
                retry_after_s=5,
            )
        if size + sum(job.size_bytes for job in self._responses.values()) > WAITING_MAX_BYTES:
            raise RateLimited(
                "The background responses in progress hold more than "
                f"{WAITING_MAX_BYTES} bytes: try again shortly.",
                retry_after_s=5,
            )

    async def cancel(self, job: BackgroundResponse) -> Event:
        """Ends a response; the object as it is then."""
        await self._stop(job)
        if job.task is not None:
            # Its end is being stored.
            await asyncio.wait({job.task})
        return job.response

    async def _stop(self, job: BackgroundResponse, revoked: str | None = None) -> None:
        """Cancels a response that has not ended, in progress or waiting. `revoked` says why its key is not valid."""
        if job.is_ending or job.is_cancelled:
            return
        job.revoked = revoked
        job.is_cancelled = True
        self._waiting.pop(job.id, None)
        if job.task is None:
            await self._end(job, job.stopped())
        else:
            job.task.cancel()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        if self._services.leases is None:
            await self._end_interrupted()
        tasks: set[asyncio.Task[None]] = set()
        watching = asyncio.create_task(
            end_with_keys(self._services.state, self._working_for, self._end_revoked),
            name="keys of responses",
        )
        watching.add_done_callback(lambda _: self._changed.set())
        async with relay_client(self._services.config, connections=AT_ONCE) as client:
            try:
                while True:
                    self._changed.clear()
                    if watching.done():
                        # It ends with a defect alone, which fails this task.
                        await watching
                    await self._check()
                    while (job := self._next()) is not None:
                        name = f"response {job.id}"
                        job.task = asyncio.create_task(self._do(job, client), name=name)
                        tasks.add(job.task)
                        job.task.add_done_callback(tasks.discard)
                        job.task.add_done_callback(partial(self._leave, job.owner))
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(CHECKED_EVERY_S):
                            await self._changed.wait()
            finally:
                watching.cancel()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(watching, *tasks, return_exceptions=True)
                for job in self._responses.values():
                    # Readers end here; the rows are closed at the next start, or by another control.
                    job.finish()
                await self._release(*self._responses.values())

    def _next(self) -> BackgroundResponse | None:
        """The next response by its owner's fair share of the places, with a place taken for it."""
        job = self._shares.next_of(self._waiting.values(), lambda waiting: waiting.owner)
        if job is not None:
            del self._waiting[job.id]
            self._shares.take(job.owner)
        return job

    def _leave(self, owner: str, _: object) -> None:
        self._shares.give_back(owner)
        self._changed.set()

    async def _check(self) -> None:
        """Every few seconds: what was ended at another node, and what has nobody who works on it."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self._check_at_s:
            return
        self._check_at_s = now_s + CHECKED_EVERY_S
        if self._services.leases is not None:
            try:
                await self._stop_ended_elsewhere()
                await self._end_interrupted()
            except FairleadError as error:
                log.warning("responses of other nodes not checked", error=error.kind)

    def _working_for(self) -> set[str]:
        owners = (job.owner for job in self._responses.values())
        return {owner.removeprefix("key:") for owner in owners if owner.startswith("key:")}

    async def _end_revoked(self, reasons: dict[str, str]) -> None:
        """Ends the responses whose keys are no longer valid."""
        for job in list(self._responses.values()):
            reason = reasons.get(job.owner.removeprefix("key:"))
            if reason is not None:
                await self._stop(job, reason)

    async def _stop_ended_elsewhere(self) -> None:
        """Stops work on responses that another control has ended or deleted for their owners."""
        stored = [job for job in self._responses.values() if job.task or job.id in self._waiting]
        if not stored:
            return
        still_open = set(await self._services.state.read(open_ids))
        for job in stored:
            if job.id not in still_open:
                await self._stop(job)

    async def _end_interrupted(self) -> None:
        """Fails the responses that a process left open and nobody works on, one by one: all of them may be
        more than fits the memory.
        """
        open_now = await self._services.state.read(open_ids)
        left = [each for each in open_now if each not in self._responses]
        if (leases := self._services.leases) is None:
            for response_id in left:
                await self._fail(response_id)
        elif left:
            for response_id, lease in (await leases.take(KIND, left)).items():
                try:
                    with working_under(lease):
                        await self._fail(response_id)
                finally:
                    await leases.release([lease])

    async def _fail(self, response_id: str) -> None:
        state = self._services.state
        envelope = await state.read(partial(open_envelope, response_id=response_id))
        if envelope is None:
            return
        error = {"code": "server_error", "message": INTERRUPTED}
        response = {**orjson.loads(envelope), "status": "failed", "error": error}
        await state.record(storing_end(response))

    def _mark_lost(self, job: BackgroundResponse) -> None:
        """Another control may fail it by now: no answer would be stored."""
        job.is_lost = job.is_cancelled = True
        self._waiting.pop(job.id, None)
        if job.task is None:
            job.end(job.stopped())
            job.finish()
            self._responses.pop(job.id, None)
        elif not job.is_ending:
            job.task.cancel()

    async def _release(self, *jobs: BackgroundResponse) -> None:
        if (leases := self._services.leases) is not None:
            await leases.release([job.lease for job in jobs if job.lease is not None])

    async def _do(self, job: BackgroundResponse, client: httpx.AsyncClient) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                ended = await call_relay(job, client)
        except asyncio.CancelledError:
            if not job.is_cancelled:
                # Control stops: the row stays open, and is closed when control is back.
                raise
            ended = job.stopped()
        except TimeoutError:
            ended = job.failed("timeout", f"There was no answer within {DEADLINE_S:g} s.")
        except OverflowError as error:
            ended = job.failed("server_error", f"The response was given up: {error}.")
        except httpx.HTTPError:
            ended = job.failed("server_error", "The relay did not answer.")
        except Exception as error:  # noqa: BLE001 - a defect ends this response, not the others
            log.error("background response failed", id=job.id, error=type(error).__name__)
            ended = job.failed("server_error", "This is a defect of fairlead; see its log.")
        await self._end(job, ended)

    async def _end(self, job: BackgroundResponse, response: Event) -> None:
        job.is_ending = True
        job.end(response)
        try:
            with working_under(job.lease):
                await self._services.state.record(_storing(response, job.events))
        except FairleadError as error:
            log.error("a response is not kept", id=job.id, error=error.kind)
        job.finish()
        self._responses.pop(job.id, None)
        await self._release(job)


def background_responses(services: Services) -> BackgroundResponses:
    """The process's object, made when it is first needed."""
    return services.singleton(BackgroundResponses, lambda: BackgroundResponses(services))


async def _run(services: Services) -> None:
    try:
        await background_responses(services).run()
    finally:
        # The next start of the task begins with a new object.
        services.discard(BackgroundResponses)


TASKS = (BackgroundTask("gateway.responses", _run),)


def storing_end(response: Event) -> Callable[[Connection], None]:
    """The write that ends a response of which there are no events."""
    kind = f"response.{response['status']}"
    last = {"type": kind, "sequence_number": 0, "response": response}
    return _storing(response, [(kind, orjson.dumps(last))])


def _storing(response: Event, events: list[tuple[str, bytes]]) -> Callable[[Connection], None]:
    """The write that stores an answer with its events, and queues the event for webhooks."""
    whole = orjson.dumps(response).decode()
    events_json = b"[%s]" % b",".join(text for _, text in events)

    def write(con: Connection) -> None:
        store_answer(con, response["id"], whole, events_json.decode())
        notify_end(con, response)

    return write

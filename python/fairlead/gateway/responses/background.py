"""Responses that are worked on in the background: asked for at once, answered later, read whenever the caller likes.

Each is a row before it is begun, so that its owner finds it whatever happens; the work goes through
this instance's own relay as its owner's key, which pays for it. What is told meanwhile stays in
memory, numbered, for any number of readers, and is kept with the answer. What a restart interrupts
has failed when control is back.

    queued -> in_progress -> completed | incomplete | failed | cancelled
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any, Final

import httpx
import orjson
import structlog

from fairlead.errors import FairleadError, RateLimited
from fairlead.gateway.responses.asked import Asked, as_asked
from fairlead.gateway.responses.events import Event, frame_of
from fairlead.gateway.responses.table import Kept, close, keep, open_envelope, open_ids
from fairlead.gateway.responses.tell import tell_end
from fairlead.moment import now_ms
from fairlead.own_relay import on_behalf_of, relay_client
from fairlead.store.file import Connection
from fairlead.store.key_state import keys_out_of_force
from fairlead.store.services import BackgroundTask, Services
from fairlead.store.shares import Shares

AT_ONCE: Final = 64
WAITING_MAX: Final = 1_000
WAITING_OF_OWNER_MAX: Final = 100
# Of requests and of what is told of them meanwhile, in memory.
WAITING_MAX_BYTES: Final = 512 * 1024 * 1024
WAITING_OF_OWNER_MAX_BYTES: Final = 128 * 1024 * 1024
DEADLINE_S: Final = 3_600.0
"""Of one answer, from its beginning."""
EVENTS_MAX_BYTES: Final = 24 * 1024 * 1024
HEARTBEAT_S: Final = 15.0
KEYS_LOOKED_AT_EVERY_S: Final = 5.0
ENDS: Final = frozenset({"completed", "incomplete", "failed", "cancelled"})

log = structlog.get_logger("fairlead.gateway")


class Work:
    """One response on its way. `response` is what it is now, `events` what was told of it: kinds, and
    texts as they go out.
    """

    def __init__(self, owner: str, asked: Asked, headers: dict[str, str]) -> None:
        self.id = str(asked.response["id"])
        self.owner = owner
        self.model = asked.model
        self.response: Event = asked.response
        self.events: list[tuple[str, bytes]] = []
        self.body = asked.body
        self.headers = headers
        self.has_ended = False
        self.is_cancelled = False
        self.revoked: str | None = None
        self.is_ending = False
        self.task: asyncio.Task[None] | None = None
        self._size = 0
        self._grew = asyncio.Event()
        for kind in ("created", "queued"):
            self.tell({"type": f"response.{kind}", "response": self.response})

    def tell(self, event: Event) -> None:
        """One event more, under the next number. `OverflowError` when it is too much to be kept."""
        told = self._numbered(event)
        if self._size + len(told[1]) > EVENTS_MAX_BYTES:
            raise OverflowError("the answer is too long to be kept")
        self._size += len(told[1])
        self.events.append(told)
        self._wake()

    @property
    def size_bytes(self) -> int:
        """What it takes of the memory."""
        return len(self.body) + self._size

    def _numbered(self, event: Event) -> tuple[str, bytes]:
        return str(event["type"]), orjson.dumps({**event, "sequence_number": len(self.events)})

    def end(self, response: Event) -> None:
        """The last word."""
        self.response = response
        last = {"type": f"response.{response['status']}", "response": response}
        self.events.append(self._numbered(last))

    def finish(self) -> None:
        """It is kept: readers may leave."""
        self.has_ended = True
        self._wake()

    def now(self, **changes: Any) -> Event:
        """The response with changes."""
        return {**self.response, **changes}

    async def frames(self, after: int) -> AsyncIterator[bytes]:
        """Every event above this number, as they come, with a comment where nothing does."""
        place = after + 1
        while True:
            grew = self._grew
            while place < len(self.events):
                yield frame_of(*self.events[place])
                place += 1
            if self.has_ended:
                return
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await grew.wait()
            except TimeoutError:
                yield b": keep-alive\n\n"

    def _wake(self) -> None:
        self._grew.set()
        self._grew = asyncio.Event()


class Works:
    """`run` is a background task; routes call `begin`, `find` and `cancel`."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._works: dict[str, Work] = {}
        self._waiting: dict[str, Work] = {}
        self._shares = Shares(AT_ONCE)
        self._look_at_s = 0.0
        self._changed = asyncio.Event()

    def find(self, response_id: str, owner: str) -> Work | None:
        """One of this owner that has not ended."""
        work = self._works.get(response_id)
        return work if work is not None and work.owner == owner else None

    async def begin(
        self,
        owner: str,
        asked: Asked,
        headers: dict[str, str],
        note: Callable[[Connection, str], None] | None = None,
    ) -> Work:
        """Keeps the request, and with it what `note` writes of this id, and queues it. `RateLimited`
        when too many wait, or the owner keeps as much as one may.
        """
        self._check_room(owner, len(asked.body))
        work = Work(owner, asked, headers)
        kept = Kept(work.id, owner, asked.previous_id, asked.model, asked.input, asked.envelope)
        self._works[work.id] = work

        def write(con: Connection) -> None:
            keep(con, kept, now_ms(), is_open=True)
            if note is not None:
                note(con, kept.id)

        try:
            await self._services.state.record(write)
        except BaseException:
            self._works.pop(work.id, None)
            raise
        self._waiting[work.id] = work
        self._changed.set()
        return work

    def _check_room(self, owner: str, size: int) -> None:
        mine = [work for work in self._works.values() if work.owner == owner]
        if len(mine) >= WAITING_OF_OWNER_MAX or len(self._works) >= WAITING_MAX:
            raise RateLimited(
                "Too many responses are worked on in the background.", retry_after_s=5
            )
        own = size + sum(work.size_bytes for work in mine)
        if own > WAITING_OF_OWNER_MAX_BYTES:
            raise RateLimited(
                "The responses of this caller that are worked on in the background come to more than "
                f"{WAITING_OF_OWNER_MAX_BYTES} bytes: wait for some to end.",
                retry_after_s=5,
            )
        if size + sum(work.size_bytes for work in self._works.values()) > WAITING_MAX_BYTES:
            raise RateLimited(
                "The responses that are worked on in the background come to more than "
                f"{WAITING_MAX_BYTES} bytes: try again shortly.",
                retry_after_s=5,
            )

    async def cancel(self, work: Work) -> Event:
        """Ends it; the response as it is then."""
        if not work.is_ending and not work.is_cancelled:
            work.is_cancelled = True
            self._waiting.pop(work.id, None)
            if work.task is None:
                await self._end(work, _cut(work))
            else:
                work.task.cancel()
        if work.task is not None:
            # Its last word is being kept.
            await asyncio.wait({work.task})
        return work.response

    async def run(self) -> None:
        """Lasts until it is cancelled."""
        await self._give_up()
        tasks: set[asyncio.Task[None]] = set()
        async with relay_client(self._services.config, connections=AT_ONCE) as client:
            try:
                while True:
                    self._changed.clear()
                    await self._end_revoked()
                    while (work := self._next()) is not None:
                        name = f"response {work.id}"
                        work.task = asyncio.create_task(self._do(work, client), name=name)
                        tasks.add(work.task)
                        work.task.add_done_callback(
                            _both(tasks.discard, partial(self._leave, work.owner))
                        )
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(KEYS_LOOKED_AT_EVERY_S):
                            await self._changed.wait()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for work in self._works.values():
                    # Nothing more will be told; the rows are closed at the next start.
                    work.finish()

    def _next(self) -> Work | None:
        """Whose turn it is, with a place taken for it."""
        work = self._shares.next_of(self._waiting.values(), lambda waiting: waiting.owner)
        if work is not None:
            del self._waiting[work.id]
            self._shares.take(work.owner)
        return work

    def _leave(self, owner: str, _: object) -> None:
        self._shares.give_back(owner)
        self._changed.set()

    async def _end_revoked(self) -> None:
        """Ends what is asked for by keys that are refused by now; a look now and then."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self._look_at_s:
            return
        self._look_at_s = now_s + KEYS_LOOKED_AT_EVERY_S
        key_ids = {
            work.owner.removeprefix("key:")
            for work in self._works.values()
            if work.owner.startswith("key:")
        }
        if not key_ids:
            return
        try:
            reasons = await self._services.state.read(lambda con: keys_out_of_force(con, key_ids))
        except FairleadError as error:
            # The database does not answer: what is under way needs it at its end only.
            log.warning("keys not looked at", error=error.kind)
            return
        for work in list(self._works.values()):
            reason = reasons.get(work.owner.removeprefix("key:"))
            if reason is None or work.is_ending or work.is_cancelled:
                continue
            work.revoked = reason
            work.is_cancelled = True
            self._waiting.pop(work.id, None)
            if work.task is None:
                await self._end(work, _cut(work))
            else:
                work.task.cancel()

    async def _give_up(self) -> None:
        """What another run of control began and did not end, one by one: together they may be more than
        fits the memory.
        """
        state = self._services.state
        for response_id in await state.read(open_ids):
            if response_id in self._works:
                continue
            told = await state.read(partial(open_envelope, response_id=response_id))
            if told is None:
                continue
            response = {
                **orjson.loads(told),
                "status": "failed",
                "error": {
                    "code": "server_error",
                    "message": "The gateway was restarted before the response was complete.",
                },
            }
            last = {"type": "response.failed", "sequence_number": 0, "response": response}
            await state.record(_closing(response, [("response.failed", orjson.dumps(last))]))

    async def _do(self, work: Work, client: httpx.AsyncClient) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                ended = await self._ask(work, client)
        except asyncio.CancelledError:
            if not work.is_cancelled:
                # Control goes down: the row stays open, and is closed when control is back.
                raise
            ended = _cut(work)
        except TimeoutError:
            ended = _failed(work, "timeout", f"There was no answer within {DEADLINE_S:g} s.")
        except OverflowError as error:
            ended = _failed(work, "server_error", f"The response was given up: {error}.")
        except httpx.HTTPError:
            ended = _failed(work, "server_error", "The relay did not answer.")
        except Exception as error:  # noqa: BLE001 - a defect ends this response, not the others
            log.error("background response failed", id=work.id, error=type(error).__name__)
            ended = _failed(work, "server_error", "This is a defect of fairlead; see its log.")
        await self._end(work, ended)

    async def _end(self, work: Work, response: Event) -> None:
        work.is_ending = True
        work.end(response)
        try:
            await self._services.state.record(_closing(response, work.events))
        except FairleadError as error:
            log.error("a response is not kept", id=work.id, error=error.kind)
        work.finish()
        self._works.pop(work.id, None)

    async def _ask(self, work: Work, client: httpx.AsyncClient) -> Event:
        content = await asyncio.to_thread(as_asked, work.body)
        work.response = work.now(status="in_progress")
        async with client.stream(
            "POST", "/v1/responses", content=content, headers=work.headers
        ) as answer:
            if answer.status_code != 200:
                return _failed(work, *_error_of(await answer.aread()))
            async for event in _events(answer):
                kind = event.get("type")
                if kind == "response.created":
                    continue
                if kind == "error":
                    said = str(event.get("message") or "The stream told an error.")
                    return _failed(work, str(event.get("code") or "server_error"), said)
                if isinstance(event.get("response"), dict):
                    event["response"] = self._own(work, event["response"])
                    work.response = event["response"]
                    if work.response.get("status") in ENDS:
                        return work.response
                work.tell(event)
        return _failed(work, "server_error", "The stream ended before the response was complete.")

    def _own(self, work: Work, told: Event) -> Event:
        """The relay's word on it, under our name."""
        names = ("id", "created_at", "background", "store", "previous_response_id")
        return {**told, **{name: work.response.get(name) for name in names}}


def works_of(services: Services) -> Works:
    """The process's works, made when they are first needed."""
    return services.singleton(Works, lambda: Works(services))


async def _run(services: Services) -> None:
    try:
        await works_of(services).run()
    finally:
        # Another start makes everything anew.
        services.discard(Works)


TASKS = (BackgroundTask("gateway.responses", _run),)


def headers_for(services: Services, key_id: str | None, sent: dict[str, str]) -> dict[str, str]:
    """What the relay is told: whose call it is, and what the caller said of it in the head."""
    own = {} if key_id is None else on_behalf_of(services.config, key_id)
    return {**sent, **own, "content-type": "application/json"}


def _closing(response: Event, events: list[tuple[str, bytes]]) -> Callable[[Connection], None]:
    """What writes the last word, and the telling of it."""
    whole = orjson.dumps(response).decode()
    told = b"[%s]" % b",".join(text for _, text in events)

    def write(con: Connection) -> None:
        close(con, response["id"], whole, told.decode())
        tell_end(con, response)

    return write


def _both(
    *callbacks: Callable[[asyncio.Task[None]], object],
) -> Callable[[asyncio.Task[None]], None]:
    def call(task: asyncio.Task[None]) -> None:
        for callback in callbacks:
            callback(task)

    return call


def _cut(work: Work) -> Event:
    """Cancelled by its owner, or failed because its owner is refused by now."""
    if work.revoked is not None:
        return _failed(work, "invalid_api_key", work.revoked)
    return work.now(status="cancelled")


def _failed(work: Work, code: str, message: str) -> Event:
    return work.now(status="failed", error={"code": code, "message": message})


def _error_of(body: bytes) -> tuple[str, str]:
    with contextlib.suppress(orjson.JSONDecodeError, AttributeError, TypeError):
        error = orjson.loads(body)["error"]
        return str(error.get("code") or "server_error"), str(error.get("message") or "")
    return "server_error", "The request failed."


async def _events(answer: httpx.Response) -> AsyncIterator[Event]:
    data: list[str] = []
    async for line in answer.aiter_lines():
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            for event in _parsed("\n".join(data)):
                yield event
            data = []


def _parsed(text: str) -> Iterator[Event]:
    with contextlib.suppress(orjson.JSONDecodeError):
        event = orjson.loads(text)
        if isinstance(event, dict):
            yield event

"""One background response in progress: its current object, its numbered events, and the waiting readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import orjson

from fairlead.gateway.responses.background_request import BackgroundRequest
from fairlead.gateway.responses.events import Event, frame_of
from fairlead.store.work_leases import Lease

EVENTS_MAX_BYTES: Final = 24 * 1024 * 1024
HEARTBEAT_S: Final = 15.0
KEEP_ALIVE: Final = b": keep-alive\n\n"
INTERRUPTED: Final = "The gateway was restarted before the response was complete."


class BackgroundResponse:
    """A response that is waiting or running. `response` is the object as it is now; `events` has the type and the
    JSON text of each event so far.
    """

    def __init__(self, owner: str, request: BackgroundRequest, headers: dict[str, str]) -> None:
        self.id = str(request.response["id"])
        self.owner = owner
        self.model = request.model
        self.response: Event = request.response
        self.events: list[tuple[str, bytes]] = []
        self.body = request.body
        self.headers = headers
        self.has_ended = False
        self.is_cancelled = False
        self.revoked: str | None = None
        self.is_ending = False
        self.task: asyncio.Task[None] | None = None
        self.lease: Lease | None = None
        """The right to work on it, where several controls share a database."""
        self.is_lost = False
        self._size = 0
        self._grew = asyncio.Event()
        for kind in ("created", "queued"):
            self.append({"type": f"response.{kind}", "response": self.response})

    def append(self, event: Event) -> None:
        """Adds an event under the next number. `OverflowError` when the events are too large to be stored."""
        numbered = self._numbered(event)
        if self._size + len(numbered[1]) > EVENTS_MAX_BYTES:
            raise OverflowError("the answer is too long to be kept")
        self._size += len(numbered[1])
        self.events.append(numbered)
        self._wake()

    @property
    def size_bytes(self) -> int:
        """Memory that the request and its events take."""
        return len(self.body) + self._size

    def _numbered(self, event: Event) -> tuple[str, bytes]:
        return str(event["type"]), orjson.dumps({**event, "sequence_number": len(self.events)})

    def end(self, response: Event) -> None:
        """Adds the last event. Readers still wait until `finish`, because the answer is not stored yet."""
        self.response = response
        last = {"type": f"response.{response['status']}", "response": response}
        self.events.append(self._numbered(last))

    def finish(self) -> None:
        """Lets readers leave after the last event."""
        self.has_ended = True
        self._wake()

    async def wait_until_finished(self) -> None:
        while not self.has_ended:
            await self._grew.wait()

    def changed(self, **changes: Any) -> Event:
        """The current object with these changes."""
        return {**self.response, **changes}

    def failed(self, code: str, message: str) -> Event:
        """The current object as failed with this error."""
        return self.changed(status="failed", error={"code": code, "message": message})

    def stopped(self) -> Event:
        """The current object as cancelled; as failed if its key is no longer valid, or another control has it."""
        if self.is_lost:
            return self.failed("server_error", INTERRUPTED)
        if self.revoked is not None:
            return self.failed("invalid_api_key", self.revoked)
        return self.changed(status="cancelled")

    async def frames(self, after: int) -> AsyncIterator[bytes]:
        """Every event above this number as it comes, with a comment now and then where none does."""
        async for found in self.numbered(after):
            yield KEEP_ALIVE if found is None else frame_of(*found)

    async def numbered(self, after: int) -> AsyncIterator[tuple[str, bytes] | None]:
        """The type and text of every event above this number as it comes; None after a while without one."""
        place = after + 1
        while True:
            grew = self._grew
            while place < len(self.events):
                yield self.events[place]
                place += 1
            if self.has_ended:
                return
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await grew.wait()
            except TimeoutError:
                yield None

    def _wake(self) -> None:
        self._grew.set()
        self._grew = asyncio.Event()

"""`POST /internal/link`: relay workers fetch snapshots and report their state (docs/explanation/contracts.md)."""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, Field, StrictInt, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from fairlead.control.answers import error_response
from fairlead.control.body import read_body
from fairlead.control.commands import Commands, Report
from fairlead.control.publisher import PublishedSnapshot, Publisher
from fairlead.control.relay_nodes import REMOTE_KEY
from fairlead.control.workers import Workers
from fairlead.errors import FairleadError, InvalidRequest
from fairlead.gateway.cluster.relay_node import RelayNodes
from fairlead.usage.budgets.spent import WAIT_S, NodeSums, SpentQuery, SpentSums
from fairlead.usage.telemetry.metrics import RelayCounters

LINK_PATH = "/internal/link"
HOLD_S = 2.0

# Workers report counters of every provider and connection, which is much with thousands of them.
MAX_POLL_BYTES = 64 * 1024 * 1024

# Identifies this process to the workers, which report everything again to a new one.
_CONTROL = secrets.token_hex(8).encode()

Count = Annotated[StrictInt, Field(ge=0, le=2**53)]


class Poll(BaseModel):
    """A worker's poll. `done` has the reports of commands that it has carried out."""

    worker: str = Field(pattern="^[0-9a-f]{1,64}$")
    pid: Count
    applied_version: Count
    done: list[Report] = []
    stats: dict[str, Any] = {}
    spent: SpentQuery | None = None


class Link:
    """The long-poll endpoint."""

    # Many parameters: the parts of control that a poll is for.
    def __init__(
        self,
        publisher: Publisher,
        workers: Workers,
        spending: SpentSums,
        counters: RelayCounters,
        commands: Commands,
        relay_nodes: RelayNodes,
    ) -> None:
        self._publisher = publisher
        self._workers = workers
        self._commands = commands
        self._relay_nodes = relay_nodes
        self._spending = spending
        self._counters = counters

    async def answer(self, request: Request) -> Response:
        try:
            poll = Poll.model_validate(
                orjson.loads(await read_body(request.receive, MAX_POLL_BYTES))
            )
        except FairleadError as error:
            return error_response(error, None)
        except (ValidationError, ValueError):
            return error_response(InvalidRequest("The poll cannot be read."), None)
        answered = False
        sums: list[int] | None = None
        by_node: list[NodeSums] = []
        self._commands.report(poll.done)
        is_remote = bool(request.scope.get(REMOTE_KEY, False))
        # The number of a process elsewhere says nothing here.
        pid = None if is_remote else poll.pid
        self._workers.poll_begins(poll.worker, pid, poll.applied_version, poll.stats)
        self._counters.observe(poll.worker, poll.stats)
        try:
            if poll.spent is None:
                # Answered at once where there is a snapshot, the first poll tells a worker that control is there.
                is_first = self._workers.is_new(poll.worker) and self._publisher.current.version > 0
                answered = is_first or await self._hold(poll, request.receive)
                if answered and is_remote and self._is_cut_off():
                    # It does not know what the others have stored. Unanswered, the worker asks one of them.
                    await _until_gone(request.receive)
                    answered = False
            else:
                # The worker admits no paid call before it has these.
                if not is_remote or await self._relay_nodes.have_brought_all(WAIT_S):
                    sums, by_node = await self._spending.shared_sums(
                        poll.worker, poll.spent, self._workers.pids()
                    )
                answered = True
        except FairleadError as error:
            return error_response(error, None)
        finally:
            self._workers.poll_ends(poll.worker, answered=answered)
        return Response(
            _answer(
                self._publisher.current,
                poll.applied_version,
                (sums, by_node),
                self._commands.take(poll.worker) if answered else [],
            ),
            media_type="application/json",
        )

    def _is_cut_off(self) -> bool:
        peers = self._publisher.peers
        return peers is not None and peers.is_cut_off()

    async def _hold(self, poll: Poll, receive: Receive) -> bool:
        """Waits for a snapshot, a command or the end of the hold; False when the worker disconnected."""
        news = asyncio.ensure_future(self._publisher.newer_than(poll.applied_version, HOLD_S))
        command = asyncio.ensure_future(self._commands.arrive(poll.worker))
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait((news, command, gone), return_when=asyncio.FIRST_COMPLETED)
            return not gone.done()
        finally:
            for each in (news, command, gone):
                each.cancel()
            await asyncio.wait((news, command, gone))


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _answer(
    published: PublishedSnapshot,
    applied_version: int,
    spent: tuple[list[int] | None, list[NodeSums]],
    commands: list[dict[str, Any]],
) -> bytes:
    head = b'{"version":%d,"control":"%s",' % (published.version, _CONTROL)
    sums, by_node = spent
    if sums is not None:
        head += b'"spent":' + orjson.dumps(sums) + b","
    if by_node:
        head += b'"spent_by_node":' + orjson.dumps(by_node) + b","
    if published.version > applied_version:
        head += b'"snapshot":' + published.document + b","
    return head + b'"commands":' + orjson.dumps(commands) + b"}"

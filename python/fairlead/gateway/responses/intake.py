"""Stores the responses that relay workers have answered: from the spool into the database.

A relay worker appends a finished response to a segment in `spool/responses` before the answer ends. `run` stores sealed
segments, many responses in one transaction, and deletes them. The transaction stores the segments' names too, so a
segment that is read again after a crash is not stored twice.

A caller may ask for a response that was answered a moment ago. Who finds none calls `catch_up` and looks again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import orjson
import structlog

from fairlead.errors import FairleadError, NotFound, StorageUnavailable
from fairlead.gateway.cluster.relay_node import RelayNodes
from fairlead.gateway.responses.table import StoredResponse, insert_responses, sweep_responses
from fairlead.moment import now_ms
from fairlead.process.fsync import write_whole
from fairlead.store.connection import Connection
from fairlead.store.segment import OPEN, SEALED, Segment, read_segments
from fairlead.store.services import BackgroundTask, Services
from fairlead.store.spool_watch import SpoolWatch

FOLDER: Final = "responses"
# A round costs ten milliseconds beside what its responses cost.
ROUND_EVERY_S: Final = 1.0
SWEEP_EVERY_S: Final = 10.0
NAMES_KEPT_MS: Final = 24 * 3_600_000
# A living worker seals a segment a tenth of a second after its first response.
CATCH_UP_S: Final = 2.0
LOOK_EVERY_S: Final = 0.01

T = TypeVar("T")
Rows = list[tuple[StoredResponse, int]]
# The name of a segment, or of a part of one, and its responses.
Batch = tuple[str, Rows]

log = structlog.get_logger("fairlead.gateway")


def responses_folder(data_dir: Path) -> Path:
    """The folder of the segments."""
    return data_dir / "spool" / FOLDER


class ResponseIntake:
    """Takes in the segments of this node. One object for the process; `run` is a background task."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._folder = responses_folder(services.data_dir)
        self._one_round = asyncio.Lock()
        self._one_question = asyncio.Lock()
        self._asked_s = 0.0
        self._swept_s = 0.0
        self._has_stored = True

    async def run(self) -> None:
        """Stores what comes until it is cancelled. Raises when the database does not answer; nothing is lost then."""
        await asyncio.to_thread(self._folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        with SpoolWatch(self._folder) as watch:
            while True:
                watch.begin_look()
                taken = await self._round()
                await self._sweep()
                if taken:
                    await asyncio.sleep(ROUND_EVERY_S)
                else:
                    await watch.wait()

    async def catch_up(self) -> None:
        """Returns when every response that was answered before the call, at any node, is stored.

        `StorageUnavailable` when a node does not say so in time.
        """
        began_s = time.monotonic()
        async with self._one_question:
            if self._asked_s > began_s:
                # Another caller asked after this one had begun to wait.
                return
            asked_s = time.monotonic()
            await self.catch_up_here()
            peers = self._services.peers
            if peers is not None and not await peers.stored_responses(CATCH_UP_S):
                raise StorageUnavailable(
                    "Another node has not stored its newest responses yet: try again.",
                    retry_after_s=1,
                )
            self._asked_s = asked_s

    async def catch_up_here(self) -> None:
        """Returns when the responses that this node's relays answered before the call are stored."""
        nodes = self._services.existing(RelayNodes)
        if nodes is not None and nodes.views() and not await nodes.have_brought_all(CATCH_UP_S):
            raise StorageUnavailable(
                "A relay has not brought its newest responses yet: try again.", retry_after_s=1
            )
        missing = await asyncio.to_thread(_names, self._folder)
        try:
            async with asyncio.timeout(CATCH_UP_S):
                while missing:
                    await self._round()
                    missing &= await asyncio.to_thread(_names, self._folder)
                    if missing:
                        # A living worker has not sealed its segment yet.
                        await asyncio.sleep(LOOK_EVERY_S)
        except TimeoutError:
            raise StorageUnavailable(
                "The newest responses are not stored yet: try again.", retry_after_s=1
            ) from None

    async def _round(self) -> int:
        """Stores the segments that may be read; the number of them."""
        async with self._one_round:
            segments = await asyncio.to_thread(read_segments, self._folder)
            if not segments:
                return 0
            parsed = await asyncio.to_thread(_parse, segments)
            await self._store(
                [(each.name, rows) for each, rows in zip(segments, parsed, strict=True)]
            )
            await asyncio.to_thread(_delete, segments)
            self._has_stored = True
            return len(segments)

    async def _store(self, batches: Sequence[Batch]) -> None:
        """Stores segments. A response that the database refuses is left out, and blocks nothing."""
        try:
            await self._services.state.record(partial(_store_segments, batches=batches))
        except FairleadError:
            # The database does not answer: the round is repeated.
            raise
        except Exception as error:  # noqa: BLE001 - what is wrong with one response is not wrong with the others
            halves = _halves(batches)
            if not halves:
                name, [(response, _)] = batches[0]
                reason = type(error).__name__
                log.error("a response cannot be stored", segment=name, id=response.id, error=reason)
                return
            for half in halves:
                await self._store(half)

    async def _sweep(self) -> None:
        """Every few seconds, after new responses: deletes what is too old or too much."""
        now_s = time.monotonic()
        if not self._has_stored or now_s - self._swept_s < SWEEP_EVERY_S:
            return
        self._swept_s, self._has_stored = now_s, False
        await self._services.state.record(lambda con: _sweep(con, now_ms()))


def response_intake(services: Services) -> ResponseIntake:
    """The process's object, made when it is first needed."""
    return services.singleton(ResponseIntake, lambda: ResponseIntake(services))


async def read_stored(services: Services, read: Callable[[Connection], T]) -> T:
    """Reads stored responses. If one is not found, the newest responses are stored first and it is read again."""
    try:
        return await services.state.read(read)
    except NotFound:
        await response_intake(services).catch_up()
        return await services.state.read(read)


def parse_responses(data: bytes) -> Iterator[tuple[StoredResponse, int]]:
    """The responses of a segment, each with the time of its answer. A last one that is not whole is left out.

    `ValueError` where a response does not begin as it must.
    """
    at = 0
    while (end := data.find(b"\n", at)) >= 0:
        head = orjson.loads(data[at:end])
        input_end = end + 1 + int(head["input_bytes"])
        response_end = input_end + int(head["response_bytes"])
        if data[response_end : response_end + 1] != b"\n":
            return
        yield (
            StoredResponse(
                head["id"],
                head["owner"],
                head["previous"],
                head["model"],
                data[end + 1 : input_end].decode(),
                data[input_end:response_end].decode(),
            ),
            int(head["at_ms"]),
        )
        at = response_end + 1


def _parse(segments: Sequence[Segment]) -> list[Rows]:
    parsed: list[Rows] = []
    for segment in segments:
        rows: Rows = []
        try:
            rows.extend(parse_responses(segment.data))
        except (ValueError, KeyError, TypeError) as error:
            # A damaged file is moved aside for the operator, so that it blocks nothing.
            aside = segment.path.with_suffix(".damaged")
            write_whole(aside, segment.data, new=aside.with_suffix(".new"))
            log.error("a segment of responses is damaged", segment=segment.name, error=str(error))
        parsed.append(rows)
    return parsed


def _store_segments(con: Connection, batches: Sequence[Batch]) -> None:
    names = [name for name, _ in batches]
    known = {
        row[0]
        for row in con.execute(
            "SELECT name FROM response_segments WHERE name IN (SELECT unnest(?::VARCHAR[]))",
            [names],
        ).fetchall()
    }
    fresh = [(name, rows) for name, rows in batches if name not in known]
    if not fresh:
        return
    insert_responses(con, [row for _, rows in fresh for row in rows])
    con.execute(
        "INSERT INTO response_segments (name, stored_at_ms) SELECT unnest(?::VARCHAR[]), ?",
        [[name for name, _ in fresh], now_ms()],
    )


def _halves(batches: Sequence[Batch]) -> list[Sequence[Batch]]:
    """Two smaller parts of a round that the database refuses; none where there is one response left."""
    if len(batches) > 1:
        half = len(batches) // 2
        return [batches[:half], batches[half:]]
    name, rows = batches[0]
    if len(rows) < 2:
        return []
    half = len(rows) // 2
    return [[(f"{name}-a", rows[:half])], [(f"{name}-b", rows[half:])]]


def _sweep(con: Connection, at_ms: int) -> None:
    sweep_responses(con, at_ms)
    con.execute("DELETE FROM response_segments WHERE stored_at_ms < ?", [at_ms - NAMES_KEPT_MS])


def _names(folder: Path) -> set[str]:
    """The existing segments, sealed or not."""
    with contextlib.suppress(FileNotFoundError):
        return {each.stem for each in folder.iterdir() if each.suffix in (OPEN, SEALED)}
    return set()


def _delete(segments: Sequence[Segment]) -> None:
    for segment in segments:
        segment.path.unlink(missing_ok=True)


async def _run(services: Services) -> None:
    await response_intake(services).run()


TASKS = (BackgroundTask("gateway.responses.intake", _run),)

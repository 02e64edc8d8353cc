"""The controls of one database: which of them live, and which snapshot the relays of each have applied.

Each has a row in `control_nodes` that it renews; the times are the server's, since clocks differ. NOTIFY
announces a change of state. A message may be lost (with its connection, or while a process hangs), so each
renewal also reads the version of the newest snapshot, and a new connection counts as a change.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

import psycopg
import structlog

from fairlead import __version__
from fairlead.errors import FairleadError, StorageUnavailable
from fairlead.store.peers import NodeRow
from fairlead.store.postgresql.channels import (
    APPLIED,
    RESPONSES,
    STATE,
    AsyncRaw,
    connect_async,
    fetch,
)
from fairlead.store.postgresql.leases import Leases
from fairlead.store.postgresql.locks import Locks

T = TypeVar("T")

BEAT_EVERY_S: Final = 1.0
# A relay whose control stands still or is cut off gives it up seven seconds after that, and asks another: until then a
# write must not say that it is in force everywhere.
LIVE_FOR_MS: Final = 12_000
CUT_OFF_AFTER_S: Final = 2.5
# After a failure of the database, all are back within this time.
RETURN_WITHIN_S: Final = 8.0
FORGET_AFTER_MS: Final = 24 * 3_600_000
# Changes of others that come within this are noticed once.
QUIET_S: Final = 0.05
LEAVE_WITHIN_S: Final = 1.0
LIVE_WITHIN_S: Final = 3.0

_NOW: Final = "epoch_ms(clock_timestamp())"
_BEAT: Final = f"""
WITH beat AS (
    INSERT INTO control_nodes (id, host, fairlead_version, started_at_ms, seen_at_ms, applied_version, report)
    VALUES ($1, $2, $3, {_NOW}, {_NOW}, $4, $5)
    ON CONFLICT (id) DO UPDATE SET
        seen_at_ms = excluded.seen_at_ms, applied_version = excluded.applied_version, report = excluded.report
)
SELECT coalesce(max(version), 0), (
    SELECT count(*) FROM control_nodes WHERE id <> $1 AND seen_at_ms > {_NOW} - {LIVE_FOR_MS}
), {_NOW} FROM published_snapshots
"""
_BEHIND: Final = f"""
SELECT count(*) FROM control_nodes
WHERE id <> $1 AND applied_version < $2 AND seen_at_ms > {_NOW} - $3::BIGINT
"""
_ASK: Final = """
SELECT moment, pg_notify($1, moment::TEXT)
FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT AS moment) AS asked
"""
_UNSTORED: Final = f"""
SELECT count(*) FROM control_nodes
WHERE id <> $1 AND coalesce(responses_stored_until, 0) < $2 AND seen_at_ms > {_NOW} - {LIVE_FOR_MS}
"""
_STORED: Final = """
UPDATE control_nodes SET responses_stored_until = greatest(coalesce(responses_stored_until, 0), $2) WHERE id = $1
"""

log = structlog.get_logger("fairlead.store")


class LocalNode(Protocol):
    """This process, as the others see it."""

    def applied_version(self) -> int:
        """The snapshot that all of its live relays have applied."""

    def report(self) -> str:
        """The report of this process that every node shows, as JSON."""

    async def wait_for_poll(self, within_s: float) -> None:
        """Waits until a relay reports, for at most so many seconds."""

    def state_changed(self) -> None:
        """Another process has written."""

    async def store_responses(self) -> None:
        """Stores the responses that the relays here have answered so far; `FairleadError`."""

    async def published(self, version: int) -> None:
        """Another process has compiled a version that is newer than all before."""


class Nodes:
    """`fairlead.store.peers.Peers` over PostgreSQL. `run`, `locks.run` and `leases.run` belong to background tasks."""

    def __init__(self, url: str, process: str, here: LocalNode) -> None:
        self.locks = Locks(url)
        self.leases = Leases(url, process)
        self._url = url
        self._process = process
        self._here = here
        self._raw: AsyncRaw | None = None
        self._others = 0
        self._beat_s = 0.0
        """When the last beat was sent that the others could see."""
        self._seen_ms = 0
        """When that was by the server's clock."""
        self._missed_ms = 0
        """How long nobody could see this process before its connection was made again, and when that was."""
        self._returned_s = 0.0
        self._others_applied = asyncio.Event()
        self._noticed = asyncio.Event()
        self._is_asked = asyncio.Event()
        self._asked_at = 0
        """The latest moment that another asked for."""

    async def run(self) -> None:
        """Listens and renews this process's row, until cancelled or a connection is lost."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            group.create_task(self._renew())
            group.create_task(self._notice())
            group.create_task(self._answer())

    async def applied(self, version: int, deadline_s: float) -> bool:
        """Waits until every other live control has applied a snapshot; False at the deadline."""
        try:
            async with asyncio.timeout(deadline_s):
                while True:
                    change = self._others_applied
                    if self._raw is None or not await self._behind(self._raw, version):
                        return self._raw is not None
                    await change.wait()
        except (TimeoutError, psycopg.OperationalError):
            return False

    async def stored_responses(self, deadline_s: float) -> bool:
        """Waits until every other live control has stored what its relays answered; False at the deadline."""
        raw = self._raw
        if raw is None:
            return False
        try:
            async with asyncio.timeout(deadline_s):
                ((moment, _),) = await fetch(raw, _ASK, [RESPONSES])
                while True:
                    change = self._others_applied
                    ((count,),) = await fetch(raw, _UNSTORED, [self._process, moment])
                    if not count:
                        return True
                    await change.wait()
        except (TimeoutError, psycopg.OperationalError):
            return False

    def is_cut_off(self) -> bool:
        """Whether there are others, and the last beat is long ago."""
        return self._others > 0 and time.monotonic() - self._beat_s > CUT_OFF_AFTER_S

    async def alone(self, name: str, run: Callable[[], Awaitable[T]]) -> T:
        """Runs what only one of the controls may do at a time."""
        return await self.locks.alone(name, run)

    async def live(self) -> list[NodeRow]:
        """The live controls, this one included."""
        raw = self._raw
        try:
            if raw is None:
                raise TimeoutError
            async with asyncio.timeout(LIVE_WITHIN_S):
                found = await fetch(
                    raw,
                    "SELECT id, host, fairlead_version, started_at_ms, "
                    f"greatest(0, {_NOW} - seen_at_ms), applied_version, report FROM control_nodes "
                    f"WHERE seen_at_ms > {_NOW} - {LIVE_FOR_MS} ORDER BY started_at_ms, id",
                )
                return [NodeRow(*row) for row in found]
        except (psycopg.Error, TimeoutError):
            raise StorageUnavailable("The database does not answer.", retry_after_s=1) from None

    async def _behind(self, raw: AsyncRaw, version: int) -> bool:
        live_for_ms = LIVE_FOR_MS
        if time.monotonic() - self._returned_s < RETURN_WITHIN_S:
            # The database may have been away for all: who lived then serves by what it knew, and comes back soon.
            live_for_ms += self._missed_ms
        ((count,),) = await fetch(raw, _BEHIND, [self._process, version, live_for_ms])
        return bool(count)

    # --- listening

    async def _listen(self) -> None:
        async with await connect_async(self._url, "listener") as raw:
            for channel in (STATE, APPLIED, RESPONSES):
                await raw.execute(f"LISTEN {channel}")
            # Whatever was said before this is lost.
            self._noticed.set()
            while True:
                async for message in raw.notifies(timeout=BEAT_EVERY_S):
                    if message.payload == self._process:
                        continue
                    if message.channel == STATE:
                        self._noticed.set()
                    elif message.channel == RESPONSES:
                        self._asked_at = max(self._asked_at, int(message.payload))
                        self._is_asked.set()
                    else:
                        self._others_applied.set()
                        self._others_applied = asyncio.Event()
                # Finds a connection that is dead without having said so.
                await raw.execute("SELECT 1")

    async def _notice(self) -> None:
        while True:
            await self._noticed.wait()
            self._noticed.clear()
            self._here.state_changed()
            await self._read_version()
            await asyncio.sleep(QUIET_S)

    async def _answer(self) -> None:
        """Stores what the relays here have answered, when another control asks for it, and says so."""
        while True:
            await self._is_asked.wait()
            self._is_asked.clear()
            asked_at, raw = self._asked_at, self._raw
            try:
                await self._here.store_responses()
            except FairleadError as error:
                # The caller is asked to try again.
                log.warning("responses not stored for another node", error=error.kind)
                continue
            if raw is not None:
                await raw.execute(_STORED, [self._process, asked_at])
                await raw.execute("SELECT pg_notify($1, $2)", [APPLIED, self._process])

    async def _read_version(self) -> None:
        if self._raw is not None:
            found = await self._raw.execute(
                "SELECT coalesce(max(version), 0) FROM published_snapshots"
            )
            row = await found.fetchone()
            await self._here.published(int(row[0]) if row else 0)

    # --- being seen

    async def _renew(self) -> None:
        async with await connect_async(self._url, "heartbeat") as raw:
            await raw.execute(
                f"DELETE FROM control_nodes WHERE seen_at_ms < {_NOW} - {FORGET_AFTER_MS}"
            )
            try:
                await self._beat_on(raw)
            finally:
                self._raw = None
                await self._deregister(raw)

    async def _beat_on(self, raw: AsyncRaw) -> None:
        loop = asyncio.get_running_loop()
        published, published_s = -1, loop.time()
        while True:
            applied = self._here.applied_version()
            if applied != published or loop.time() - published_s >= BEAT_EVERY_S:
                sent_s = time.monotonic()
                of_itself = (self._process, socket.gethostname(), __version__)
                found = await raw.execute(_BEAT, [*of_itself, applied, self._here.report()])
                row = await found.fetchone()
                self._beat_s, self._others = sent_s, int(row[1]) if row else 0
                self._note_seen(raw, int(row[2]) if row else 0)
                if applied != published:
                    await raw.execute("SELECT pg_notify($1, $2)", [APPLIED, self._process])
                published, published_s = applied, loop.time()
                await self._here.published(int(row[0]) if row else 0)
            else:
                await self._here.wait_for_poll(BEAT_EVERY_S)

    def _note_seen(self, raw: AsyncRaw, now_ms: int) -> None:
        if self._raw is None:
            self._missed_ms = max(0, now_ms - self._seen_ms) if self._seen_ms else 0
            self._returned_s = time.monotonic()
            self._raw = raw
        self._seen_ms = now_ms

    async def _deregister(self, raw: AsyncRaw) -> None:
        """Says that this process ends, so that no write of another waits for it."""
        with contextlib.suppress(psycopg.Error, TimeoutError):
            async with asyncio.timeout(LEAVE_WITHIN_S):
                await fetch(raw, "DELETE FROM control_nodes WHERE id = $1", [self._process])

"""Leases of work over PostgreSQL: taken by one statement, renewed by a background task, lost by who does not renew.

Times are the server's. A node believes in a lease for less long than the server does, by its own clock from when it
asked, so that a node that was cut off has stopped before another begins.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Collection, Iterable
from typing import Any, Final

import psycopg
import structlog

from fairlead.errors import StorageUnavailable
from fairlead.store.postgresql.channels import AsyncRaw, connect_async, fetch
from fairlead.store.work_leases import Lease, clock_s

LEASE_MS: Final = 20_000
# A node renews a lease, and gives up one that it could not renew, after such parts of its length.
RENEW_AFTER: Final = 0.2
STOP_AFTER: Final = 0.85
LOOK_EVERY_S: Final = 0.5
CALL_WITHIN_S: Final = 6.0
FORGET_AFTER_MS: Final = 3_600_000

_NOW: Final = "epoch_ms(clock_timestamp())"
_TAKE: Final = f"""
WITH asked AS (
    SELECT unnest($2::VARCHAR[]) AS item_id, unnest($3::VARCHAR[]) AS token
), free AS (
    SELECT item_id FROM work_leases JOIN asked USING (item_id)
    WHERE kind = $1 AND (expires_at_ms < {_NOW} OR holder = $4)
    FOR UPDATE OF work_leases SKIP LOCKED
), taken AS (
    UPDATE work_leases l SET holder = $4, token = a.token, expires_at_ms = {_NOW} + $5::BIGINT
    FROM asked a JOIN free f ON f.item_id = a.item_id
    WHERE l.kind = $1 AND l.item_id = a.item_id
    RETURNING l.token
), fresh AS (
    INSERT INTO work_leases (kind, item_id, holder, token, expires_at_ms)
    SELECT $1, a.item_id, $4, a.token, {_NOW} + $5::BIGINT FROM asked a
    WHERE NOT EXISTS (SELECT 1 FROM work_leases l WHERE l.kind = $1 AND l.item_id = a.item_id)
    ON CONFLICT DO NOTHING
    RETURNING token
)
SELECT token FROM taken UNION ALL SELECT token FROM fresh
"""
_RENEW: Final = f"""
UPDATE work_leases SET expires_at_ms = {_NOW} + $2::BIGINT WHERE token = ANY($1::VARCHAR[]) RETURNING token
"""

log = structlog.get_logger("fairlead.store")


class Leases:
    """`fairlead.store.peers.WorkLeases`. `run` belongs to a background task."""

    def __init__(self, url: str, process: str, length_ms: int = LEASE_MS) -> None:
        self.length_ms = length_ms
        self._url = url
        self.holder = process
        self._raw: AsyncRaw | None = None
        self._leases: dict[str, Lease] = {}

    async def run(self) -> None:
        """Renews what is held, and gives up what could not be renewed in time, until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._stay_connected())
            group.create_task(self._watch())

    async def take(self, kind: str, item_ids: Collection[str]) -> dict[str, Lease]:
        """Leases of those items that nobody else has."""
        item_of_token = {secrets.token_hex(12): item_id for item_id in item_ids}
        good_until_s = self._good_until_s()
        rows = await self._query(
            _TAKE,
            [kind, list(item_of_token.values()), list(item_of_token), self.holder, self.length_ms],
        )
        leases = [Lease(kind, item_of_token[token], token, good_until_s) for (token,) in rows]
        for lease in leases:
            self._leases[lease.token] = lease
        return {lease.item_id: lease for lease in leases}

    def begin(self, kind: str, item_id: str) -> Lease:
        """A lease of an item that is about to be stored; `insert_lease` stores it with the item."""
        lease = Lease(kind, item_id, secrets.token_hex(12), self._good_until_s())
        self._leases[lease.token] = lease
        return lease

    async def held_elsewhere(self, kind: str) -> set[str]:
        """The items of a kind that other controls work on."""
        rows = await self._query(
            f"SELECT item_id FROM work_leases WHERE kind = $1 AND holder <> $2 AND expires_at_ms >= {_NOW}",
            [kind, self.holder],
        )
        return {str(item_id) for (item_id,) in rows}

    async def release(self, leases: Iterable[Lease]) -> None:
        """Returns leases. If the server does not answer, they expire."""
        tokens = [lease.token for lease in leases]
        for token in tokens:
            self._leases.pop(token, None)
        if tokens:
            with contextlib.suppress(StorageUnavailable):
                await self._query(
                    "DELETE FROM work_leases WHERE token = ANY($1::VARCHAR[]) RETURNING token",
                    [tokens],
                )

    def lease_counts(self) -> dict[str, int]:
        """How many leases of each kind this process has."""
        counts: dict[str, int] = {}
        for lease in self._leases.values():
            counts[lease.kind] = counts.get(lease.kind, 0) + 1
        return counts

    # --- the task

    async def _stay_connected(self) -> None:
        while True:
            try:
                async with await connect_async(self._url, "leases") as raw:
                    self._raw = raw
                    await self._query(
                        "DELETE FROM work_leases WHERE expires_at_ms < "
                        f"{_NOW} - {FORGET_AFTER_MS} RETURNING token",
                        [],
                    )
                    while True:
                        await self._renew()
                        await asyncio.sleep(self.length_ms / 1000 * RENEW_AFTER)
            except (psycopg.Error, StorageUnavailable) as error:
                log.warning("leases of work cannot be renewed", error=type(error).__name__)
            finally:
                self._raw = None
            await asyncio.sleep(LOOK_EVERY_S)

    async def _renew(self) -> None:
        tokens = list(self._leases)
        if not tokens:
            # Finds a connection that is dead without having said so.
            await self._query("SELECT 1", [])
            return
        good_until_s = self._good_until_s()
        renewed = {token for (token,) in await self._query(_RENEW, [tokens, self.length_ms])}
        for token in tokens:
            lease = self._leases.get(token)
            if lease is None:
                continue
            if token in renewed:
                lease.good_until_s = good_until_s
            elif not lease.is_good():
                self._mark_lost(lease)

    async def _watch(self) -> None:
        while True:
            for lease in [each for each in self._leases.values() if not each.is_good()]:
                self._mark_lost(lease)
            await asyncio.sleep(LOOK_EVERY_S)

    def _mark_lost(self, lease: Lease) -> None:
        self._leases.pop(lease.token, None)
        log.warning("a lease of work is lost", kind=lease.kind, item=lease.item_id)
        lease.on_lost()

    async def _query(self, query: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
        raw = self._raw
        if raw is None:
            raise StorageUnavailable("The database does not answer.", retry_after_s=1)
        try:
            async with asyncio.timeout(CALL_WITHIN_S):
                return await fetch(raw, query, parameters)
        except (psycopg.Error, TimeoutError) as error:
            raise StorageUnavailable(
                f"The database does not answer ({type(error).__name__}).", retry_after_s=1
            ) from None

    def _good_until_s(self) -> float:
        return clock_s() + self.length_ms / 1000 * STOP_AFTER

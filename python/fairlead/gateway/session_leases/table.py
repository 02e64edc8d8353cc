"""The table `session_leases`: one row per leased connection. Rows that have expired say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fairlead.errors import Conflict, LeaseStale, LeaseUnavailable
from fairlead.gateway.session_leases.fields import TTL_S
from fairlead.store.file import Connection
from fairlead.store.meta import count_up
from fairlead.store.table import Table

NEWEST: Final = "session_lease"
RETRY_AFTER_MOST_S: Final = 30


@dataclass(frozen=True, slots=True)
class Owner:
    """The session that holds a lease: its key, and the SHA-256 of the name that it keeps secret."""

    key_id: str
    name_hash: str


@dataclass(frozen=True, slots=True)
class StoredLease:
    """A row of the table."""

    connection_id: str
    key_id: str
    owner_hash: str
    model: str
    generation: int
    expires_at_ms: int

    @property
    def owner(self) -> Owner:
        return Owner(self.key_id, self.owner_hash)


_LEASES: Final = Table("session_leases", StoredLease)


def live_leases(con: Connection, at_ms: int) -> list[StoredLease]:
    """Every lease that holds."""
    return _LEASES.select(con, "WHERE expires_at_ms > ?", at_ms)


def find_lease(con: Connection, owner: Owner, at_ms: int) -> StoredLease | None:
    """The lease that the session has."""
    return next((one for one in live_leases(con, at_ms) if one.owner == owner), None)


def acquire(
    con: Connection, owner: Owner, model: str, candidates: Sequence[str], at_ms: int
) -> StoredLease:
    """Leases the first of these connections that is free, in the writer. A session that has one of
    them already keeps it. `LeaseUnavailable` where none is free, `Conflict` where the session has
    another one.
    """
    con.execute("DELETE FROM session_leases WHERE expires_at_ms <= ?", [at_ms])
    leases = live_leases(con, at_ms)
    own = next((one for one in leases if one.owner == owner), None)
    if own is not None:
        if own.connection_id in candidates:
            return _extend(con, own, at_ms)
        raise Conflict(
            f"The session has a lease for `{own.model}`: release that one first.", param="model"
        )
    taken = {one.connection_id: one for one in leases}
    free = next((each for each in candidates if each not in taken), None)
    if free is None:
        soonest_ms = min(taken[each].expires_at_ms for each in candidates) - at_ms
        wait_s = max(1, min(RETRY_AFTER_MOST_S, -(-soonest_ms // 1000)))
        raise LeaseUnavailable(
            f"Every connection that may serve `{model}` is leased.",
            retry_after_s=wait_s,
            extra={"state": "WAITING_FOR_CAPACITY", "retryAfter": wait_s},
        )
    lease = StoredLease(
        free, owner.key_id, owner.name_hash, model, count_up(con, NEWEST), at_ms + TTL_S * 1000
    )
    _LEASES.insert(con, lease)
    return lease


def renew(con: Connection, owner: Owner, generation: int, at_ms: int) -> StoredLease:
    """Lets a lease last again, in the writer; `LeaseStale` where the session has no such lease."""
    return _extend(con, _own_lease(con, owner, generation, at_ms), at_ms)


def release(con: Connection, owner: Owner, generation: int, at_ms: int) -> StoredLease:
    """Gives a connection back, in the writer; `LeaseStale` where the session has no such lease."""
    lease = _own_lease(con, owner, generation, at_ms)
    con.execute("DELETE FROM session_leases WHERE generation = ?", [generation])
    return lease


def add_leases(con: Connection, connections: list[dict[str, Any]], at_ms: int) -> None:
    """Adds the leases to the connections of a snapshot."""
    leases = {one.connection_id: one for one in live_leases(con, at_ms)}
    for connection in connections:
        if lease := leases.get(connection["id"]):
            connection["lease"] = {
                "key_id": lease.key_id,
                "owner_hash": lease.owner_hash,
                "generation": lease.generation,
                "until_ms": lease.expires_at_ms,
            }


def _own_lease(con: Connection, owner: Owner, generation: int, at_ms: int) -> StoredLease:
    lease = find_lease(con, owner, at_ms)
    if lease is None or lease.generation != generation:
        raise LeaseStale(
            "The lease is over, or another one took its place: acquire one.", param="generation"
        )
    return lease


def _extend(con: Connection, lease: StoredLease, at_ms: int) -> StoredLease:
    longer = replace(lease, expires_at_ms=at_ms + TTL_S * 1000)
    con.execute(
        "UPDATE session_leases SET expires_at_ms = ? WHERE generation = ?",
        [longer.expires_at_ms, lease.generation],
    )
    return longer

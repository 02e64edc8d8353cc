"""Leases of work: where several controls share a database, one of them works on an item, until its lease ends.

A control that stood still may come back when another has taken over what it worked on. So each write on behalf of an
item asks in its own transaction whether the lease is still this one (`fenced`); and what is written elsewhere, to a
file, asks the clock before (`check_lease`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, TypeVar

from fairlead.errors import StorageUnavailable
from fairlead.store.connection import Connection, Transaction

T = TypeVar("T")

# It advances while the machine is suspended, and nobody sets it.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class LeaseLost(StorageUnavailable):
    """Another control may work on the item by now; this one must not write for it any more."""


@dataclass(slots=True)
class Lease:
    """The right to work on an item. Without a message from the server it is good until `good_until_s` of `clock_s`."""

    kind: str
    item_id: str
    token: str
    good_until_s: float
    on_lost: Callable[[], None] = field(default=lambda: None)

    def is_good(self) -> bool:
        """Whether nobody else can have it yet, by this machine's clock."""
        return clock_s() < self.good_until_s


_current: ContextVar[Lease | None] = ContextVar("current_lease", default=None)


def clock_s() -> float:
    """Seconds since this machine was started, also those in which it slept."""
    return time.clock_gettime(_CLOCK)


@contextmanager
def working_under(lease: Lease | None) -> Iterator[None]:
    """Statements inside are made on behalf of the lease's item."""
    before = _current.set(lease)
    try:
        yield
    finally:
        _current.reset(before)


def check_lease() -> None:
    """Raises `LeaseLost` where the caller works under a lease that has ended."""
    lease = _current.get()
    if lease is not None and not lease.is_good():
        raise _lost(lease)


def has_lease() -> bool:
    """Whether the caller works under a lease."""
    return _current.get() is not None


def fenced(transaction: Transaction[T]) -> Transaction[T]:
    """The transaction, which does nothing and raises `LeaseLost` once another control has the caller's lease."""
    lease = _current.get()
    if lease is None:
        return transaction

    def check_and_run(con: Connection) -> T:
        # Locked, so that nobody takes the lease before this transaction has ended.
        found = con.execute(
            "SELECT 1 FROM work_leases WHERE kind = ? AND item_id = ? AND token = ? FOR SHARE",
            [lease.kind, lease.item_id, lease.token],
        ).fetchone()
        if found is None:
            raise _lost(lease)
        return transaction(con)

    return check_and_run


def kept_tokens(con: Connection, leases: Collection[Lease]) -> set[str]:
    """The tokens of those leases that no other control has taken, nor may before this transaction has ended."""
    rows = con.execute(
        "SELECT token FROM work_leases WHERE token IN (SELECT unnest(?::VARCHAR[])) FOR SHARE",
        [sorted({lease.token for lease in leases})],
    ).fetchall()
    return {str(token) for (token,) in rows}


def insert_lease(con: Connection, lease: Lease, holder: str, length_ms: int) -> None:
    """Stores a lease of a new item, in the transaction that stores the item."""
    con.execute(
        "INSERT INTO work_leases (kind, item_id, holder, token, expires_at_ms) "
        "VALUES (?, ?, ?, ?, epoch_ms(clock_timestamp()) + ?::BIGINT)",
        [lease.kind, lease.item_id, holder, lease.token, length_ms],
    )


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost(f"Another node works on this {lease.kind} by now.", retry_after_s=5)

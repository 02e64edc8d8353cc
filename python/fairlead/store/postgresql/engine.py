"""PostgreSQL behind a `Database`: a pool of connections, and what is tried again.

Writes are SERIALIZABLE, so that what the tables' functions check by a SELECT before they write holds between
processes too: a code is spent once, a name is taken once, however many controls are asked. Two transactions that
would break this do not wait for each other; one of them fails, and is run again here, at most `ATTEMPTS_MAX` times.
Reads see one moment (REPEATABLE READ), as they do in a file.

A transaction that had not come to its COMMIT when its connection was lost is run again as well. One that had may
be stored, and is reported.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import psycopg
import structlog
from psycopg import IsolationLevel, RawCursor, errors
from psycopg_pool import ConnectionPool

from fairlead.store.connection import Transaction
from fairlead.store.engine import Fault
from fairlead.store.postgresql.channels import STATE
from fairlead.store.postgresql.connection import (
    PostgresqlConnection,
    Raw,
    connection_info,
    set_up,
)

T = TypeVar("T")

ATTEMPTS_MAX: Final = 12
BACKOFF_FIRST_S: Final = 0.002
BACKOFF_MAX_S: Final = 0.25
# The writer, the readers of `Database`, and one to spare while a lost one is replaced.
CONNECTIONS_MAX: Final = 5
POOL_WITHIN_S: Final = 3.0

_CONFLICTS: Final = (errors.SerializationFailure, errors.DeadlockDetected)
# A row that another transaction committed meanwhile is found by the index before the conflict is. The next attempt sees
# that row, so a second failure is a real duplicate.
_DUPLICATE: Final = errors.UniqueViolation
DUPLICATES_MAX: Final = 2
# The server that was written to has become a replica, or is one.
_NOT_PRIMARY: Final = (errors.ReadOnlySqlTransaction,)

log = structlog.get_logger("fairlead.store")


class PostgresqlEngine:
    """`Engine` over a pool. `node` names this process to the others, which are notified of each of its writes."""

    name = "state.postgresql"
    path = None

    def __init__(self, url: str, node: str) -> None:
        self._node = node
        self._pool: ConnectionPool[Raw] = ConnectionPool(
            connection_info(url, "control"),
            kwargs={"cursor_factory": RawCursor},
            configure=set_up,
            min_size=1,
            max_size=CONNECTIONS_MAX,
            timeout=POOL_WITHIN_S,
            num_workers=1,
            name="state",
            open=True,
        )
        self.retries = 0
        """How often a transaction was run again."""

    def transact(self, transactions: Sequence[Transaction[Any]]) -> list[Any]:
        duplicates = 0
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                return self._attempt(transactions)
            except (*_CONFLICTS, _DUPLICATE) as error:
                duplicates += isinstance(error, _DUPLICATE)
                if duplicates == DUPLICATES_MAX:
                    raise
                if attempt == ATTEMPTS_MAX:
                    log.warning(
                        "given up after conflicts", attempts=attempt, of=type(error).__name__
                    )
                    raise
                # Both sides of a conflict wait for another while, so that they do not meet again.
                longest_s = min(BACKOFF_FIRST_S * 2**attempt, BACKOFF_MAX_S)
                time.sleep(random.uniform(0, longest_s))  # noqa: S311 - no secret
            except _ConnectionLoss as lost:
                if attempt == ATTEMPTS_MAX:
                    raise lost.error from None
            self.retries += 1
        raise AssertionError("the last attempt returns or raises")

    def read(self, transaction: Transaction[T], interrupts: list[Callable[[], None]]) -> T:  # noqa: ARG002 - the server has its own deadline for statements
        for attempt in range(1, ATTEMPTS_MAX + 1):
            with self._pool.connection() as raw:
                raw.isolation_level, raw.read_only = IsolationLevel.REPEATABLE_READ, True
                try:
                    return transaction(PostgresqlConnection(raw))
                except psycopg.OperationalError:
                    # A pooled connection may have been lost long ago: nothing is noticed before it is used.
                    if not raw.closed or attempt == ATTEMPTS_MAX:
                        raise
                finally:
                    if not raw.closed:
                        raw.rollback()
        raise AssertionError("the last attempt returns or raises")

    def fault_of(self, error: BaseException) -> Fault | None:
        ours = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError)
        return Fault.UNAVAILABLE if isinstance(error, ours) else None

    def advice(self) -> str:
        return "Ask the database's operator."

    def close(self) -> None:
        self._pool.close(timeout=POOL_WITHIN_S)

    def _attempt(self, transactions: Sequence[Transaction[Any]]) -> list[Any]:
        with self._pool.connection() as raw:
            raw.isolation_level, raw.read_only = IsolationLevel.SERIALIZABLE, False
            con = PostgresqlConnection(raw)
            try:
                results = [transaction(con) for transaction in transactions]
                # Sent with the COMMIT, and only if there is one.
                con.execute("SELECT pg_notify(?, ?)", [STATE, self._node])
            except _NOT_PRIMARY:
                # The pool connects again, to whichever server is the primary now.
                raw.close()
                raise
            except _CONFLICTS:
                raw.rollback()
                raise
            except psycopg.OperationalError as error:
                if raw.closed:
                    raise _ConnectionLoss(error) from error
                raw.rollback()
                raise
            except BaseException:
                if not raw.closed:
                    raw.rollback()
                raise
            raw.commit()
            return results


class _ConnectionLoss(Exception):
    """The connection was lost before the COMMIT was sent, so nothing is stored."""

    def __init__(self, error: psycopg.OperationalError) -> None:
        super().__init__(str(error))
        self.error = error

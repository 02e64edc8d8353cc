"""The embedded store: one DuckDB file, its writer's connection and a cursor for each reader."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import structlog

from fairlead.store.connection import Transaction
from fairlead.store.engine import Fault
from fairlead.store.file import FileConnection, damaged
from fairlead.store.file_transaction import FileTransaction

T = TypeVar("T")


class CommitFailed(duckdb.OperationalError):
    """The write-ahead log could not be written: the disk is full or gone."""


# Errors of the engine itself, as opposed to a refused statement.
ENGINE_ERRORS = (
    CommitFailed,
    duckdb.IOException,
    duckdb.FatalException,
    duckdb.InternalException,
    duckdb.OutOfMemoryException,
    duckdb.SerializationException,
    duckdb.ConnectionException,
)

log = structlog.get_logger("fairlead.store")


class FileEngine:
    """`Engine` over an open file. `remembers_reads` suits a file of few rows that change seldom."""

    def __init__(
        self, path: Path, connection: FileConnection, *, remembers_reads: bool = False
    ) -> None:
        self.path = path
        self._connection = connection
        self._writer = FileTransaction(connection, remembers=remembers_reads)
        self._reader = threading.local()

    @property
    def name(self) -> str:
        return self.path.name

    def transact(self, transactions: Sequence[Transaction[Any]]) -> list[Any]:
        con = self._connection
        con.begin()
        try:
            results = [transaction(self._writer) for transaction in transactions]
            self._commit()
        except BaseException:
            self._writer.forget()
            try:
                con.rollback()
            except duckdb.Error as error:
                # A failed COMMIT has already ended the transaction; the first error is reported.
                log.debug("nothing left to roll back", error=type(error).__name__)
            raise
        return results

    def read(self, transaction: Transaction[T], interrupts: list[Callable[[], None]]) -> T:
        cursor: FileTransaction | None = getattr(self._reader, "cursor", None)
        if cursor is None:
            cursor = self._reader.cursor = FileTransaction(self._connection.cursor())
        interrupts.append(cursor.raw.interrupt)
        try:
            cursor.raw.begin()
            try:
                return transaction(cursor)
            finally:
                cursor.raw.rollback()
        except duckdb.Error:
            # The cursor's state is unknown; the thread's next read opens a new one.
            self._reader.cursor = None
            raise

    def fault_of(self, error: BaseException) -> Fault | None:
        if not isinstance(error, duckdb.Error):
            return None
        if _is_damage(error):
            return Fault.DAMAGED
        if isinstance(error, duckdb.FatalException):
            return Fault.FATAL
        return Fault.UNAVAILABLE if isinstance(error, ENGINE_ERRORS) else None

    def advice(self) -> str:
        return damaged(self.path, "is damaged").sentence

    def close(self) -> None:
        try:
            self._connection.execute("CHECKPOINT")
        except duckdb.Error as error:
            log.warning("not checkpointed", file=self.name, error=type(error).__name__)
        self._connection.close()

    def _commit(self) -> None:
        try:
            self._connection.commit()
        except duckdb.FatalException:
            raise
        except duckdb.Error as error:
            raise CommitFailed(str(error)) from error


def _is_damage(error: duckdb.Error) -> bool:
    # DuckDB has no exception class for a checksum mismatch.
    return type(error) is duckdb.Error and str(error).startswith("Corrupt")

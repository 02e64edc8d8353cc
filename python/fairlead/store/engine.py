"""The place of a `Database`'s rows, as its writer and readers see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fairlead.store.connection import Transaction

T = TypeVar("T")


class Fault(Enum):
    """How a store failed, as opposed to a statement that it refused."""

    UNAVAILABLE = "unavailable"
    """The store may answer the next time."""
    DAMAGED = "damaged"
    """The store must not be written to any more."""
    FATAL = "fatal"
    """The store is closed in this process."""


class Engine(Protocol):
    """A store. `transact` is called by one thread, `read` by several."""

    @property
    def name(self) -> str:
        """For logs, and for sentences to operators."""

    @property
    def path(self) -> Path | None:
        """The file, if there is one."""

    def transact(self, transactions: Sequence[Transaction[Any]]) -> list[Any]:
        """Runs all of them in one transaction and returns their results after COMMIT. One that raises leaves no trace
        of any.
        """

    def read(self, transaction: Transaction[T], interrupts: list[Callable[[], None]]) -> T:
        """Runs a transaction with a consistent view, which is rolled back at its end. While it runs, `interrupts` has
        what stops it from another thread.
        """

    def fault_of(self, error: BaseException) -> Fault | None:
        """How the store failed, or None when the error is not the store's."""

    def advice(self) -> str:
        """A sentence for the operator of a store that is damaged."""

    def close(self) -> None:
        """Ends every connection."""

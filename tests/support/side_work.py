"""Work that goes on beside a test, on threads of its own, until the test has seen enough.

class Callers(SideWork):
    def __init__(self) -> None:
        super().__init__(self._call, self._call)

    def _call(self) -> None:
        while not self.is_over.wait(0.05): ...

with Callers() as callers: ...
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Self

# More than any work takes until it looks whether it is over.
ENDS_WITHIN_S: Final = 90


class SideWork:
    """Runs each function on a thread; every one returns soon after `is_over` is set. A context manager."""

    def __init__(self, *functions: Callable[[], None]) -> None:
        self.is_over = threading.Event()
        self._threads = [threading.Thread(target=each) for each in functions]

    def begin(self, function: Callable[[], None]) -> None:
        """One more, from now on."""
        self._threads.append(threading.Thread(target=function))
        self._threads[-1].start()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        for thread in self._threads:
            thread.join(ENDS_WITHIN_S)
            assert not thread.is_alive()

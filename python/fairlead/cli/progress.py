"""Progress on the terminal of what takes longer than a second; nothing where standard error is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

_AFTER_S: Final = 1.0


@contextmanager
def transfer(label: str, total_bytes: int | None) -> Iterator[Callable[[int], None]]:
    """Call what it gives with each number of bytes that went over; the bar begins after a second."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    started_s = time.monotonic()
    with ExitStack() as drawn:
        done = 0
        update: Callable[[int], None] | None = None

        def advance(count: int) -> None:
            nonlocal done, update
            done += count
            if update is None and time.monotonic() - started_s >= _AFTER_S:
                update = drawn.enter_context(_bar(label, total_bytes))
            if update is not None:
                update(done)

        yield advance


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """Something turns beside the label until the work is done."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(label):
        yield


@contextmanager
def _bar(label: str, total_bytes: int | None) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total_bytes)
        yield lambda done: progress.update(task, completed=done)

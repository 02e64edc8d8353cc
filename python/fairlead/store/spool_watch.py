"""Waiting for segments in the spool, which other processes write."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Final, Self

from fairlead.store.folder_watch import FolderWatch
from fairlead.store.segment import read_segments

# The poll interval without notifications of the kernel.
POLL_S: Final = 0.25
# The poll interval with notifications, for changes that they may have missed.
LOOK_EVERY_S: Final = 5.0


class SpoolWatch:
    """Tells its reader when to look. In a `with` block, on an event loop."""

    def __init__(self, spool_dir: Path) -> None:
        self._spool_dir = spool_dir
        self._folder: FolderWatch | None = None

    def __enter__(self) -> Self:
        self._watch_folder()
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.close()

    def begin_look(self) -> None:
        """Called before the folder is read: what changes from here on ends the next wait."""
        if self._folder is not None:
            self._folder.changed.clear()

    async def wait(self) -> None:
        """Until the folder may hold something new."""
        if self._folder is None:
            await asyncio.sleep(POLL_S)
            # The first worker makes the folder, which may be after this process has started.
            self._watch_folder()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY_S):
                await self._folder.changed.wait()

    async def wait_for_segment(self) -> None:
        """Until there is a segment to take in."""
        while True:
            self.begin_look()
            if await asyncio.to_thread(read_segments, self._spool_dir):
                return
            await self.wait()

    def _watch_folder(self) -> None:
        with contextlib.suppress(OSError):
            self._folder = FolderWatch(self._spool_dir)

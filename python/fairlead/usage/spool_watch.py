"""Waiting for segments in the spool, cheaply: other processes write them, and tell nobody."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

from fairlead.usage.segment import read_segments

POLL_S: Final = 0.25
# A worker that died leaves its segment without a change of the folder.
LOOK_EVERY_S: Final = 1.0


class SpoolWatch:
    """Asks for the time of the folder's last change, and lets its reader look when there was one."""

    def __init__(self, spool_dir: Path) -> None:
        self._spool_dir = spool_dir
        self._changed_ns: int | None = None
        self._looked_s = 0.0

    def begin_look(self) -> None:
        """Called before the folder is read: what changes from here on ends the next wait."""
        self._changed_ns = self._last_change_ns()
        self._looked_s = time.monotonic()

    async def wait(self) -> None:
        """Until the folder has changed since the last look, or that is `LOOK_EVERY_S` ago."""
        while time.monotonic() - self._looked_s < LOOK_EVERY_S:
            await asyncio.sleep(POLL_S)
            if self._last_change_ns() != self._changed_ns:
                return

    async def wait_for_segment(self) -> None:
        """Until there is a segment to take in."""
        while True:
            self.begin_look()
            if await asyncio.to_thread(read_segments, self._spool_dir):
                return
            await self.wait()

    def _last_change_ns(self) -> int | None:
        try:
            return self._spool_dir.stat().st_mtime_ns
        except FileNotFoundError:
            # The first worker makes the folder.
            return None

"""The room for files of other nodes that wait in a folder of this one."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Final

from fairlead.errors import StorageFull

LOOK_EVERY_S: Final = 1.0


class SpoolRoom:
    """Bounds the bytes of a folder, which is looked at once a second. Blocking; any thread may call."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._looked_s: float | None = None
        self._room_bytes = 0
        self._lock = threading.Lock()

    def claim(self, size: int) -> None:
        """Counts a file that is about to be written. `StorageFull` where it has no room."""
        with self._lock:
            now_s = time.monotonic()
            if self._looked_s is None or now_s - self._looked_s >= LOOK_EVERY_S:
                self._room_bytes = self._limit_bytes - self._used_bytes()
                self._looked_s = now_s
            if size > self._room_bytes:
                raise StorageFull("Too much of what nodes brought waits here.", retry_after_s=1)
            self._room_bytes -= size

    def _used_bytes(self) -> int:
        used = 0
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    try:
                        used += entry.stat().st_size
                    except FileNotFoundError:
                        # Taken in meanwhile.
                        continue
        except FileNotFoundError:
            return 0
        return used

"""The capacity for files of other nodes in a folder of this node."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Final

from fairlead.errors import StorageFull

MEASURE_EVERY_S: Final = 1.0


class SpoolCapacity:
    """Bounds the bytes of a folder, which is measured once a second. Blocking; thread-safe."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._measured_s: float | None = None
        self._free_bytes = 0
        self._lock = threading.Lock()

    def claim(self, size: int) -> None:
        """Counts a file that is about to be written. Raises `StorageFull` if the folder is full."""
        with self._lock:
            now_s = time.monotonic()
            if self._measured_s is None or now_s - self._measured_s >= MEASURE_EVERY_S:
                self._free_bytes = self._limit_bytes - self._used_bytes()
                self._measured_s = now_s
            if size > self._free_bytes:
                raise StorageFull(
                    "Too many bytes from other nodes are waiting to be stored.", retry_after_s=1
                )
            self._free_bytes -= size

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

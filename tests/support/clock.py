"""A wall clock that a test can put forward and back for the processes that it starts."""

from __future__ import annotations

import mmap
import struct
import subprocess
from pathlib import Path
from typing import Final

DAY_S: Final = 86_400


class WallClock:
    """`environment` is for the processes that are to see this clock; what is monotonic is not touched."""

    def __init__(self, folder: Path) -> None:
        shim = folder / "clock_shim.so"
        source = Path(__file__).with_name("clock_shim.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", shim, source], check=True)
        file = folder / "clock"
        file.write_bytes(bytes(8))
        with file.open("r+b") as opened:
            self._page = mmap.mmap(opened.fileno(), 8)
        self.environment = {"LD_PRELOAD": str(shim), "TEST_CLOCK_FILE": str(file)}

    def put(self, seconds: int) -> None:
        """So many seconds before (negative) or after the machine's own clock, at once."""
        self._page[:] = struct.pack("=q", seconds)

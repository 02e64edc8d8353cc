"""The children's log lines on their way to the supervisor's stderr.

A reader of stderr that stops reading must not stop a plane: lines wait in a bounded queue, a thread
writes them, and what does not fit is counted and told.
"""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
from typing import BinaryIO, Final

_WAITING_LINES: Final = 10_000
_LINE_BYTES: Final = 65_536
_CLOSE_S: Final = 2.0


class LogSink:
    """Takes lines from the event loop, never blocking it."""

    def __init__(self, out: BinaryIO | None = None) -> None:
        self._out = out or sys.stderr.buffer
        self._waiting: queue.Queue[bytes | None] = queue.Queue(_WAITING_LINES)
        self._dropped = 0
        self._writer = threading.Thread(target=self._write, name="log", daemon=True)
        self._writer.start()

    def line(self, text: bytes) -> None:
        """Takes one line without its line feed."""
        try:
            if self._dropped:
                self._waiting.put_nowait(b"fairlead: %d log lines were dropped" % self._dropped)
                self._dropped = 0
            self._waiting.put_nowait(text)
        except queue.Full:
            self._dropped += 1

    def say(self, text: str) -> None:
        """A line of the supervisor's own."""
        self.line(f"fairlead: {text}".encode())

    async def pump(self, source: asyncio.StreamReader) -> None:
        """Takes every line of a child until it ends; a line without end is cut into pieces."""
        rest = b""
        while chunk := await source.read(_LINE_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self.line(line)
            if len(rest) >= _LINE_BYTES:
                self.line(rest)
                rest = b""
        if rest:
            self.line(rest)

    def close(self) -> None:
        """Writes what is waiting, unless nobody reads."""
        try:
            self._waiting.put(None, timeout=_CLOSE_S)
        except queue.Full:
            return
        self._writer.join(_CLOSE_S)

    def _write(self) -> None:
        while (line := self._waiting.get()) is not None:
            try:
                self._out.write(line + b"\n")
                if self._waiting.empty():
                    self._out.flush()
            except OSError:
                # Nobody is left to read the log (a closed pipe): go on without.
                return

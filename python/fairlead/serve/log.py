"""Forwards the children's log lines to the supervisor's stderr.

A stalled reader of stderr must not stall a plane: lines wait in a bounded queue that a thread writes, and
dropped lines are counted and reported.
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
    """A non-blocking sink for log lines, used from the event loop."""

    def __init__(self, out: BinaryIO | None = None) -> None:
        self._out = out or sys.stderr.buffer
        self._waiting: queue.Queue[bytes | None] = queue.Queue(_WAITING_LINES)
        self._dropped = 0
        self._writer = threading.Thread(target=self._write, name="log", daemon=True)
        self._writer.start()

    def line(self, text: bytes) -> None:
        """Queues one line, given without its line feed."""
        try:
            if self._dropped:
                self._waiting.put_nowait(b"fairlead: %d log lines were dropped" % self._dropped)
                self._dropped = 0
            self._waiting.put_nowait(text)
        except queue.Full:
            self._dropped += 1

    def add(self, text: str) -> None:
        """Queues a line of the supervisor's own."""
        self.line(f"fairlead: {text}".encode())

    async def pump(self, source: asyncio.StreamReader) -> None:
        """Queues every line of a child until it ends; an overlong line is split."""
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
        """Writes the queued lines, unless the reader is stalled."""
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
                # The log has no reader any more (a closed pipe): continue without it.
                return

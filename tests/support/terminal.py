"""A command on a terminal of its own, as a person has it: what it draws is read, and keys are pressed."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from types import TracebackType
from typing import Self

WITHIN_S = 20.0


class Terminal:
    """`fairlead <arguments>` with a terminal of so many columns. A context manager; its end ends the command."""

    def __init__(self, *arguments: str, columns: int = 100, **environment: str) -> None:
        self._primary, secondary = pty.openpty()
        fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        clean = {
            name: value
            for name, value in os.environ.items()
            # The terminal's own size counts, not one that the environment claims.
            if not name.startswith("FAIRLEAD_") and name not in ("COLUMNS", "LINES")
        }
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "fairlead", *arguments],
            env=clean | {"TERM": "xterm-256color"} | environment,
            stdin=secondary,
            stdout=secondary,
            stderr=secondary,
            start_new_session=True,
            # Ctrl-C reaches who has the terminal.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )
        os.close(secondary)
        self.shown = ""
        # A read may end in the middle of a character, most of all on a busy machine.
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait(10)
        os.close(self._primary)

    def type(self, text: str) -> None:
        """Presses keys, as the codes that a keyboard sends: a carriage return, or 3 for Ctrl-C."""
        os.write(self._primary, text.encode())

    def wait_for(self, text: str, *, after: int = 0) -> int:
        """Waits until the text was drawn behind position `after`; the position behind it."""
        until = time.monotonic() + WITHIN_S
        while (at := self.shown.find(text, after)) < 0:
            assert self._read(until), f"no {text!r} in {self.shown[after:]!r}"
        return at + len(text)

    def end(self) -> int:
        """What is drawn until the command ends; its exit code."""
        until = time.monotonic() + WITHIN_S
        while self._read(until):
            pass
        return self.popen.wait(WITHIN_S)

    def _read(self, until: float) -> bool:
        """Takes what was drawn; False at the end of the command, or when it is too late."""
        ready, _, _ = select.select([self._primary], [], [], max(until - time.monotonic(), 0))
        if not ready:
            return False
        try:
            self.shown += self._decoder.decode(os.read(self._primary, 65536))
        except OSError:  # Linux tells the end of the other side so
            return False
        return True

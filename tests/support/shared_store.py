"""A Redis of a test's own: a process on a free port, with its data in a folder that goes with the test."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.polling import eventually
from tests.support.process import free_port

PASSWORD = "store-password-canary"


class SharedStore:
    """A `redis-server` that keeps nothing. Made by `shared_store`."""

    def __init__(self, directory: Path, *options: str) -> None:
        self._directory = directory
        self._options = options
        self._popen: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        assert self._popen is not None
        return self._popen.pid

    def start(self) -> None:
        """Starts it empty, and waits until it answers."""
        program = shutil.which("redis-server")
        assert program is not None, "redis-server is not installed"
        command = [program, "--port", str(self.port), "--bind", "127.0.0.1"]
        command += ["--save", "", "--appendonly", "no", "--requirepass", PASSWORD]
        command += ["--dir", str(self._directory), *self._options]
        with (self._directory / "redis.log").open("ab") as log:
            self._popen = subprocess.Popen(command, stdout=log, stderr=log)
        eventually(lambda: self.ask("PING") == "+PONG", "the store answers", within_s=20)

    def stop(self) -> None:
        """Ends it; what it held is gone."""
        popen, self._popen = self._popen, None
        if popen is not None:
            popen.kill()
            popen.wait()

    def pause(self) -> None:
        """It keeps its connections and answers nothing."""
        assert self._popen is not None
        self._popen.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._popen is not None
        self._popen.send_signal(signal.SIGCONT)

    def ask(self, *words: str) -> str | None:
        """The first line of the answer to one command; None where there is no answer."""
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.port), 2) as s,
        ):
            lines = s.makefile("rb")
            for command in (("AUTH", PASSWORD), words):
                parts = "".join(f"${len(word)}\r\n{word}\r\n" for word in command)
                s.sendall(f"*{len(command)}\r\n{parts}".encode())
                answer = lines.readline().decode().strip()
            return answer
        return None


@contextmanager
def shared_store(directory: Path, *options: str) -> Iterator[SharedStore]:
    """A running store, with options of `redis-server` beside the usual ones."""
    directory.mkdir(parents=True, exist_ok=True)
    store = SharedStore(directory, *options)
    store.start()
    try:
        yield store
    finally:
        store.stop()

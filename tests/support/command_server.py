"""`python -m tests.support.command_server <descriptor>`: runs commands in forks of one process that has imported them.

A command is a real process with the given arguments, environment, directory and three descriptors, and it ends as an
interpreter does. Only the second or so that a new interpreter takes to import the command line is paid once, not for
each of some two hundred commands.

The descriptor is a socket of messages (`SOCK_SEQPACKET`). Each message is a `Request` in JSON with four descriptors:
standard input, output and error, and a socket for the answers: the process id, then the exit code. The server ends
when the other side closes its end.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from typing import Final

# What nearly every command imports.
PRELOADED: Final = (
    *(
        "fairlead.cli.app",
        "fairlead.cli.instance",
        "fairlead.cli.output",
        "fairlead.cli.collection",
    ),
    *("httpx", "rich.table", "rich.console"),
)
_REQUEST_BYTES_MAX: Final = 256 * 1024
_DESCRIPTORS: Final = 4


@dataclass(frozen=True)
class Request:
    """A command: `arguments` without the program's name."""

    arguments: list[str]
    environment: dict[str, str]
    directory: str


class CommandServer:
    """Starts a process for each request and reports its end."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._waiting = selectors.PollSelector()
        self._waiting.register(requests, selectors.EVENT_READ)

    def run(self) -> Request | None:
        """Serves until the other side has gone, which returns None. In the process of a command: the command."""
        while True:
            for key, _ in self._waiting.select():
                if key.fileobj is not self._requests:
                    self._report(key)
                    continue
                message, descriptors, _, _ = socket.recv_fds(
                    self._requests, _REQUEST_BYTES_MAX, _DESCRIPTORS
                )
                if not message:
                    return None
                request = Request(**json.loads(message))
                if self._fork(descriptors):
                    return request

    def _fork(self, descriptors: list[int]) -> bool:
        """Whether this is the process of the command. Its standard descriptors are then in place."""
        *standard, answers = descriptors
        pid = os.fork()
        if pid:
            reply = socket.socket(fileno=answers)
            reply.send(str(pid).encode())
            self._waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, reply))
        else:
            for place, descriptor in enumerate(standard):
                os.dup2(descriptor, place)
            os.close(answers)
            self._requests.close()
            for key in self._waiting.get_map().values():
                if key.data is not None:
                    os.close(key.fd)
                    key.data[1].close()
        for descriptor in standard:
            os.close(descriptor)
        return pid == 0

    def _report(self, key: selectors.SelectorKey) -> None:
        pid, reply = key.data
        self._waiting.unregister(key.fileobj)
        os.close(key.fd)
        _, status = os.waitpid(pid, 0)
        # Whoever asked may have given up.
        with reply, contextlib.suppress(BrokenPipeError):
            reply.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(request: Request) -> None:
    """Makes this process what a new interpreter would be for the command."""
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    os.chdir(request.directory)
    sys.argv = ["fairlead", *request.arguments]
    # Open to the end of the process.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )


def main() -> None:
    """Serves; in the process of a command, runs it."""
    # Ctrl-C at the tests is theirs to handle; a command has Python's own handler again.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    from fairlead.cli import bar_imports
    from fairlead.cli import main as run_command

    bar_imports()
    for name in PRELOADED:
        import_module(name)
    gc.freeze()
    request = CommandServer(socket.socket(fileno=int(sys.argv[1]))).run()
    if request is not None:
        signal.signal(signal.SIGINT, handler)
        become(request)
        run_command()


if __name__ == "__main__":
    main()

"""The command line as a script runs it: a process with pipes."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from tests.support.command_server import Request

_ORDINARY = re.compile(r"fairlead: (the|there|no|nothing|an?|this|it|its|name|only|nobody)\b")
_WITHIN_S = 60.0

Completed = subprocess.CompletedProcess[str]


def clean_environment() -> dict[str, str]:
    """This process's environment without settings of fairlead's."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_")}


def fairlead(*arguments: str, typed: str = "", **environment: str) -> Completed:
    """`fairlead <arguments>`, ended, with its output.

    The process is a fork of one that has imported the command line (`command_server.py`). `started_fairlead` starts an
    interpreter instead.
    """
    request = Request(list(arguments), clean_environment() | environment, str(Path.cwd()))
    standard = [os.pipe() for _ in range(3)]
    theirs = [standard[0][0], standard[1][1], standard[2][1]]
    own = [standard[0][1], standard[1][0], standard[2][0]]
    answers, reply = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with answers, ThreadPoolExecutor(3) as pool:
        message = json.dumps(asdict(request)).encode()
        socket.send_fds(_server(), [message], [*theirs, reply.fileno()])
        reply.close()
        for each in theirs:
            os.close(each)
        pool.submit(_write, own[0], typed)
        output, errors = (pool.submit(_read, each) for each in own[1:])
        answers.settimeout(_WITHIN_S)
        pid = int(answers.recv(32))
        try:
            code = int(answers.recv(32))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(arguments, _WITHIN_S) from None
        return subprocess.CompletedProcess(list(arguments), code, output.result(), errors.result())


def _write(descriptor: int, text: str) -> None:
    # A command may end before it has read everything.
    with contextlib.suppress(BrokenPipeError), open(descriptor, "w", encoding="utf-8") as pipe:
        pipe.write(text)


def _read(descriptor: int) -> str:
    with open(descriptor, encoding="utf-8") as pipe:
        return pipe.read()


def started_fairlead(*arguments: str, typed: str = "", **environment: str) -> Completed:
    """As `fairlead`, in an interpreter that is started for it."""
    return subprocess.run(
        [sys.executable, "-m", "fairlead", *arguments],
        env=clean_environment() | environment,
        input=typed,
        capture_output=True,
        text=True,
        timeout=_WITHIN_S,
        check=False,
    )


def sentence(ended: Completed, code: int) -> str:
    """The one sentence of a command that failed with `code`."""
    assert ended.returncode == code, ended
    (line,) = ended.stderr.splitlines()
    assert line.startswith("fairlead: ")
    assert line.endswith((".", "?"))
    assert _ORDINARY.match(line) is None, "messages begin with a capital, or with a name"
    assert "Traceback" not in line
    return line


@functools.cache
def _server() -> socket.socket:
    """The requests of this test process's server, which ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "tests.support.command_server", str(theirs.fileno())]
    with theirs:
        server = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            cwd=Path(__file__).parents[2],
            env=clean_environment(),
        )

    def end() -> None:
        ours.close()
        server.wait(10)

    atexit.register(end)
    return ours

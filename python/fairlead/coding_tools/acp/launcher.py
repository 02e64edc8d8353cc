"""Starts a coding tool within bounds, and ends it with all that it started when its parent ends, for whatever reason.

`python -m fairlead.coding_tools.acp.launcher <parent> <bytes> <program> <arguments...>`, which `process` starts as the
leader of a session. The tool has this process's pipes to itself.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from typing import Final

from fairlead.coding_tools.acp.process_session import adopt_orphans, kill_session

_PR_SET_PDEATHSIG: Final = 1
_NOT_RUN: Final = 127


def main(arguments: list[str]) -> None:
    """Never returns: when the tool has ended, everything that it started is killed, and this process with it."""
    parent, memory_bytes, program, *rest = arguments
    # A limit on data and not on addresses: runtimes reserve many times the addresses that they use.
    resource.setrlimit(resource.RLIMIT_DATA, (int(memory_bytes), int(memory_bytes)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGTERM, _end_session)
    adopt_orphans()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != int(parent):
        # The parent ended before the request took effect.
        _end_session()
    tool = os.fork()
    if tool == 0:
        try:
            os.execv(program, [program, *rest])  # noqa: S606 - a program of the catalogue, no shell
        except OSError:
            os._exit(_NOT_RUN)
    for pipe in (0, 1):
        # Held open here, the tool's end would not be seen there.
        os.close(pipe)
    # Orphans are waited for as well, so that they leave no zombies.
    while os.wait()[0] != tool:
        pass
    _end_session()


def _end_session(*_: object) -> None:
    kill_session(os.getpid())


if __name__ == "__main__":
    main(sys.argv[1:])

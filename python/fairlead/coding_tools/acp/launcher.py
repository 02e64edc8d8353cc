"""Becomes a coding tool: sets the bounds of its process, then replaces this program by it.

`python -m fairlead.coding_tools.acp.launcher <parent> <bytes> <program> <arguments...>`, which `process` starts. The
tool inherits the bounds and ends with its parent; what the tool starts is ended with its session.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def main(arguments: list[str]) -> None:
    """Never returns: the tool runs in this process."""
    parent, memory_bytes, program, *rest = arguments
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(parent):
        os.kill(os.getpid(), signal.SIGKILL)
    # Of data and not of addresses: runtimes reserve many times the addresses that they ever use.
    resource.setrlimit(resource.RLIMIT_DATA, (int(memory_bytes), int(memory_bytes)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execv(program, [program, *rest])  # noqa: S606 - a program of the catalogue, no shell


if __name__ == "__main__":
    main(sys.argv[1:])

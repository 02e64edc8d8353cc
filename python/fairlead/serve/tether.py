"""Ends this process when its parent ends, however the parent ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_LOOK_EVERY_S: Final = 0.5


def tether_to(parent_pid: int) -> None:
    """Asks for this process to be killed when `parent_pid`, its parent, is gone.

    On Linux the kernel does it, at once and even if this process is stuck; what the kernel watches
    is the thread that forked, so children are to be started from the main thread. Elsewhere a
    thread looks. The tether is not inherited over a fork.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    else:
        threading.Thread(target=_watch, args=(parent_pid,), daemon=True).start()
    # The parent may have gone before the request was made.
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGKILL)


def _watch(parent_pid: int) -> None:
    while os.getppid() == parent_pid:
        time.sleep(_LOOK_EVERY_S)
    os.kill(os.getpid(), signal.SIGKILL)

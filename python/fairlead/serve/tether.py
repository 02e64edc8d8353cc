"""Ends this process when its parent ends, for whatever reason."""

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
    """Makes this process end when its parent `parent_pid` is gone.

    On Linux the kernel kills it at once, even if it is stuck (PR_SET_PDEATHSIG). The kernel watches the thread
    that forked, so children must be started from the main thread. Elsewhere a thread polls. A fork does not
    inherit the tether.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    else:
        threading.Thread(target=_watch, args=(parent_pid,), daemon=True).start()
    # The parent may have ended before the request took effect.
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGKILL)


def _watch(parent_pid: int) -> None:
    while os.getppid() == parent_pid:
        time.sleep(_LOOK_EVERY_S)
    os.kill(os.getpid(), signal.SIGKILL)

"""The relay plane with the engine's own listener in place of granian.

No Python runs on a request's path. This process opens the listener and handles signals: SIGTERM and SIGINT
announce a drain and, after its delay, drain, a second one ends at once, SIGHUP reloads the certificate.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Final

from fairlead._core import Listener

_LOOK_EVERY_S: Final = 0.1
_SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


def serve_listener() -> None:
    """Serves the relay plane until SIGTERM, configured by `FAIRLEAD_RELAY_CONFIG` and `FAIRLEAD_LISTENER_CONFIG`."""
    # Blocked before other threads exist, so that all inherit the mask and signals are received here.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        listener = Listener(
            os.environ["FAIRLEAD_RELAY_CONFIG"].encode(),
            os.environ["FAIRLEAD_LISTENER_CONFIG"].encode(),
        )
    except ValueError as error:
        sys.exit(f"the relay cannot be opened: {error}")
    while signal.sigwait(_SIGNALS) == signal.SIGHUP:
        listener.reload()
    _wait(listener.announce_drain() / 1000)
    listener.drain()
    while not listener.is_drained():
        _wait(_LOOK_EVERY_S)
    listener.stop()


def _wait(seconds: float) -> None:
    """Waits, and ends the process at once at a second signal."""
    again = signal.sigtimedwait(_SIGNALS - {signal.SIGHUP}, seconds)
    if again is not None:
        os._exit(128 + again.si_signo)

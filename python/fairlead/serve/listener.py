"""The relay plane with the engine's own listener in place of granian.

No Python runs on a request's path. This process opens the listener and handles signals: SIGTERM and SIGINT
drain, a second one ends at once, SIGHUP reloads the certificate.
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
    while (number := signal.sigwait(_SIGNALS)) == signal.SIGHUP:
        listener.reload()
    listener.drain()
    while not listener.is_drained():
        again = signal.sigtimedwait(_SIGNALS - {signal.SIGHUP}, _LOOK_EVERY_S)
        if again is not None:
            os._exit(128 + number)
    listener.stop()

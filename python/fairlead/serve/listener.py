"""The relay plane without granian: the engine's own listener, kept open by this process.

Nothing of Python runs on a request's way. This process opens the listener, waits for signals, and closes
it: SIGTERM and SIGINT drain, a second one ends at once, SIGHUP reads the certificate again.
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
    """Serves the relay plane as `FAIRLEAD_RELAY_CONFIG` and `FAIRLEAD_LISTENER_CONFIG` say, until SIGTERM."""
    # Blocked before there is another thread, so that every one inherits it and they are waited for here.
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

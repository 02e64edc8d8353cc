"""The stand-in's HTTP server on Robyn.

Robyn reads the command line, takes its address from the environment before its arguments, asks on standard
input for another port when its port is busy, serves `/docs` unasked, limits bodies to 1 MB and continues after
SIGTERM. `framework` and `serve` handle each of these; one process serves one stand-in, once.
"""

import asyncio
import os
import signal
import socket
import sys
from typing import Final

from fairlead.standin.endpoints import CALLS, PAGES
from fairlead.standin.framework import Config, Robyn

_MOST_BODY_BYTES: Final = 64 * 1024 * 1024


def serve(host: str, port: int) -> None:
    """Serves until SIGTERM or SIGINT, then leaves with 0.

    Raises `OSError` where the address cannot be bound.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
    for name in [name for name in os.environ if name.startswith("ROBYN_")]:
        del os.environ[name]
    os.environ["ROBYN_MAX_PAYLOAD_SIZE"] = str(_MOST_BODY_BYTES)
    _application().start(host=host, port=port, _check_port=False)


def _application() -> Robyn:
    arguments, sys.argv = sys.argv, sys.argv[:1]
    config = Config()
    sys.argv = arguments
    config.disable_openapi, config.log_level = True, "WARNING"
    app = Robyn(__file__, config)
    app.startup_handler(_leave_on_signals)
    for path, handler in PAGES.items():
        app.get(path)(handler)
    for path, handler in CALLS.items():
        app.post(path)(handler)
    return app


async def _leave_on_signals() -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Robyn's own way out waits for open streams without end; there is nothing here to save.
        loop.add_signal_handler(number, os._exit, 0)

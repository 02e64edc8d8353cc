"""The two granian servers, each in a main process of its own.

Granian's defaults do not suit streams: `backpressure` counts open streams, so it is set above the relay's own
limit, which answers 503 instead of leaving callers to wait; an incomplete request head times out after ten
seconds; a worker that does not stop is killed after the drain.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops, RuntimeModes, SSLProtocols
from granian.http import HTTP1Settings, HTTP2Settings
from granian.log import LogLevels

from fairlead.serve.tether import tether_to

RELAY: Final = "fairlead.relay:create"
CONTROL: Final = "fairlead.control.app:create"

_BACKLOG: Final = 2048
CONTROL_NICENESS: Final = 10
_STREAMS_ABOVE_OURS: Final = 2000
_HEADER_READ_TIMEOUT_MS: Final = 10_000


def serve_relay(
    *,
    host: str,
    port: int,
    max_open_streams: int,
    kill_timeout_s: int,
    tls_certificate: Path | None = None,
    tls_key: Path | None = None,
) -> None:
    """Serves the relay plane until SIGTERM. `host` is an IP address, not a name."""
    server = Granian(
        RELAY,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        loop=Loops.uvloop,
        workers=1,
        runtime_threads=1,
        # A single thread that only serves sockets takes a sixth less CPU for each short request than granian's
        # default for ASGI, which is made for several threads.
        runtime_mode=RuntimeModes.st,
        http=HTTPModes.auto,
        websockets=True,
        backlog=_BACKLOG,
        backpressure=max_open_streams + _STREAMS_ABOVE_OURS,
        http1_settings=HTTP1Settings(header_read_timeout=_HEADER_READ_TIMEOUT_MS),
        http2_settings=HTTP2Settings(max_concurrent_streams=100, max_headers_size=65_536),
        log_level=LogLevels.warning,
        log_access=False,
        ssl_cert=tls_certificate,
        ssl_key=tls_key,
        ssl_protocol_min=SSLProtocols.tls12,
        respawn_failed_workers=True,
        workers_kill_timeout=kill_timeout_s,
        factory=True,
    )
    # Loaded before the fork, so that a replacement worker serves at once.
    importlib.import_module(RELAY.partition(":")[0])
    _run(server)


def serve_control(*, socket: Path, kill_timeout_s: int) -> None:
    """Serves the control plane on a Unix socket (0600) until SIGTERM."""
    socket.unlink(missing_ok=True)
    server = Granian(
        CONTROL,
        uds=socket,
        uds_permissions=0o600,
        interface=Interfaces.ASGI,
        loop=Loops.uvloop,
        workers=1,
        runtime_threads=1,
        http=HTTPModes.http1,
        websockets=True,
        backlog=_BACKLOG,
        backpressure=_BACKLOG,
        log_level=LogLevels.warning,
        log_access=False,
        respawn_failed_workers=True,
        workers_kill_timeout=kill_timeout_s,
        factory=True,
    )
    _run(server)


def _run(server: Any) -> None:
    server.serve(target_loader=partial(_load, os.getpid()))


def _load(main_pid: int, target: str) -> Callable[..., Any]:
    """Creates the application in the worker, tethered to the main process."""
    tether_to(main_pid)
    # The forked handlers of the main process do nothing here, and granian sets the worker's own only later.
    # Until then a signal must end the worker.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    module, _, factory = target.partition(":")
    made: Callable[..., Any] = getattr(importlib.import_module(module), factory)()
    return _nice_once_started(made) if target == CONTROL else made


def _nice_once_started(app: Callable[..., Any]) -> Callable[..., Any]:
    """Lowers control's priority once it has started, so that on a busy machine inference goes before reports
    and ingestion.

    Startup keeps the normal priority, because relays wait for it.
    """

    async def run(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return

        async def send_on(message: Any) -> None:
            if message["type"] == "lifespan.startup.complete":
                _be_nice()
            await send(message)

        await app(scope, receive, send_on)

    return run


def _be_nice() -> None:
    # Linux keeps a priority for each thread; threads that come later take their maker's.
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
            os.setpriority(os.PRIO_PROCESS, int(thread.name), CONTROL_NICENESS)

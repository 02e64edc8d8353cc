"""The two granian servers, each in a main process of its own.

Granian's defaults are wrong for streams: `backpressure` counts open streams, so it has to stand
above the relay's own bound, which answers 503 instead of leaving callers to wait unseen; a header
that never ends is given up after ten seconds; a worker that does not stop is killed after the
drain.
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
    """Serves the relay plane on an address until SIGTERM. `host` is an address, not a name."""
    server = Granian(
        RELAY,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        loop=Loops.uvloop,
        workers=1,
        runtime_threads=1,
        # One thread that serves sockets and nothing else: a sixth less CPU for each short request
        # than the default for ASGI, which is made for several threads.
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
    # Loaded before the fork, so that a worker that takes the place of a dead one serves at once.
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
    """Runs in the worker: ties it to the main process and makes the application."""
    tether_to(main_pid)
    # The main process's handlers came with the fork and do nothing here; granian sets the worker's
    # own after this. Until then a signal is to end the worker, not to be lost.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    module, _, factory = target.partition(":")
    made: Callable[..., Any] = getattr(importlib.import_module(module), factory)()
    return _nice_once_started(made) if target == CONTROL else made


def _nice_once_started(app: Callable[..., Any]) -> Callable[..., Any]:
    """On a full machine reports and ingestion wait for inference, not the other way round. A start
    waits for nobody: relays wait for it.
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

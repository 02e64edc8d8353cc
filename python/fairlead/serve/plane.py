"""The granian servers, each in one process.

Granian's defaults do not suit streams: `backpressure` counts open streams, so it is set above the relay's own
limit, which answers 503 instead of leaving callers to wait; an incomplete request head times out after ten
seconds.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from granian.constants import HTTPModes, Interfaces, Loops, RuntimeModes, SSLProtocols
from granian.http import HTTP1Settings, HTTP2Settings
from granian.log import LogLevels
from granian.server.mp import MPServer

RELAY: Final = "fairlead.relay:create"
CONTROL: Final = "fairlead.control.app:create"
ACP: Final = "fairlead.coding_tools.acp.application:create"

_BACKLOG: Final = 2048
# If installed, structlog and httpx import these for coloured traces and a command line: 100 modules that nothing here
# uses.
_NOT_FOR_CONTROL: Final = ("rich", "pygments")
CONTROL_NICENESS: Final = 10
_STREAMS_ABOVE_OURS: Final = 2000
_HEADER_READ_TIMEOUT_MS: Final = 10_000


def serve_relay(
    *,
    host: str,
    port: int,
    max_open_streams: int,
    tls_certificate: Path | None = None,
    tls_key: Path | None = None,
) -> None:
    """Serves the relay plane until SIGTERM. `host` is an IP address, not a name."""
    server = OneProcess(
        RELAY,
        address=host,
        port=port,
        # A single thread that only serves sockets takes a sixth less CPU for each short request than granian's
        # default for ASGI, which is made for several threads.
        runtime_mode=RuntimeModes.st,
        http=HTTPModes.auto,
        websockets=True,
        backpressure=max_open_streams + _STREAMS_ABOVE_OURS,
        http1_settings=HTTP1Settings(header_read_timeout=_HEADER_READ_TIMEOUT_MS),
        http2_settings=HTTP2Settings(max_concurrent_streams=100, max_headers_size=65_536),
        ssl_cert=tls_certificate,
        ssl_key=tls_key,
        ssl_protocol_min=SSLProtocols.tls12,
    )
    _run(server)


def serve_control(*, socket: Path) -> None:
    """Serves the control plane on a Unix socket (0600) until SIGTERM."""
    bar_imports()
    socket.unlink(missing_ok=True)
    server = OneProcess(
        CONTROL,
        uds=socket,
        uds_permissions=0o600,
        http=HTTPModes.http1,
        websockets=True,
        backpressure=_BACKLOG,
    )
    _run(server)


def serve_acp(*, port: int) -> None:
    """Serves the process that starts coding tools, on loopback until SIGTERM."""
    from fairlead.control.logs import configure_logs

    configure_logs()
    server = OneProcess(
        ACP,
        address="127.0.0.1",
        port=port,
        http=HTTPModes.http1,
        websockets=False,
        backpressure=_BACKLOG,
    )
    _run(server)


def bar_imports() -> None:
    """Keeps out of this process what libraries import only because it is installed."""
    for name in _NOT_FOR_CONTROL:
        # An import of what is None here fails, as of what is not installed.
        sys.modules[name] = None  # type: ignore[assignment]


class OneProcess(MPServer):
    """A granian server whose one worker is this process.

    Granian keeps a main process beside its workers that starts them again. The supervisor does that, so a main process
    would be one more interpreter in memory, and one more that has to be watched.
    """

    def __init__(self, target: str, **options: Any) -> None:
        super().__init__(
            target,
            interface=Interfaces.ASGI,
            loop=Loops.uvloop,
            runtime_threads=1,
            backlog=_BACKLOG,
            log_level=LogLevels.warning,
            log_access=False,
            factory=True,
            **options,
        )

    def _serve(self, spawn_target: Any, target_loader: Any) -> None:
        self._init_shared_socket()  # type: ignore[no-untyped-call]
        # A process of `multiprocessing` that is run instead of started does its work in the caller.
        try:
            self._spawn_worker(0, spawn_target, target_loader).inner.run()
        finally:
            if self.bind_uds is not None:
                self.bind_uds.unlink(missing_ok=True)


def _run(server: OneProcess) -> None:
    # Until the worker has set its handlers, a signal ends the process. SIGHUP would end it without a drain.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        server.serve(target_loader=_load)
        code = 0
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else 1
    except Exception:  # noqa: BLE001 - shown, and reported by the exit code
        traceback.print_exc()
        code = 1
    # Threads of Rust may still be about to call Python: the interpreter is not taken down under them.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _load(target: str) -> Callable[..., Any]:
    """The application that `module:factory` makes."""
    module, _, factory = target.partition(":")
    # Loading an application makes eighty thousand objects, of which one in a hundred is garbage: looking for it again
    # and again would take a sixth of the time of a start.
    gc.disable()
    try:
        made: Callable[..., Any] = getattr(importlib.import_module(module), factory)()
        gc.freeze()
    finally:
        gc.enable()
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
                _lower_priority()
            await send(message)

        await app(scope, receive, send_on)

    return run


def _lower_priority() -> None:
    # Linux keeps a priority for each thread; threads that come later take their maker's.
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
            os.setpriority(os.PRIO_PROCESS, int(thread.name), CONTROL_NICENESS)

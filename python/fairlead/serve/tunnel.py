"""Connections between relays and controls of different machines.

A relay worker uses HTTP over a Unix socket, and control listens on one: on one machine it is the same socket.
With separate roles, a process of the relay's node listens on the worker's socket and forwards each connection's
bytes over TLS to a control; a process of control's node forwards them to control's socket. Only one protocol is
used, and each request has the node token, which control compares. A worker need not know where control is.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from fairlead.serve.controls import CONNECT_S, Control, Controls

CONNECTIONS_MAX: Final = 2048
CHUNK_BYTES: Final = 64 * 1024
# A poll of the link is answered within two seconds, and a kept connection is made again where it was closed.
IDLE_S: Final = 180.0
# A control that said nothing to a request for so long, until the relay gave up, is left for a while.
SILENT_S: Final = 5.0

Dial = Callable[[], Awaitable["Upstream | None"]]

log = structlog.get_logger("fairlead.tunnel")


@dataclass(slots=True)
class Upstream:
    """A connection towards control, and the control that it leads to."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    control: Control | None = None


@dataclass(slots=True)
class _Activity:
    """When bytes last went each way."""

    up: float = 0.0
    down: float = 0.0
    last: float = field(default_factory=time.monotonic)


class Tunnel:
    """Passes connections on, as many as `CONNECTIONS_MAX` at a time."""

    def __init__(self, dial: Dial, controls: Controls | None = None) -> None:
        self._dial = dial
        self._controls = controls
        self._open = 0

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ahead: bytes = b""
    ) -> None:
        """Serves one accepted connection until either side ends it. `ahead` was read from it before."""
        if self._open >= CONNECTIONS_MAX:
            writer.transport.abort()
            return
        self._open += 1
        upstream: Upstream | None = None
        try:
            upstream = await self._dial()
            if upstream is not None:
                upstream.writer.write(ahead)
                await self._pass_on(reader, writer, upstream)
        finally:
            self._open -= 1
            for each in (writer, upstream.writer if upstream else None):
                if each is not None:
                    each.close()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream: Upstream
    ) -> None:
        activity = _Activity()
        up = asyncio.create_task(_copy(reader, upstream.writer, activity, is_up=True))
        down = asyncio.create_task(_copy(upstream.reader, writer, activity, is_up=False))
        idle = asyncio.create_task(_until_idle(activity))
        tasks = (up, down, idle)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        was_unanswered = activity.up > activity.down
        is_silent = was_unanswered and time.monotonic() - activity.up >= SILENT_S
        if is_silent and self._controls is not None and upstream.control is not None:
            self._controls.failed(upstream.control, "it does not answer")


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, activity: _Activity, *, is_up: bool
) -> None:
    # A reset by either side ends the connection like its end does: HTTP says whether a message was whole.
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK_BYTES):
            activity.last = time.monotonic()
            if is_up:
                activity.up = activity.last
            else:
                activity.down = activity.last
            writer.write(chunk)
            await writer.drain()


async def _until_idle(activity: _Activity) -> None:
    # Each byte moves the end, and waking up for each would cost more than looking again at the last one.
    while (left_s := activity.last + IDLE_S - time.monotonic()) > 0:  # noqa: ASYNC110
        await asyncio.sleep(left_s)


def to_socket(path: Path) -> Dial:
    """Dials control's Unix socket, on the same machine."""

    async def dial() -> Upstream | None:
        try:
            return Upstream(*await asyncio.open_unix_connection(path))
        except OSError:
            # Control is being started; the relay asks again.
            return None

    return dial


def to_controls(controls: Controls) -> Dial:
    """Dials the control in use, or the next that takes the connection. Nothing was sent to one that did not."""

    async def dial() -> Upstream | None:
        for control in controls.in_order():
            address = control.address
            try:
                async with asyncio.timeout(CONNECT_S):
                    reader, writer = await asyncio.open_connection(
                        address.host,
                        address.port,
                        ssl=controls.context,
                        server_hostname=address.host,
                    )
            except (OSError, TimeoutError) as error:
                controls.failed(control, str(error) or "it does not take connections")
                continue
            controls.use(control)
            return Upstream(reader, writer, control)
        return None

    return dial

"""Ships what relay workers recorded to a control elsewhere: segments of usage and of responses, and kept bodies.

Each file goes under its name and is deleted when control says that it is stored. A file that was sent and whose answer
was lost is sent again, to whichever control there is: the log of usage has each name once. With each round control
hears how the node is, and how many files are left.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

import structlog

from fairlead import __version__
from fairlead.process.node_paths import BODIES_PATH, NODE_PATH, RESPONSES_PATH, SEGMENTS_PATH
from fairlead.serve.controls import Control, Controls
from fairlead.store.segment import Segment, read_segments

ROUND_EVERY_S: Final = 0.4
ANSWER_S: Final = 10.0
FINISH_S: Final = 10.0
FINISH_TRIES: Final = 3
BODIES_A_ROUND: Final = 256

log = structlog.get_logger("fairlead.tunnel")


class ShipmentFault(Exception):
    """Control answered, and did not take it."""


class ControlFull(ShipmentFault):
    """Control cannot store it now."""


class Shipment:
    """Brings a node's files to the control in use. `run` is a background task."""

    def __init__(self, controls: Controls, data_dir: Path, token: str, workers: int) -> None:
        self._controls = controls
        self._data_dir = data_dir
        self._spool = data_dir / "spool"
        self._responses = self._spool / "responses"
        self._token = token
        self._workers = workers
        self._node = secrets.token_hex(8)
        self._connection: http.client.HTTPSConnection | None = None
        self._control: Control | None = None
        self._snapshot = (0, 0)
        self._refusal = ""
        self._has_failed = False
        self._has_capacity = True
        self._one_at_a_time = threading.Lock()

    def __repr__(self) -> str:
        return "Shipment(***)"

    async def run(self) -> None:
        """Ships until cancelled."""
        while True:
            is_done = await asyncio.to_thread(self._round)
            if is_done:
                await asyncio.sleep(ROUND_EVERY_S)

    async def finish(self) -> None:
        """Ships what is left when the workers have ended; what cannot go now goes after the next start."""
        try:
            async with asyncio.timeout(FINISH_S):
                tries = 1
                while not await asyncio.to_thread(self._round) or self._has_failed:
                    if self._has_failed:
                        if tries == FINISH_TRIES:
                            raise TimeoutError
                        tries += 1
                        await asyncio.sleep(ROUND_EVERY_S)
        except TimeoutError:
            log.warning("usage is left for the next start: control does not take it")

    def _round(self) -> bool:
        """One round; whether there is nothing to do at once. Blocking."""
        # A round whose task was cancelled continues in its thread, over the same connection.
        with self._one_at_a_time:
            return self._round_alone()

    def _round_alone(self) -> bool:
        self._has_failed = False
        try:
            shipped = self._ship()
            left = self._count_left() if shipped else 0
            self._send(NODE_PATH, json.dumps(self._report(left)).encode())
        except (OSError, http.client.HTTPException, ShipmentFault) as error:
            self._has_failed = True
            self._drop_connection(error)
            return True
        self._refusal = ""
        return left == 0

    def _ship(self) -> int:
        # A record without its body would be shown as one whose body was lost.
        bodies = self._ship_bodies()
        shipped = bodies
        # Callers may ask for responses at once.
        for folder, path in ((self._responses, RESPONSES_PATH), (self._spool, SEGMENTS_PATH)):
            segments = read_segments(folder)
            for segment in segments:
                self._ship_segment(segment, path)
            shipped += len(segments)
        return shipped

    def _count_left(self) -> int:
        return len(read_segments(self._spool)) + len(read_segments(self._responses))

    def _ship_bodies(self) -> int:
        shipped = 0
        for path in self._bodies():
            try:
                self._send(f"{BODIES_PATH}?name={quote(path.stem)}", path.read_bytes())
            except ControlFull as error:
                # Usage does not wait for bodies.
                if self._has_capacity:
                    log.warning("kept bodies wait at this node", reason=str(error))
                self._has_capacity = False
                return shipped
            path.unlink(missing_ok=True)
            self._has_capacity = True
            shipped += 1
        return shipped

    def _ship_segment(self, segment: Segment, path: str) -> None:
        if segment.data:
            self._send(f"{path}?name={quote(segment.name)}", segment.data)
        segment.path.unlink(missing_ok=True)

    def _bodies(self) -> Iterator[Path]:
        try:
            with os.scandir(self._spool / "bodies") as entries:
                names = sorted(each.name for each in entries if each.name.endswith(".body"))
        except FileNotFoundError:
            return iter(())
        return (self._spool / "bodies" / name for name in names[:BODIES_A_ROUND])

    def _report(self, left: int) -> dict[str, object]:
        return {
            "node": self._node,
            "host": socket.gethostname(),
            "version": __version__,
            "workers": self._workers,
            "snapshot_version": self._snapshot_version(),
            "segments_left": left,
        }

    def _snapshot_version(self) -> int:
        """The version of the snapshot that the workers keep, which is read when the file has changed."""
        path = self._data_dir / "snapshot.json"
        try:
            changed_ns = path.stat().st_mtime_ns
            if changed_ns != self._snapshot[0]:
                self._snapshot = (changed_ns, int(json.loads(path.read_bytes())["version"]))
        except (OSError, ValueError, KeyError):
            # There is none before the first, and what cannot be read is not used by workers either.
            return self._snapshot[1]
        return self._snapshot[1]

    # --- the connection

    def _send(self, path: str, body: bytes) -> None:
        connection = self._connected()
        headers = {
            "x-fairlead-link": self._token,
            "content-type": "application/octet-stream",
        }
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status == http.HTTPStatus.SERVICE_UNAVAILABLE:
            raise ControlFull(f"it answers 503 to {path.partition('?')[0]}")
        if answer.status != http.HTTPStatus.NO_CONTENT:
            raise ShipmentFault(
                "it refuses the node token: FAIRLEAD_NODE_TOKEN must be the same at every node"
                if answer.status == http.HTTPStatus.FORBIDDEN
                else f"it answers {answer.status} to {path.partition('?')[0]}"
            )

    def _connected(self) -> http.client.HTTPSConnection:
        """A connection to the control that is used now."""
        control = self._controls.in_order()[0]
        if self._connection is None or control is not self._control:
            self._disconnect()
            address = control.address
            self._control = control
            self._connection = http.client.HTTPSConnection(
                address.host, address.port, timeout=ANSWER_S, context=self._controls.context
            )
        return self._connection

    def _drop_connection(self, error: Exception) -> None:
        """After a failure: the next round asks again, another control where this one cannot be reached."""
        self._disconnect()
        if self._control is not None and not isinstance(error, ShipmentFault):
            self._controls.failed(self._control, str(error) or type(error).__name__)
        if isinstance(error, ShipmentFault) and str(error) != self._refusal:
            self._refusal = str(error)
            log.error("control does not take what this node brings", reason=self._refusal)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

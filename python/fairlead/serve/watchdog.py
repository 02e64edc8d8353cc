"""Restarts control when it no longer answers on its socket.

A process can be alive and stuck: in an endless computation, or stopped. Relays serve from their snapshot, but
keys, sign-in, webhooks and ingestion need control. The probe asks for the cheapest answer of control's event
loop, a 403, so that slow reports, which run beside the loop, are not mistaken for a hang.

Only timeouts count as silence. Time in which this process itself did not run (a suspended machine) does not
count, and a refused connection means that control is being restarted, which `Child` handles. A control that has
not answered yet is opening its files, maybe after a crash, and gets `START_FACTOR` times as long.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from fairlead.serve.child import Child
from fairlead.serve.log import LogSink

MISSES: Final = 6
START_FACTOR: Final = 10
_QUESTION: Final = b"GET /internal/alive HTTP/1.1\r\nhost: control\r\nconnection: close\r\n\r\n"
_ANSWER: Final = b"HTTP/1.1 "


class Watchdog:
    """Watches one child.

    `silence_ms` is the longest time without an answer.
    """

    def __init__(self, child: Child, socket: Path, log: LogSink, *, silence_ms: int) -> None:
        self._child = child
        self._socket = socket
        self._log = log
        self._silence_ms = silence_ms
        self._probe_timeout_s = silence_ms / 1000 / MISSES

    async def run(self) -> None:
        """Watches until cancelled."""
        starts, misses, has_answered = self._child.starts, 0, False
        while True:
            is_answered = await self._probe()
            if self._child.starts != starts:
                # A restarted process, which has not answered yet.
                starts, misses, has_answered = self._child.starts, 0, False
                continue
            if is_answered is False:
                misses += 1
                if misses >= (MISSES if has_answered else MISSES * START_FACTOR):
                    silent_s = misses * self._probe_timeout_s
                    self._log.add(
                        f"{self._child.name} has not answered for {silent_s:g} s "
                        f"({misses} probes) and is restarted"
                    )
                    await self._child.restart_hung()
                    misses, has_answered = 0, False
                continue
            misses = 0
            has_answered = has_answered or is_answered is True
            await asyncio.sleep(self._probe_timeout_s)

    async def _probe(self) -> bool | None:
        """Whether control answered in time; None when the connection was refused or broken."""
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(self._probe_timeout_s):
                reader, writer = await asyncio.open_unix_connection(self._socket)
                writer.write(_QUESTION)
                return await reader.readexactly(len(_ANSWER)) == _ANSWER
        except TimeoutError:
            return False
        except (OSError, asyncio.IncompleteReadError):
            return None
        finally:
            if writer is not None:
                writer.close()

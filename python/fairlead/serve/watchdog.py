"""Whether control still answers: asked again and again over its socket, started anew when it does not.

A process can be there and do nothing: its loop hangs in a computation that does not end, or it was stopped. Relays
go on from their snapshot, but keys, sign-in, webhooks and the taking in of usage wait for it. What is asked for is
the smallest answer that control's loop gives, a refusal, so that a control whose reports take long is not taken for
one that hangs: they run beside the loop, and the loop answers between two of them.

Only silence counts, by questions that ran out of time. Time that passes while this process does not run itself (the
machine was suspended) is nobody's silence, and a connection that is refused is a control that is being started,
which `Child` sees to. A control that has not answered yet is opening its files, maybe after a crash: it is given
`START_FACTOR` times as long.
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
    """Watches one child. `silence_ms` is how long it may answer nothing, `grace_s` how long it may take to stop
    before it is killed.
    """

    def __init__(
        self, child: Child, socket: Path, log: LogSink, *, silence_ms: int, grace_s: float
    ) -> None:
        self._child = child
        self._socket = socket
        self._log = log
        self._silence_ms = silence_ms
        self._ask_within_s = silence_ms / 1000 / MISSES
        self._grace_s = grace_s

    async def run(self) -> None:
        """Until it is cancelled."""
        starts, misses, has_answered = self._child.starts, 0, False
        while True:
            is_answered = await self._ask()
            if self._child.starts != starts:
                # Another process, of which nothing is known yet.
                starts, misses, has_answered = self._child.starts, 0, False
                continue
            if is_answered is False:
                misses += 1
                if misses >= (MISSES if has_answered else MISSES * START_FACTOR):
                    silent_s = misses * self._ask_within_s
                    self._log.say(
                        f"{self._child.name} has answered nothing for {silent_s:g} s "
                        f"({misses} questions) and is started anew"
                    )
                    await self._child.restart(self._grace_s)
                    misses, has_answered = 0, False
                continue
            misses = 0
            has_answered = has_answered or is_answered is True
            await asyncio.sleep(self._ask_within_s)

    async def _ask(self) -> bool | None:
        """Whether it answered in time; None where nobody takes connections, or one was broken."""
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(self._ask_within_s):
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

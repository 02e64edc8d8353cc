"""A TCP connection between two processes that a test can cut and slow down.

with TcpLink(port_of_server) as link:
    ... clients connect to link.port ...
    link.cut()      # nothing passes, and nobody is told
    link.mend()     # what was held back passes now
    link.delay_s = 0.5
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import Final, Self

CHUNK_BYTES: Final = 65_536


class TcpLink:
    """Passes bytes to a port of this machine, on a thread of its own."""

    host = "127.0.0.1"

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.delay_s = 0.0
        self.port = 0
        self.answered_s = 0.0
        """When bytes last came from the target, by `time.monotonic`."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._is_whole = asyncio.Event()
        self._is_whole.set()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._open)

    def cut(self) -> None:
        self._loop.call_soon_threadsafe(self._is_whole.clear)

    def mend(self) -> None:
        self._loop.call_soon_threadsafe(self._is_whole.set)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, self.host, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._is_whole.wait()
            try:
                upstream = await asyncio.open_connection("127.0.0.1", self.target_port)
            except OSError:
                return
            ways = [
                asyncio.create_task(self._pass(reader, upstream[1])),
                asyncio.create_task(self._pass(upstream[0], writer, is_answer=True)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
                upstream[1].transport.abort()
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool = False
    ) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                await self._is_whole.wait()
                if is_answer:
                    self.answered_s = time.monotonic()
                writer.write(chunk)
                await writer.drain()

"""What an open stream costs in memory: many callers that each read one chunk and then wait."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import process
from target import Target, post

OPENING_AT_ONCE = 100
FIRST_CHUNK_S = 30
# Short requests that are asked among the open streams, one after the other.
NEW_REQUESTS = 51


@dataclass(frozen=True, slots=True)
class OpenStreams:
    """Memory of the worker before and with `count` open streams."""

    count: int
    rss_before_bytes: int
    rss_with_bytes: int
    opening_s: float
    new_request_ms: float
    """The median of whole short requests while the streams are open, each on a connection of its own."""

    @property
    def bytes_each(self) -> float:
        return (self.rss_with_bytes - self.rss_before_bytes) / self.count


def hold_open(target: Target, worker_pid: int, count: int) -> OpenStreams:
    """Opens `count` streams of a model that stalls after one chunk, and leaves them all again."""
    return asyncio.run(_hold_open(target, worker_pid, count))


async def _hold_open(target: Target, worker_pid: int, count: int) -> OpenStreams:
    model = target.model.replace("mock", "stall")
    body = target.body(stream=True, model=model)
    url = urlsplit(target.url)
    headers = {"host": url.netloc, "content-type": "application/json", **target.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    request = (
        f"POST {url.path} HTTP/1.1\r\n{head}content-length: {len(body)}\r\n\r\n{body}".encode()
    )
    gate = asyncio.Semaphore(OPENING_AT_ONCE)

    async def open_one() -> asyncio.StreamWriter:
        async with gate, asyncio.timeout(FIRST_CHUNK_S):
            reader, writer = await asyncio.open_connection(url.hostname, url.port)
            writer.write(request)
            await reader.readuntil(b"data: {")
            return writer

    before = process.rss_bytes(worker_pid)
    started = time.monotonic()
    writers = await asyncio.gather(*(open_one() for _ in range(count)))
    opening_s = time.monotonic() - started
    held = await settled_rss(worker_pid)
    took_ms = [await new_request(target) for _ in range(NEW_REQUESTS)]
    result = OpenStreams(count, before, held, opening_s, statistics.median(took_ms))
    for writer in writers:
        writer.close()
    for writer in writers:
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    return result


async def new_request(target: Target) -> float:
    """Milliseconds for one whole short request, its connection included."""
    started = time.monotonic()
    await asyncio.to_thread(post, target.url, target.body(stream=False), target.headers)
    return (time.monotonic() - started) * 1e3


async def settled_rss(pid: int, steady_s: float = 1.0, deadline_s: float = 20) -> int:
    """Resident memory once it has not moved for `steady_s`."""
    end = time.monotonic() + deadline_s
    value, since = process.rss_bytes(pid), time.monotonic()
    while time.monotonic() < end and time.monotonic() - since < steady_s:
        await asyncio.sleep(0.1)
        if (now := process.rss_bytes(pid)) != value:
            value, since = now, time.monotonic()
    return value

"""The pool of processes that read pages: a few, each with one page at a time and a deadline. One that is late is
killed, one that has read `PAGES_WORN` pages is replaced, one that dies takes its page with it and no other. Keys
take turns: slow pages of one key leave a process for the others.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import orjson
import structlog

from fairlead.errors import InvalidRequest
from fairlead.process.minimal_environment import minimal_environment
from fairlead.scrape.page.extract import ReadOptions, Source
from fairlead.scrape.page.fair_queue import FairQueue, QueueFull
from fairlead.scrape.page.patterns import AddressPatterns

WORKERS: Final = 3
OWN_WORKERS: Final = 2
WAITING_MAX: Final = 400
OWN_WAITING_MAX: Final = 200
READ_DEADLINE_S: Final = 15.0
START_DEADLINE_S: Final = 20.0
PAGES_WORN: Final = 5000
ANSWER_MAX_BYTES: Final = 64 * 1024 * 1024
STREAM_BYTES: Final = 1024 * 1024

log = structlog.get_logger("fairlead.scrape")


class ReadFailed(Exception):
    """A page that could not be read: `code` is `timeout`, `too_large`, `content_type`,
    `overloaded` or `internal`.
    """

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


class _Worker:
    """One process of the pool and our end of its socket."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.process = process
        self.pages = 0
        self._reader = reader
        self._writer = writer

    async def ask(self, head: bytes, body: bytes) -> bytes:
        self.pages += 1
        for part in (head, body):
            self._writer.write(len(part).to_bytes(4, "big"))
            self._writer.write(part)
        await self._writer.drain()
        length = int.from_bytes(await self._reader.readexactly(4), "big")
        if length > ANSWER_MAX_BYTES:
            raise EOFError
        return await self._reader.readexactly(length)

    async def end(self) -> None:
        """Kills it and waits until it is gone."""
        self.process.kill()
        self._writer.close()
        await asyncio.to_thread(self.process.wait)


class Pool:
    """Starts processes when they are first needed and keeps them. `owner` is the id of the key that a page is read
    for.
    """

    def __init__(self, workers: int = WORKERS, read_deadline_s: float = READ_DEADLINE_S) -> None:
        self._read_deadline_s = read_deadline_s
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._queue = FairQueue(workers, min(OWN_WORKERS, workers), WAITING_MAX, OWN_WAITING_MAX)

    @property
    def process_ids(self) -> list[int]:
        """The processes that are running."""
        return [worker.process.pid for worker in self._all]

    async def close(self) -> None:
        """Ends all processes."""
        workers, self._all, self._idle = self._all, set(), []
        for worker in workers:
            await worker.end()

    async def read(
        self, source: Source, options: ReadOptions, owner: str = ""
    ) -> tuple[dict[str, Any], list[str]]:
        """`selection.extract_selected` in a process of the pool, in bounded time. `InvalidRequest` for a selector that
        is not supported, `ReadFailed`.
        """
        head = {
            "url": source.url,
            "content_type": source.content_type,
            "redirects": source.redirects,
            "options": asdict(options),
        }
        answer = await self._answer(head, source.body, owner)
        if "refused" in answer:
            raise InvalidRequest(answer["refused"])
        return answer["document"], answer["links"]

    async def select(
        self, url: str, html: str, plan: dict[str, Any] | None, owner: str = ""
    ) -> dict[str, Any]:
        """`extract.select` in a process of the pool, in bounded time. `ReadFailed`."""
        head = {"url": url, "plan": plan}
        answer = await self._answer(head, html.encode("utf-8", "replace"), owner)
        selected: dict[str, Any] = answer["selected"]
        return selected

    async def read_sitemap(
        self, url: str, body: bytes, addresses_max: int, owner: str = ""
    ) -> tuple[bool, list[str]]:
        """`sitemap.read_sitemap` in a process of the pool: whether the sitemap is an index, and its addresses.
        `ReadFailed`.
        """
        head = {"url": url, "addresses_max": addresses_max}
        sitemap = (await self._answer(head, body, owner))["sitemap"]
        return sitemap["isIndex"], sitemap["addresses"]

    async def judge(self, question: dict[str, Any], owner: str = "") -> dict[str, Any]:
        """`schema.judge` in a process of the pool; `question` is `{"schema", "data"?}`. `ReadFailed`."""
        return await self._answer({"judges": True}, orjson.dumps(question), owner)

    async def choose(
        self, patterns: AddressPatterns, addresses: Sequence[str], owner: str = ""
    ) -> list[str]:
        """The addresses that the patterns take, in order, chosen in a process of the pool. `InvalidRequest` for a
        pattern that is unreadable or too large, `ReadFailed`.
        """
        lists = [patterns.include_paths, patterns.exclude_paths, patterns.include, patterns.exclude]
        question = {"lists": lists, "words": patterns.words, "addresses": addresses}
        answer = await self._answer({"chooses": True}, orjson.dumps(question), owner)
        if "refused" in answer:
            raise InvalidRequest(answer["refused"])
        accepted: list[str] = answer["accepted"]
        return accepted

    async def _answer(self, head: dict[str, Any], body: bytes, owner: str) -> dict[str, Any]:
        question = orjson.dumps(head)
        try:
            async with self._queue.slot(owner):
                answer: dict[str, Any] = orjson.loads(await self._call_worker(question, body))
        except QueueFull:
            raise ReadFailed("Too many pages wait to be read.", "overloaded") from None
        if "unreadable" in answer:
            raise ReadFailed(answer["unreadable"], "content_type")
        if "defect" in answer:
            log.error("page not read", error=answer["defect"])
            raise ReadFailed("This is a defect of fairlead; its log has more.", "internal")
        return answer

    async def _call_worker(self, head: bytes, body: bytes) -> bytes:
        worker = await self._worker()
        is_whole = False
        try:
            async with asyncio.timeout(self._read_deadline_s):
                answer = await worker.ask(head, body)
            is_whole = True
            return answer
        except TimeoutError:
            raise ReadFailed("The page took too long to read.", "timeout") from None
        except (OSError, EOFError):
            raise ReadFailed(
                "The page could not be read: it took more memory than a page may.", "too_large"
            ) from None
        finally:
            # Also after a cancellation: an unread answer would be taken for that of the next page.
            if is_whole and worker.pages < PAGES_WORN:
                self._idle.append(worker)
            else:
                self._all.discard(worker)
                await worker.end()

    async def _worker(self) -> _Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.process.poll() is None:
                return worker
            self._all.discard(worker)
            await worker.end()
        async with asyncio.timeout(START_DEADLINE_S):
            process, wire = await asyncio.to_thread(_start)
            try:
                reader, writer = await asyncio.open_connection(sock=wire, limit=STREAM_BYTES)
            except BaseException:
                process.kill()
                wire.close()
                raise
        worker = _Worker(process, reader, writer)
        self._all.add(worker)
        return worker


# In KiB. By default the allocator of the Rust side reserves 1 GiB of addresses, which is all that a worker may have.
_ENVIRONMENT: Final = {"MIMALLOC_ARENA_RESERVE": "32768"}


def _start() -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "fairlead.scrape.page.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env=minimal_environment(**_ENVIRONMENT),
        )
    ours.setblocking(False)
    return process, ours

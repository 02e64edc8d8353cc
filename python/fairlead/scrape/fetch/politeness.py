"""Politeness towards a host: its robots.txt, the pause between requests, and how many run at once.

Hosts are forgotten when they are idle, so neither table grows with what was crawled.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from protego import Protego

from fairlead.net.url import split_url
from fairlead.scrape.address import host_of
from fairlead.scrape.fetch.fetcher import ROBOT, Fetcher, FetchFailed
from fairlead.scrape.fetch.robots import parse_robots, text_of

ROBOTS_MAX_BYTES: Final = 500 * 1024
ROBOTS_DEADLINE_S: Final = 10.0
ROBOTS_TTL_S: Final = 3600.0
ROBOTS_RETRY_S: Final = 60.0
# Counted as received; parsed rules take some twenty times as much memory.
ROBOTS_CACHE_BYTES: Final = 8 * 1024 * 1024
CRAWL_DELAY_MAX_S: Final = 30.0
HOSTS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a host's robots.txt. `parsed` is None where nothing is disallowed, `unread` a sentence with the
    reason where it could not be read, so that everything is.
    """

    parsed: Protego | None
    fresh_until_s: float
    size_bytes: int = 0
    unread: str = ""

    def allows(self, url: str) -> bool:
        """Whether our robot may fetch the address."""
        if self.unread:
            return False
        return self.parsed is None or bool(self.parsed.can_fetch(url, ROBOT))

    def refusal(self, sentence: str) -> FetchFailed:
        """The failure of a page that is not allowed; `sentence` says so where robots.txt does."""
        unread = f"The site's robots.txt cannot be read, so no page of it is. {self.unread}"
        return FetchFailed(unread if self.unread else sentence, code="robots")

    @property
    def delay_s(self) -> float:
        """`Crawl-delay`, capped; 0 where there is none."""
        delay_s = self.parsed.crawl_delay(ROBOT) if self.parsed else None
        return min(float(delay_s), CRAWL_DELAY_MAX_S) if delay_s and delay_s > 0 else 0.0

    @property
    def sitemaps(self) -> list[str]:
        """The sitemaps that robots.txt names, at most 50."""
        return list(self.parsed.sitemaps)[:50] if self.parsed else []


def _is_stale(task: asyncio.Task[Rules]) -> bool:
    if task.cancelled() or task.exception():
        return True
    return task.result().fresh_until_s < time.monotonic()


def _size_of(task: asyncio.Task[Rules]) -> int:
    is_read = task.done() and not task.cancelled() and not task.exception()
    return task.result().size_bytes if is_read else 0


@dataclass(slots=True)
class _Host:
    free: asyncio.Semaphore
    width: int
    next_s: float = 0.0
    users: int = 0
    order: asyncio.Lock = field(default_factory=asyncio.Lock)


class Politeness:
    """The pace of requests to hosts, one object for the process: a host has one pace, whoever crawls it."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._rules: OrderedDict[str, asyncio.Task[Rules]] = OrderedDict()
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

    async def close(self) -> None:
        """Cancels fetches of robots.txt in progress."""
        for task in self._rules.values():
            task.cancel()
        await asyncio.gather(*self._rules.values(), return_exceptions=True)
        self._rules.clear()

    async def rules(self, url: str) -> Rules:
        """The rules of the address's origin; concurrent callers share one fetch."""
        parts = split_url(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        task = self._rules.get(origin)
        if task is not None and task.done() and _is_stale(task):
            task = None
        if task is None:
            task = asyncio.create_task(self._fetch_rules(origin), name=f"robots {origin}")
            self._rules[origin] = task
            self._forget_rules()
        self._rules.move_to_end(origin)
        return await asyncio.shield(task)

    def _forget_rules(self) -> None:
        """Drops the least recently used rules beyond `HOSTS_MAX` and `ROBOTS_CACHE_BYTES`."""
        size = sum(map(_size_of, self._rules.values()))
        while len(self._rules) > HOSTS_MAX or size > ROBOTS_CACHE_BYTES:
            _, task = self._rules.popitem(last=False)
            size -= _size_of(task)
            task.cancel()

    @asynccontextmanager
    async def slot(self, url: str, *, width: int, delay_s: float) -> AsyncIterator[None]:
        """Waits until a request to the host may begin: at most `width` at once, `delay_s` between two starts."""
        name = host_of(url)
        host = self._hosts.get(name)
        if host is None or (host.width != width and host.users == 0):
            host = self._hosts[name] = _Host(asyncio.Semaphore(width), width)
            self._forget()
        self._hosts.move_to_end(name)
        host.users += 1
        try:
            async with host.free:
                if delay_s > 0:
                    async with host.order:
                        now_s = time.monotonic()
                        starts_s = max(now_s, host.next_s)
                        host.next_s = starts_s + delay_s
                    await asyncio.sleep(starts_s - now_s)
                yield
        finally:
            host.users -= 1

    def _forget(self) -> None:
        if len(self._hosts) <= HOSTS_MAX:
            return
        now_s = time.monotonic()
        idle = [n for n, host in self._hosts.items() if not host.users and host.next_s < now_s]
        for name in idle[: len(self._hosts) - HOSTS_MAX]:
            del self._hosts[name]

    async def _fetch_rules(self, origin: str) -> Rules:
        """Fetches robots.txt by RFC 9309: 4xx disallows nothing; unreachable or 5xx disallows everything."""
        now_s = time.monotonic()
        try:
            answer = await self._fetcher.fetch(
                f"{origin}/robots.txt", max_bytes=ROBOTS_MAX_BYTES, deadline_s=ROBOTS_DEADLINE_S
            )
            status, body = answer.status, answer.body
        except FetchFailed as failure:
            if failure.code != "too_large" or failure.status is None:
                return Rules(None, now_s + ROBOTS_RETRY_S, unread=failure.reason)
            # Text beyond the limit is not read, and the last line may have been cut.
            status, body = failure.status, failure.begun.rpartition(b"\n")[0]
        if status >= 500 or status == 429:
            return Rules(None, now_s + ROBOTS_RETRY_S, unread=f"The host answered {status}.")
        if status >= 400:
            return Rules(None, now_s + ROBOTS_TTL_S)
        # Half a megabyte of rules takes a good part of a second.
        rules = await asyncio.to_thread(parse_robots, text_of(body))
        return Rules(rules, now_s + ROBOTS_TTL_S, size_bytes=len(body))

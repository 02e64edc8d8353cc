"""The frontier of a running job: addresses to read, in the order of depth and finding, each once."""

from __future__ import annotations

import heapq
from typing import Final

from fairlead.net.url import split_url
from fairlead.scrape.address import is_page
from fairlead.scrape.jobs.table import FrontierEntry
from fairlead.scrape.page.patterns import AddressPatterns
from fairlead.scrape.requests.jobs import CrawlRequest

KNOWN_MAX: Final = 50_000
"""Addresses that one job remembers. A site that makes up addresses without end is cut off here."""


def patterns_of(request: CrawlRequest) -> AddressPatterns:
    """The patterns of addresses that a crawl takes."""
    if request.regex_on_full_url:
        return AddressPatterns(
            include=(*request.include_paths, *request.include_patterns),
            exclude=(*request.exclude_paths, *request.exclude_patterns),
        )
    return AddressPatterns(
        tuple(request.include_paths),
        tuple(request.exclude_paths),
        tuple(request.include_patterns),
        tuple(request.exclude_patterns),
    )


class Frontier:
    """The frontier. It is filled from the rows with `mark_known` and `add_stored`; then `pop` and `add` move it on."""

    def __init__(self, request: CrawlRequest | None, start: str) -> None:
        self._depth_max = request.depth_max if request else 0
        self._subdomains = bool(request and request.allow_subdomains)
        self._hosts = {split_url(start).netloc}
        self._known: set[str] = set()
        self._waiting: list[tuple[int, int, str]] = []
        self._next = 0

    def mark_known(self, url: str) -> bool:
        """Adds an address to the known ones; False if it was known."""
        if url in self._known:
            return False
        self._known.add(url)
        return True

    def add_stored(self, place: FrontierEntry, *, pending: bool) -> None:
        """Adds a stored address, which waits if it is still `pending`."""
        self._known.add(place.url)
        self._next = max(self._next, place.place + 1)
        if pending:
            heapq.heappush(self._waiting, (place.depth, place.place, place.url))

    def add_host_of(self, url: str) -> None:
        """Adds the host of the start page's final address to the site: the start may have been redirected."""
        self._hosts.add(split_url(url).netloc)

    @property
    def depth(self) -> int:
        """How deep the next address is; 0 where there is none."""
        return self._waiting[0][0] if self._waiting else 0

    def pop(self) -> FrontierEntry | None:
        """The next address to read."""
        if not self._waiting:
            return None
        depth, place, url = heapq.heappop(self._waiting)
        return FrontierEntry(place, depth, url)

    def candidates(self, links: list[str], depth: int) -> list[str]:
        """The addresses among a page's links that are new and of the site, each once. The caller's patterns choose
        among them, which takes a while; `add` takes what they chose.
        """
        if depth > self._depth_max:
            return []
        inside = [url for url in links if url not in self._known and self._is_inside(url)]
        return list(dict.fromkeys(inside))

    def add(self, chosen: list[str], depth: int) -> list[FrontierEntry]:
        """Adds chosen candidates that no other page has added meanwhile; they wait to be read."""
        remaining = KNOWN_MAX - len(self._known)
        found: list[FrontierEntry] = []
        new = [url for url in chosen if url not in self._known]
        for url in new[: max(remaining, 0)]:
            place = FrontierEntry(self._next, depth, url)
            self.add_stored(place, pending=True)
            found.append(place)
        return found

    def _is_inside(self, url: str) -> bool:
        if not is_page(url):
            return False
        host = split_url(url).netloc
        if host in self._hosts:
            return True
        return self._subdomains and any(host.endswith("." + own) for own in self._hosts)

"""The frontier of a running job: addresses to read, in the order of depth and finding, each once."""

from __future__ import annotations

import heapq
from typing import Final
from urllib.parse import urlsplit

from fairlead.scrape.address import is_page
from fairlead.scrape.jobs.table import Place
from fairlead.scrape.page.patterns import AddressPatterns
from fairlead.scrape.requests.jobs import CrawlRequest

KNOWN_MAX: Final = 50_000
"""Addresses that one job remembers. A site that makes up addresses without end is cut off here."""


def patterns_of(ask: CrawlRequest) -> AddressPatterns:
    """The patterns of addresses that a crawl takes."""
    if ask.regex_on_full_url:
        return AddressPatterns(
            include=(*ask.include_paths, *ask.include_patterns),
            exclude=(*ask.exclude_paths, *ask.exclude_patterns),
        )
    return AddressPatterns(
        tuple(ask.include_paths),
        tuple(ask.exclude_paths),
        tuple(ask.include_patterns),
        tuple(ask.exclude_patterns),
    )


class Frontier:
    """The frontier. It is filled from the rows with `mark_known` and `add_stored`; then `pop` and `add` move it on."""

    def __init__(self, ask: CrawlRequest | None, start: str) -> None:
        self._depth_max = ask.depth_max if ask else 0
        self._subdomains = bool(ask and ask.allow_subdomains)
        self._hosts = {urlsplit(start).netloc}
        self._known: set[str] = set()
        self._waiting: list[tuple[int, int, str]] = []
        self._next = 0

    def mark_known(self, url: str) -> bool:
        """Adds an address to the known ones; False if it was known."""
        if url in self._known:
            return False
        self._known.add(url)
        return True

    def add_stored(self, place: Place, *, pending: bool) -> None:
        """Adds a stored address, which waits if it is still `pending`."""
        self._known.add(place.url)
        self._next = max(self._next, place.place + 1)
        if pending:
            heapq.heappush(self._waiting, (place.depth, place.place, place.url))

    def add_host_of(self, url: str) -> None:
        """Adds the host of the start page's final address to the site: the start may have been redirected."""
        self._hosts.add(urlsplit(url).netloc)

    @property
    def depth(self) -> int:
        """How deep the next address is; 0 where there is none."""
        return self._waiting[0][0] if self._waiting else 0

    def pop(self) -> Place | None:
        """The next address to read."""
        if not self._waiting:
            return None
        depth, place, url = heapq.heappop(self._waiting)
        return Place(place, depth, url)

    def candidates(self, links: list[str], depth: int) -> list[str]:
        """The addresses among a page's links that are new and of the site, each once. The caller's patterns choose
        among them, which takes a while; `add` takes what they chose.
        """
        if depth > self._depth_max:
            return []
        inside = [url for url in links if url not in self._known and self._is_inside(url)]
        return list(dict.fromkeys(inside))

    def add(self, chosen: list[str], depth: int) -> list[Place]:
        """Adds chosen candidates that no other page has added meanwhile; they wait to be read."""
        room = KNOWN_MAX - len(self._known)
        found: list[Place] = []
        new = [url for url in chosen if url not in self._known]
        for url in new[: max(room, 0)]:
            place = Place(self._next, depth, url)
            self.add_stored(place, pending=True)
            found.append(place)
        return found

    def _is_inside(self, url: str) -> bool:
        if not is_page(url):
            return False
        host = urlsplit(url).netloc
        if host in self._hosts:
            return True
        return self._subdomains and any(host.endswith("." + own) for own in self._hosts)

"""The frontier of a running job: addresses to read, in the order of its strategy, each once."""

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
        self._request = request
        self._depth_max = request.depth_max if request else 0
        self._keywords = [word.lower() for word in request.keywords] if request else []
        self._starts: dict[str, set[str]] = {}
        """Paths below which the pages of a host are of the site."""
        self.add_start(start)
        self._known: set[str] = set()
        self._waiting: list[tuple[tuple[int, int], FrontierEntry]] = []
        self._next = 0

    def mark_known(self, url: str) -> bool:
        """Adds an address to the known ones; False if it was known."""
        name = self._name(url)
        if name in self._known:
            return False
        self._known.add(name)
        return True

    def is_one(self, url: str, other: str) -> bool:
        """Whether two addresses are one page to this job."""
        return self._name(url) == self._name(other)

    def add_stored(self, place: FrontierEntry, *, pending: bool) -> None:
        """Adds a stored address, which waits if it is still `pending`."""
        self._known.add(self._name(place.url))
        self._next = max(self._next, place.place + 1)
        if pending:
            heapq.heappush(self._waiting, (self._rank(place), place))

    def add_start(self, url: str) -> None:
        """Adds the site of an address: that of the request, and where it was redirected to."""
        parts = split_url(url)
        self._starts.setdefault(parts.netloc, set()).add(parts.path)

    @property
    def depth(self) -> int:
        """The depth before which the next address must not be read; 0 where its order does not depend on depth."""
        is_by_depth = self._request is None or self._request.strategy == "bfs"
        return self._waiting[0][1].depth if self._waiting and is_by_depth else 0

    def pop(self) -> FrontierEntry | None:
        """The next address to read."""
        return heapq.heappop(self._waiting)[1] if self._waiting else None

    def candidates(self, links: list[str], depth: int, page: str | None = None) -> list[str]:
        """The addresses among the links of a page that are new and may be read, each once. `page` is its address. The
        caller's patterns choose among them, which takes a while; `add` takes what they chose.
        """
        if depth > self._depth_max:
            return []
        is_of_site = page is None or self._is_inside(page)
        external = is_of_site and bool(self._request and self._request.allow_external_content_links)
        new: dict[str, str] = {}
        for url in links:
            name = self._name(url)
            if name in self._known or name in new or not is_page(url):
                continue
            if self._is_inside(url) or (external and self._is_elsewhere(url)):
                new[name] = url
        return list(new.values())

    def add(self, chosen: list[str], depth: int) -> list[FrontierEntry]:
        """Adds chosen candidates that no other page has added meanwhile; they wait to be read."""
        remaining = KNOWN_MAX - len(self._known)
        found: list[FrontierEntry] = []
        new = [url for url in chosen if self._name(url) not in self._known]
        for url in new[: max(remaining, 0)]:
            place = FrontierEntry(self._next, depth, url)
            self.add_stored(place, pending=True)
            found.append(place)
        return found

    def _rank(self, place: FrontierEntry) -> tuple[int, int]:
        """The order of reading: the lowest rank first."""
        strategy = self._request.strategy if self._request else "bfs"
        if strategy == "dfs":
            return -place.depth, place.place
        if strategy == "best_first":
            address = place.url.lower()
            return -sum(word in address for word in self._keywords), place.place
        return place.depth, place.place

    def _name(self, url: str) -> str:
        """The name under which an address is known: two addresses with one name are one page."""
        if self._request is None or not self._request.ignore_query_parameters:
            return url
        return url.partition("?")[0]

    def _is_inside(self, url: str) -> bool:
        """Whether a page is of the site: below the path of a start, or on a subdomain if those are allowed."""
        parts = split_url(url)
        if parts.netloc in self._starts:
            if self._request is None or self._request.reads_whole_host:
                return True
            return any(_is_below(parts.path, start) for start in self._starts[parts.netloc])
        return self._is_subdomain(parts.netloc)

    def _is_subdomain(self, host: str) -> bool:
        is_allowed = self._request is not None and self._request.allow_subdomains
        return is_allowed and any(host.endswith("." + own) for own in self._starts)

    def _is_elsewhere(self, url: str) -> bool:
        return split_url(url).netloc not in self._starts


def _is_below(path: str, start: str) -> bool:
    """Whether a path is the start's or below it. A start that is a file, such as `/docs/index.html`, stands for its
    folder.
    """
    folder, _, last = start.rpartition("/")
    if not last or "." in last:
        return path == start or path.startswith(folder + "/")
    return path == start or path.startswith(start + "/")

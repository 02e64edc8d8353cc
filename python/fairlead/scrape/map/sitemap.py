"""Addresses from sitemaps: those that robots.txt names, else the usual one."""

from __future__ import annotations

from collections import deque
from typing import Final

import structlog

from fairlead.net.url import split_url
from fairlead.scrape.address import BadAddress, canonical
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.scraper import Scraper

FILES_MAX: Final = 50
FILE_MAX_BYTES: Final = 10 * 1024 * 1024
# Sitemaps of an index that wait; more than `FILES_MAX`, because some may be named twice or be no addresses.
WAITING_MAX: Final = 500

log = structlog.get_logger("fairlead.scrape")


async def sitemap_urls(scraper: Scraper, url: str, limit: int, owner: str = "") -> list[str]:
    """Addresses of the site's sitemaps, in order, each once, at most `limit`. They are read for `owner`, in the
    processes that read pages: the text is untrusted.
    """
    parts = split_url(url)
    rules = await scraper.politeness.rules(url)
    waiting = deque(rules.sitemaps or [f"{parts.scheme}://{parts.netloc}/sitemap.xml"])
    read: set[str] = set()
    found: dict[str, None] = {}
    while waiting and len(read) < FILES_MAX and len(found) < limit:
        try:
            target = canonical(waiting.popleft(), base=url)
        except BadAddress:
            continue
        if target in read:
            continue
        read.add(target)
        try:
            fetched = await scraper.fetcher.fetch(target, max_bytes=FILE_MAX_BYTES)
            if fetched.status >= 400:
                continue
            is_index, addresses = await scraper.read_sitemap(
                target, fetched.body, max(limit, FILES_MAX), owner
            )
        except FetchFailed as failure:
            # A sitemap that cannot be fetched or read leaves the others.
            log.info("sitemap not read", host=split_url(target).netloc, reason=failure.code)
            continue
        if is_index:
            waiting.extend(addresses[: WAITING_MAX - len(waiting)])
            continue
        for address in addresses[: limit - len(found)]:
            found[address] = None
    return list(found)

"""Addresses from sitemaps: those that robots.txt names, else the usual one."""

from __future__ import annotations

import re
import zlib
from html import unescape
from typing import Final
from urllib.parse import urlsplit

from fairlead.scrape.address import BadAddress, canonical
from fairlead.scrape.fetch import FetchFailed
from fairlead.scrape.scraper import Scraper

FILES_MAX: Final = 50
FILE_MAX_BYTES: Final = 10 * 1024 * 1024

# Only `<loc>` counts. There is no XML parser, hence no entity that could be expanded.
_LOC = re.compile(
    r"<loc>\s*(?:<!\[CDATA\[)?\s*([^<\]]{1,2048}?)\s*(?:\]\]>)?\s*</loc>", re.IGNORECASE
)


async def sitemap_urls(scraper: Scraper, url: str, limit: int) -> list[str]:
    """Addresses of the site's sitemaps, in order, each once, at most `limit`."""
    parts = urlsplit(url)
    rules = await scraper.manners.rules(url)
    waiting = rules.sitemaps or [f"{parts.scheme}://{parts.netloc}/sitemap.xml"]
    read: set[str] = set()
    found: dict[str, None] = {}
    while waiting and len(read) < FILES_MAX and len(found) < limit:
        try:
            target = canonical(waiting.pop(0), base=url)
        except BadAddress:
            continue
        if target in read:
            continue
        read.add(target)
        try:
            fetched = await scraper.fetcher.fetch(target, max_bytes=FILE_MAX_BYTES)
        except (FetchFailed, zlib.error):
            continue
        if fetched.status >= 400:
            continue
        is_index = "<sitemapindex" in fetched.text[:2000].lower()
        for match in _LOC.finditer(fetched.text):
            try:
                address = canonical(unescape(match[1]), base=target)
            except BadAddress:
                continue
            if is_index:
                waiting.append(address)
            elif len(found) < limit:
                found[address] = None
    return list(found)

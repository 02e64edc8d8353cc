"""One scrape: from an address and options to what is answered. One `Scraper` for the process."""

from __future__ import annotations

import asyncio
import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import orjson
from selectolax.lexbor import LexborHTMLParser

from fairlead.moment import iso, moment_of, now_ms
from fairlead.scrape.browser import Browser
from fairlead.scrape.cache import Cached, find_cached, store_cached
from fairlead.scrape.fetch import Fetched, Fetcher, FetchFailed
from fairlead.scrape.manners import Manners
from fairlead.scrape.options import ScrapeOptions
from fairlead.scrape.page.content import main_content, prune
from fairlead.scrape.page.markdown import Style, markdown_of, plain_of
from fairlead.scrape.page.metadata import metadata_of
from fairlead.scrape.page.nesting import flattened
from fairlead.scrape.page.parts import base_of, code_of, images_of, links_of, tables_of
from fairlead.scrape.page.tree import tree_of
from fairlead.store.operator_settings import OperatorSettings, read_operator_settings
from fairlead.store.services import Services

CACHE_TTL_S: Final = 3600
EXTRACT_DEADLINE_S: Final = 20.0
EXTRACTORS: Final = 2
EXTRACTIONS_WAITING_MAX: Final = 200
SETTINGS_KEPT_S: Final = 1.0

_HTML: Final = frozenset(["text/html", "application/xhtml+xml", ""])
_TEXTUAL: Final = ("text/", "application/json", "application/xml", "application/ld+json")


@dataclass(frozen=True, slots=True)
class Scraped:
    """A page that was read. `document` is what the caller gets; `links` are where a crawl may go."""

    url: str
    status: int
    document: dict[str, Any]
    links: list[str]


class Scraper:
    """Fetches with manners, extracts in threads, keeps a cache in the state database."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.egress = services.egress
        self.fetcher = Fetcher(self.egress)
        self.manners = Manners(self.fetcher)
        self.browser = Browser(self.egress)
        self._threads = ThreadPoolExecutor(EXTRACTORS, thread_name_prefix="extract")
        self._extracting = asyncio.Semaphore(EXTRACTIONS_WAITING_MAX)
        self._settings: tuple[float, OperatorSettings] | None = None

    async def close(self) -> None:
        """Ends connections, threads and the browser."""
        await self.manners.close()
        await self.fetcher.close()
        await self.browser.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def settings(self, *, fresh: bool = False) -> OperatorSettings:
        """The settings; at most a second old, or those in force now."""
        now_s = time.monotonic()
        if fresh or self._settings is None or now_s - self._settings[0] > SETTINGS_KEPT_S:
            self._settings = (now_s, await self.services.state.read(read_operator_settings))
        return self._settings[1]

    async def scrape(
        self, url: str, options: ScrapeOptions, owner: str, *, wants_links: bool = False
    ) -> Scraped:
        """Reads one page for a key. Raises `FetchFailed` when it was not got, was refused by
        robots.txt, or answered with an error.
        """
        started = time.monotonic()
        key = cache_key(owner, url, options)
        cached: Cached | None = None
        if not options.skip_cache:
            cached = await self.services.state.read(lambda con: find_cached(con, key))
            if cached is not None and cached.expires_at_ms > now_ms():
                return _from_cache(cached, started)
        fetched = await self.get(url, options, cached)
        if fetched is None and cached is not None:
            await self._keep(cached.renewed(now_ms() + 1000 * (options.cache_ttl or CACHE_TTL_S)))
            return _from_cache(cached, started)
        if fetched is None:
            raise FetchFailed("The page answered 304 to a request without conditions.", status=304)
        if fetched.status >= 400:
            raise FetchFailed(
                f"The page answered {fetched.status}.", status=fetched.status, code="status"
            )
        document, links = await self.extract(fetched, options)
        at_ms = now_ms()
        document["metadata"] |= {
            "timestamp": iso(moment_of(at_ms)),
            "status": fetched.status,
            "loadTime": round(fetched.elapsed_ms),
            "processingTime": round((time.monotonic() - started) * 1000),
            "fromCache": False,
            "cacheTtl": options.cache_ttl or CACHE_TTL_S,
        }
        scraped = Scraped(fetched.url, fetched.status, document, links)
        if not options.skip_cache and not wants_links:
            await self._keep(
                Cached(
                    key=key, owner=owner, url=url, final_url=fetched.url, status=fetched.status,
                    etag=fetched.headers.get("etag"),
                    last_modified=fetched.headers.get("last-modified"),
                    stored_at_ms=at_ms,
                    expires_at_ms=at_ms + 1000 * (options.cache_ttl or CACHE_TTL_S),
                    document=orjson.dumps(document).decode(),
                )
            )  # fmt: skip
        return scraped

    async def get(
        self, url: str, options: ScrapeOptions, cached: Cached | None = None
    ) -> Fetched | None:
        """The page as it came, over HTTP or by the browser; None where the cached copy still holds."""
        settings = await self.settings()
        delay_s = settings.scrape_host_delay_ms / 1000
        if settings.scrape_robots:
            rules = await self.manners.rules(url)
            if not rules.allows(url):
                raise FetchFailed(
                    "The site's robots.txt does not allow this address.", code="robots"
                )
            delay_s = max(delay_s, rules.delay_s)
        async with self.manners.turn(url, width=settings.scrape_host_concurrency, delay_s=delay_s):
            if options.needs_browser:
                return await self.browser.fetch(url, options)
            conditions: dict[str, str] = {}
            if cached is not None and cached.etag:
                conditions["if-none-match"] = cached.etag
            if cached is not None and cached.last_modified:
                conditions["if-modified-since"] = cached.last_modified
            fetched = await self.fetcher.fetch(
                url, conditions=conditions, verify=not options.skip_tls_verification
            )
        if settings.scrape_robots and fetched.redirects:
            rules = await self.manners.rules(fetched.url)
            if not rules.allows(fetched.url):
                raise FetchFailed(
                    "The site's robots.txt does not allow the address that it redirects to.",
                    code="robots",
                )
        return None if fetched.status == 304 and cached is not None else fetched

    async def extract(
        self, fetched: Fetched, options: ScrapeOptions
    ) -> tuple[dict[str, Any], list[str]]:
        """What the page holds, made in a thread under a deadline."""
        loop = asyncio.get_running_loop()
        async with self._extracting:
            try:
                async with asyncio.timeout(EXTRACT_DEADLINE_S):
                    return await loop.run_in_executor(self._threads, extract, fetched, options)
            except TimeoutError:
                raise FetchFailed("The page took too long to read.", code="timeout") from None

    async def _keep(self, cached: Cached) -> None:
        # Not a change that relays must know of: written past the publisher.
        await self.services.state.database.write(lambda con: store_cached(con, cached))


def cache_key(owner: str, url: str, options: ScrapeOptions) -> str:
    """A page as one caller asked for it: all that changes the answer."""
    asked = options.model_dump(exclude={"skip_cache", "cache_ttl"})
    text = orjson.dumps([owner, url, asked], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()


def extract(fetched: Fetched, options: ScrapeOptions) -> tuple[dict[str, Any], list[str]]:
    """The answer's document and the page's links; a pure function."""
    form = options.extractor_format or "html"
    metadata: dict[str, Any] = {"contentType": fetched.content_type, "charset": fetched.charset}
    if fetched.redirects:
        metadata["redirects"] = fetched.redirects
    if fetched.content_type not in _HTML:
        if not fetched.content_type.startswith(_TEXTUAL):
            raise FetchFailed(
                f"The address holds {fetched.content_type[:80]}, which is not read here.",
                status=fetched.status, code="content_type",
            )  # fmt: skip
        content = fetched.text
        if form == "markdown" and fetched.content_type != "text/markdown":
            content = f"```\n{content}\n```" if content.strip() else ""
        return _document(fetched, "", content, form, metadata), []
    parser = LexborHTMLParser(flattened(fetched.text))
    metadata |= metadata_of(parser)
    base = base_of(parser, fetched.url)
    links = links_of(parser, base)
    body = tree_of(parser)
    root = body
    if body is not None and (options.only_main_content or options.fit_markdown):
        root = main_content(body)
    if root is not None and options.fit_markdown:
        prune(root)
    if form == "html":
        content = fetched.text
        if options.only_main_content and root is not None:
            content = root.html(base)
    elif root is None:
        content = ""
    elif form == "markdown":
        content = markdown_of(root, Style(base, images=not options.fit_markdown))
    else:
        content = plain_of(root)
    document = _document(fetched, str(metadata.get("title", "")), content, form, metadata)
    wanted = options.extraction_options or {}
    formats: dict[str, Any] = {}
    if wanted.get("links"):
        formats["links"] = links
    if root is not None:
        if wanted.get("tables"):
            formats["tables"] = tables_of(root)
        if wanted.get("code"):
            formats["code"] = code_of(root)
        if wanted.get("images"):
            formats["images"] = images_of(root, base)
    if formats:
        document["formats"] = formats
    return document, [link["url"] for link in links]


def _document(
    fetched: Fetched, title: str, content: str, form: str, metadata: dict[str, Any]
) -> dict[str, Any]:
    return {
        "url": fetched.url,
        "title": title,
        "content": content,
        "contentType": form,
        "metadata": metadata,
    }


def _from_cache(cached: Cached, started: float) -> Scraped:
    document = orjson.loads(cached.document)
    document["metadata"] |= {
        "fromCache": True,
        "cachedAt": iso(moment_of(cached.stored_at_ms)),
        "processingTime": round((time.monotonic() - started) * 1000),
    }
    return Scraped(cached.final_url, cached.status, document, [])


def scraper_of(services: Services) -> Scraper:
    """The process's scraper, made when it is first needed; `jobs.tasks` closes it."""
    scraper = services.rooms.get(Scraper)
    if not isinstance(scraper, Scraper):
        scraper = services.rooms[Scraper] = Scraper(services)
    return scraper

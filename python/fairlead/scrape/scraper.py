"""One scrape: from an address and options to the document of the answer. One `Scraper` for the process."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import orjson
import structlog

from fairlead.errors import FairleadError, InvalidRequest, RateLimited, StorageFull
from fairlead.moment import iso, moment_of, now_ms
from fairlead.scrape.address import host_of
from fairlead.scrape.browser.process import Browser
from fairlead.scrape.browser.reader import JobReader, Renderer
from fairlead.scrape.browser.sessions import Sessions
from fairlead.scrape.cache import CachedPage, find_cached, store_cached
from fairlead.scrape.change_tracking import record_fingerprint, tracking_key
from fairlead.scrape.fetch.fetcher import PAGE_DEADLINE_S, Fetcher, FetchFailed, FetchResult
from fairlead.scrape.fetch.politeness import Politeness
from fairlead.scrape.fetch.sent_headers import headers_of
from fairlead.scrape.model.forms import ModelFailed, ModelForms, no_model
from fairlead.scrape.model.schema import Schema
from fairlead.scrape.page.extract import ReadOptions, Source
from fairlead.scrape.page.patterns import AddressPatterns
from fairlead.scrape.page.pool import Pool, ReadFailed
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.store.operator_settings import OperatorSettings, read_operator_settings
from fairlead.store.owner_bytes import MIB, check_disk
from fairlead.store.services import Services

CACHE_TTL_S: Final = 3600

log = structlog.get_logger("fairlead.scrape")
SETTINGS_KEPT_S: Final = 1.0

CHOICE_FAILED: Final = {
    "timeout": "The patterns took too long to match: make them simpler.",
    "too_large": "The patterns took more memory to match than they may: make them simpler.",
}
"""Sentences about patterns, by the code of the failure."""

_LISTS: Final = ("links", "tables", "code", "images", "contacts")
_FORMS: Final = ("markdown", "html", "rawHtml", "text")


@dataclass(frozen=True, slots=True)
class ScrapeResult:
    """A page that was read. `document` is what the caller gets; `links` are where a crawl may go."""

    url: str
    status: int
    document: dict[str, Any]
    links: list[str]


@dataclass(frozen=True, slots=True)
class Reading:
    """The purpose of reading a page. A job that follows links `wants_links`, which a cached copy does not have;
    `reader` is the browser's context of a job.
    """

    wants_links: bool = False
    reader: JobReader | None = None
    delay_s: float = 0.0
    ignores_robots: bool = False

    def obeys_robots(self, settings: OperatorSettings) -> bool:
        """Whether `robots.txt` counts: a job ignores it only while the operator allows that."""
        is_ignored = self.ignores_robots and settings.scrape_may_ignore_robots
        return settings.scrape_robots and not is_ignored


SINGLE: Final = Reading()
"""A page that is read alone."""


class Scraper:
    """Fetches pages politely, parses them in separate processes, keeps a cache in the state database."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.egress = services.egress
        self.fetcher = Fetcher(self.egress)
        self.politeness = Politeness(self.fetcher)
        self.browser = Browser(self.egress)
        self.renderer = Renderer(self.browser)
        self.sessions = Sessions(self.browser)
        self.pool = Pool()
        self._settings: tuple[float, OperatorSettings] | None = None

    def schema(self, document: dict[str, Any], owner: str) -> Schema:
        """A caller's JSON Schema, unchecked."""
        return Schema(self.pool, document, owner)

    async def close(self) -> None:
        """Ends connections, processes and the browser."""
        await self.politeness.close()
        await self.fetcher.close()
        await self.sessions.close_all()
        await self.browser.close()
        await self.pool.close()

    async def settings(self, *, fresh: bool = False) -> OperatorSettings:
        """The operator's settings, at most `SETTINGS_KEPT_S` old; with `fresh`, those in force now."""
        now_s = time.monotonic()
        if fresh or self._settings is None or now_s - self._settings[0] > SETTINGS_KEPT_S:
            self._settings = (now_s, await self.services.state.read(read_operator_settings))
        return self._settings[1]

    async def scrape(
        self,
        url: str,
        options: ScrapeOptions,
        owner: str,
        reading: Reading = SINGLE,
    ) -> ScrapeResult:
        """Reads one page for a key. Raises `FetchFailed`
        for a page that cannot be fetched, is disallowed by robots.txt, or answers with an error, and `ModelFailed`
        where a model did not write what was requested.
        """
        scraped = await _in_time(self._read(url, options, owner, reading), options)
        if options.model_forms:
            await self.add_model_forms(scraped.document, scraped.status, options, owner)
        return scraped

    async def check_model_forms(self, options: ScrapeOptions, owner: str) -> None:
        """`InvalidRequest` where a model is needed and there is none, or its schema is refused."""
        if options.model_forms == 0:
            return
        await ModelForms(self.services.config, self.pool, owner).check(options)
        if options.model is None and (await self.settings(fresh=True)).scrape_model is None:
            raise no_model()

    async def add_model_forms(
        self, document: dict[str, Any], status: int, options: ScrapeOptions, owner: str
    ) -> None:
        """Adds the forms that a model writes to the document."""
        formats: dict[str, Any] = document.get("formats", {})
        page = formats.get("markdown", document["content"])
        if "markdown" not in options.formats:
            formats.pop("markdown", None)
        name = options.model or (await self.settings()).scrape_model
        try:
            forms, tokens = await ModelForms(self.services.config, self.pool, owner).write(
                page, options, name
            )
        except InvalidRequest:
            raise
        except FairleadError as error:
            raise ModelFailed(error, status) from None
        document["formats"] = formats | forms
        document["metadata"] |= {"model": name, "tokens": tokens}

    async def _read(
        self,
        url: str,
        options: ScrapeOptions,
        owner: str,
        reading: Reading,
    ) -> ScrapeResult:
        started = time.monotonic()
        options = await self._with_browser_use(options)
        key = cache_key(owner, url, options)
        cached: CachedPage | None = None
        # A session's page depends on what was done in it, and a copy does not show whether a page has changed.
        tracks = "changeTracking" in options.formats
        keeps = not (options.skip_cache or options.session_id or options.wants_print or tracks)
        if keeps:
            cached = await self.services.state.read(lambda con: find_cached(con, key))
            if cached is not None and _is_fresh(cached, options):
                return _from_cache(cached, started)
        fetched = await self.get(url, options, owner, cached, reading)
        if fetched is None and cached is not None:
            await self._keep(cached.renewed(now_ms() + 1000 * (options.cache_ttl or CACHE_TTL_S)))
            return _from_cache(cached, started)
        if fetched is None:
            raise FetchFailed("The page answered 304 to a request without conditions.", status=304)
        if fetched.status >= 400:
            raise _status_failure(fetched)
        document, links = await self.extract(fetched, options, tracks=tracks, owner=owner)
        if document.pop("isShell", False):
            rendered = await self._rendered(url, options, owner, reading)
            if rendered is not None:
                fetched, document, links = rendered
        at_ms = now_ms()
        if tracks:
            await self._track(document, tracking_key(owner, url, options), at_ms)
        document["metadata"] |= {
            "timestamp": iso(moment_of(at_ms)),
            "status": fetched.status,
            "loadTime": round(fetched.elapsed_ms),
            "processingTime": round((time.monotonic() - started) * 1000),
            "fromCache": False,
            "cacheTtl": options.cache_ttl or CACHE_TTL_S,
        }
        scraped = ScrapeResult(fetched.url, fetched.status, document, links)
        if keeps and not reading.wants_links:
            await self._keep(
                CachedPage(
                    key=key,
                    owner=owner,
                    url=url,
                    final_url=fetched.url,
                    status=fetched.status,
                    etag=fetched.headers.get("etag"),
                    last_modified=fetched.headers.get("last-modified"),
                    stored_at_ms=at_ms,
                    expires_at_ms=at_ms + 1000 * (options.cache_ttl or CACHE_TTL_S),
                    document=orjson.dumps(document).decode(),
                )
            )
        return scraped

    async def _with_browser_use(self, options: ScrapeOptions) -> ScrapeOptions:
        """The options with the operator's `scrapeBrowser`, where the caller does not say whether a browser is used."""
        if options.use_browser is not None:
            return options
        is_auto = (await self.settings()).scrape_browser == "auto"
        return options.model_copy(update={"use_browser": "auto" if is_auto else False})

    async def _rendered(
        self, url: str, options: ScrapeOptions, owner: str, reading: Reading
    ) -> tuple[FetchResult, dict[str, Any], list[str]] | None:
        """The page by the browser, with its document and links; None where there is no browser, or it does not get the
        page.
        """
        by_browser = options.model_copy(update={"use_browser": True})
        tracks = "changeTracking" in options.formats
        try:
            fetched = await self.get(url, by_browser, owner, reading=reading)
            if fetched is None or fetched.status >= 400:
                return None
            document, links = await self.extract(fetched, by_browser, tracks=tracks, owner=owner)
        except (FetchFailed, InvalidRequest) as failure:
            # The page that came over HTTP is an answer too.
            reason = failure.code if isinstance(failure, FetchFailed) else failure.kind
            log.info("shell not rendered", host=host_of(url), reason=reason)
            return None
        document["metadata"]["renderMode"] = "browser"
        return fetched, document, links

    @asynccontextmanager
    async def admit(self, url: str, reading: Reading = SINGLE) -> AsyncIterator[OperatorSettings]:
        """Waits for the host's slot; a request to the address may run inside. `FetchFailed` where robots.txt
        forbids it.
        """
        settings = await self.settings()
        delay_s = max(settings.scrape_host_delay_ms / 1000, reading.delay_s)
        if reading.obeys_robots(settings):
            rules = await self.politeness.rules(url)
            if not rules.allows(url):
                raise rules.refusal("The site's robots.txt does not allow this address.")
            delay_s = max(delay_s, rules.delay_s)
        async with self.politeness.slot(
            url, width=settings.scrape_host_concurrency, delay_s=delay_s
        ):
            yield settings

    async def get(
        self,
        url: str,
        options: ScrapeOptions,
        owner: str,
        cached: CachedPage | None = None,
        reading: Reading = SINGLE,
    ) -> FetchResult | None:
        """The page as it came, over HTTP or by the browser; None where the cached copy is still valid (304)."""
        async with self.admit(url, reading) as settings:
            if options.session_id is not None:
                session = self.sessions.find(options.session_id, owner)
                fetched = await self.sessions.read(session, url, options)
            elif options.needs_browser:
                fetched = await (reading.reader or self.renderer).fetch(url, options)
            else:
                conditions: dict[str, str] = {}
                if cached is not None and cached.etag:
                    conditions["if-none-match"] = cached.etag
                if cached is not None and cached.last_modified:
                    conditions["if-modified-since"] = cached.last_modified
                fetched = await self.fetcher.fetch(
                    url,
                    sent=headers_of(options, conditions),
                    verify=not options.skip_tls_verification,
                    deadline_s=options.timeout_s or PAGE_DEADLINE_S,
                )
        await self.check_redirect(fetched, settings, reading)
        return None if fetched.status == 304 and cached is not None else fetched

    async def check_redirect(
        self, fetched: FetchResult, settings: OperatorSettings, reading: Reading = SINGLE
    ) -> None:
        """`FetchFailed` where robots.txt forbids the address that a page was redirected to."""
        if not reading.obeys_robots(settings) or not fetched.redirects:
            return
        rules = await self.politeness.rules(fetched.url)
        if not rules.allows(fetched.url):
            raise rules.refusal(
                "The site's robots.txt does not allow the address that it redirects to."
            )

    async def extract(
        self, fetched: FetchResult, options: ScrapeOptions, *, tracks: bool = False, owner: str = ""
    ) -> tuple[dict[str, Any], list[str]]:
        """The page's document and its links; the document has a `fingerprint` where changes are tracked."""
        read_options = ReadOptions(
            form=options.extractor_format or "html",
            only_main_content=options.only_main_content and not options.include_tags,
            fit_markdown=options.fit_markdown,
            lists=[name for name in _LISTS if options.wants(name)],
            forms=_forms_of(options),
            fingerprint=tracks,
            include_tags=options.include_tags,
            exclude_tags=options.exclude_tags,
            remove_base64_images=options.remove_base64_images,
            looks_for_shell=options.use_browser == "auto" and not options.needs_browser,
        )
        source = Source(fetched.url, fetched.body, fetched.content_type, fetched.redirects)
        try:
            document, links = await self.pool.read(source, read_options, owner)
        except ReadFailed as failure:
            raise FetchFailed(failure.reason, status=fetched.status, code=failure.code) from None
        if fetched.artifacts:
            document["formats"] = document.get("formats", {}) | fetched.artifacts
        return document, links

    async def select(
        self, url: str, html: str, plan: dict[str, Any] | None, owner: str = ""
    ) -> dict[str, Any]:
        """Applies selectors to the given HTML; returns the result of `page.extract.select`."""
        try:
            return await self.pool.select(url, html, plan, owner)
        except ReadFailed as failure:
            raise FetchFailed(failure.reason, code=failure.code) from None

    async def read_sitemap(
        self, url: str, body: bytes, addresses_max: int, owner: str
    ) -> tuple[bool, list[str]]:
        """Whether the given sitemap is an index, and the addresses that it names. `FetchFailed`."""
        try:
            return await self.pool.read_sitemap(url, body, addresses_max, owner)
        except ReadFailed as failure:
            raise FetchFailed(failure.reason, code=failure.code) from None

    async def choose(
        self, patterns: AddressPatterns, addresses: Sequence[str], owner: str
    ) -> list[str]:
        """The addresses that a caller's patterns take, in order. `InvalidRequest` for a pattern that is not taken,
        `FetchFailed` where choosing takes too long.
        """
        if not addresses or patterns.takes_all:
            return list(addresses)
        try:
            return await self.pool.choose(patterns, addresses, owner)
        except ReadFailed as failure:
            reason = CHOICE_FAILED.get(failure.code, failure.reason)
            raise FetchFailed(reason, code=failure.code) from None

    async def check_patterns(self, patterns: AddressPatterns, owner: str) -> None:
        """`InvalidRequest` for a pattern that is unreadable or too large, `RateLimited` where too many requests
        wait.
        """
        if patterns.takes_all:
            return
        try:
            await self.pool.choose(patterns, [], owner)
        except ReadFailed as failure:
            if failure.code == "overloaded":
                raise RateLimited("Too many requests wait to be read.", retry_after_s=5) from None
            raise InvalidRequest(CHOICE_FAILED.get(failure.code, failure.reason)) from None

    async def read_document(
        self, source: Source, *, is_main: bool, owner: str = ""
    ) -> dict[str, Any]:
        """The given document, of any kind, as `document.read.read_document` returns it."""
        read_options = ReadOptions("markdown", only_main_content=is_main, is_document=True)
        try:
            document, _ = await self.pool.read(source, read_options, owner)
        except ReadFailed as failure:
            raise FetchFailed(failure.reason, code=failure.code) from None
        return document

    async def document_of(
        self, url: str, html: str, options: ScrapeOptions, owner: str = ""
    ) -> dict[str, Any]:
        """The given HTML as the document of a scrape; nothing is fetched."""
        started = time.monotonic()
        fetched = FetchResult(
            url, 200, {}, html.encode("utf-8", "replace"), "text/html; charset=utf-8", 0.0
        )
        document, _ = await self.extract(fetched, options, owner=owner)
        document["metadata"] |= {
            "timestamp": iso(moment_of(now_ms())),
            "processingTime": round((time.monotonic() - started) * 1000),
            "fromCache": False,
        }
        if options.model_forms:
            await self.add_model_forms(document, fetched.status, options, owner)
        return document

    async def _track(self, document: dict[str, Any], key: str, at_ms: int) -> None:
        fingerprint = document.pop("fingerprint")
        change = await self.services.state.database.write(
            lambda con: record_fingerprint(con, key, fingerprint, at_ms)
        )
        document["formats"] = document.get("formats", {}) | {"changeTracking": change}

    async def _keep(self, cached: CachedPage) -> None:
        most_bytes = (await self.settings()).scrape_cache_mb * MIB
        try:
            await asyncio.to_thread(check_disk, self.services.data_dir, len(cached.document))
        except StorageFull:
            # A copy is a convenience: without it the page is read again.
            return
        # Relays need not know of it, so it is written past the publisher.
        await self.services.state.database.write(lambda con: store_cached(con, cached, most_bytes))


def cache_key(owner: str, url: str, options: ScrapeOptions) -> str:
    """The hash of the key, the address and every option that changes the answer."""
    fields = options.model_dump(exclude={"skip_cache", "cache_ttl", "max_age", "timeout"})
    text = orjson.dumps([owner, url, fields], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()


async def _in_time(reading: Awaitable[ScrapeResult], options: ScrapeOptions) -> ScrapeResult:
    """The page, within the time that the caller gives it."""
    if options.timeout is None:
        return await reading
    try:
        async with asyncio.timeout(options.timeout_s):
            return await reading
    except TimeoutError:
        raise FetchFailed(
            f"The page was not done within {options.timeout} ms.", code="timeout"
        ) from None


def _is_fresh(cached: CachedPage, options: ScrapeOptions) -> bool:
    at_ms = now_ms()
    is_young = options.max_age is None or cached.stored_at_ms > at_ms - options.max_age
    return is_young and cached.expires_at_ms > at_ms


def _forms_of(options: ScrapeOptions) -> list[str]:
    """The forms in which the page is read. A model is shown Markdown, also where the caller is not."""
    wanted = set(options.formats)
    if options.model_forms and options.extractor_format != "markdown":
        wanted.add("markdown")
    return [form for form in _FORMS if form in wanted]


def _status_failure(fetched: FetchResult) -> FetchFailed:
    """An error answer as a failure, with the seconds of its Retry-After."""
    retry_after = fetched.headers.get("retry-after", "")
    is_number = retry_after.isascii() and retry_after.isdigit()
    return FetchFailed(
        f"The page answered {fetched.status}.",
        status=fetched.status,
        code="status",
        retry_after_s=float(retry_after) if is_number else None,
    )


def _from_cache(cached: CachedPage, started: float) -> ScrapeResult:
    document = orjson.loads(cached.document)
    document["metadata"] |= {
        "fromCache": True,
        "cachedAt": iso(moment_of(cached.stored_at_ms)),
        "processingTime": round((time.monotonic() - started) * 1000),
    }
    return ScrapeResult(cached.final_url, cached.status, document, [])


def scraper_of(services: Services) -> Scraper:
    """The process's scraper, made when it is first needed; `jobs/runner.py` closes it."""
    return services.singleton(Scraper, lambda: Scraper(services))

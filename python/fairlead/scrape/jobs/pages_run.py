"""The run of one job that reads pages: crawl, batch, scrape, llms.txt, extraction."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import orjson
import structlog

from fairlead.errors import (
    FairleadError,
    InvalidRequest,
    OwnerStorageFull,
    RateLimited,
    StorageFull,
)
from fairlead.moment import now_ms
from fairlead.scrape.browser.reader import JobReader
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.fetch.sent_headers import origin_of
from fairlead.scrape.jobs.completion import conclude, finish
from fairlead.scrape.jobs.extraction import Extraction
from fairlead.scrape.jobs.frontier import Frontier, patterns_of
from fairlead.scrape.jobs.listener import notify_page
from fairlead.scrape.jobs.secrets import whole_request
from fairlead.scrape.jobs.table import (
    EntryOutcome,
    FrontierEntry,
    Job,
    Page,
    begin_job,
    extend_frontier,
    finish_entry,
    frontier_of,
    list_read_urls,
)
from fairlead.scrape.map.discovery import Discovery
from fairlead.scrape.map.sitemap import sitemap_urls
from fairlead.scrape.page.patterns import AddressPatterns
from fairlead.scrape.requests.jobs import (
    DEPTH_MAX,
    WIDTH_DEFAULT,
    BatchRequest,
    CrawlRequest,
    ExtractJobRequest,
    LlmsTxtRequest,
)
from fairlead.scrape.requests.page import ScrapeOptions, ScrapeRequest
from fairlead.scrape.requests.site import MapRequest
from fairlead.scrape.scraper import Reading, Scraper, ScrapeResult
from fairlead.store.file import Connection
from fairlead.store.key_state import why_out_of_force
from fairlead.store.owner_bytes import DATABASE, claim_bytes
from fairlead.store.services import Services

PAGE_DEADLINE_S: Final = 300.0
CLAIM_BYTES: Final = 4 * 1024 * 1024
RETRY_PAUSE_S: Final = 0.5
RETRY_PAUSE_MAX_S: Final = 30.0

log = structlog.get_logger("fairlead.scrape")


class _PatternsFailed(Exception):
    """The job's patterns cannot be matched; the text is a sentence with the reason."""


class PagesRun:
    """One job from its last row to its final status. Each page's row, the addresses found on it and its event are
    one transaction, so a crash loses at most the pages in progress.
    """

    def __init__(
        self, services: Services, scraper: Scraper, job: Job, announce: Callable[[], None]
    ) -> None:
        self._services = services
        self._scraper = scraper
        self._job = job
        self._announce_change = announce
        request = whole_request(services.state.sealer, job)
        self._crawl: CrawlRequest | None = None
        self._extraction: Extraction | None = None
        self._retries, self._page_deadline_s, self._fails_fast = 1, PAGE_DEADLINE_S, False
        if job.kind == "batch":
            batch = BatchRequest.model_validate(request)
            self._options, self._width = batch.options, batch.concurrency
            self._retries, self._fails_fast = batch.max_retries, batch.fail_fast
            self._page_deadline_s = (batch.timeout or PAGE_DEADLINE_S * 1000) / 1000
        elif job.kind == "scrape":
            self._options, self._width = ScrapeRequest.model_validate(request).options, 1
        elif job.kind == "extract":
            extract = ExtractJobRequest.model_validate(request)
            self._extraction = Extraction(services.config, scraper, job.owner, extract)
            self._options, self._width = extract.page_options, WIDTH_DEFAULT
            self._crawl = extract.as_crawl()
        elif job.kind == "crawl":
            self._crawl = CrawlRequest.model_validate(request)
        else:
            self._crawl = LlmsTxtRequest.model_validate(request).as_crawl()
        if self._crawl is not None:
            self._options, self._width = self._crawl.page_options, self._crawl.width
            self._retries = self._crawl.max_retries
            # The cache has no links of pages, and a crawl reads the site as it is now.
            self._options = self._options.model_copy(update={"skip_cache": True})
        self._patterns = AddressPatterns() if self._crawl is None else patterns_of(self._crawl)
        self._reader = JobReader(scraper.renderer, self._options)
        self._reading = Reading(
            wants_links=self._crawl is not None,
            reader=self._reader,
            delay_s=(self._crawl.delay or 0) if self._crawl else 0,
            ignores_robots=self._crawl is not None and self._crawl.ignore_robots_txt,
        )
        self._frontier = Frontier(self._crawl, job.url)
        self._pages = 0
        # Bytes of the owner's storage that were claimed and are not used yet.
        self._claimed = 0
        self._has_ended = False

    async def run(self) -> None:
        try:
            await self._run()
        except _PatternsFailed as failure:
            reason = str(failure)
            await self._write(lambda con: conclude(con, self._job, "failed", reason))
            self._announce_change()

    async def _run(self) -> None:
        await self._take_up()
        under_way: dict[asyncio.Task[None], int] = {}
        try:
            while not self._has_ended and self._has_time:
                while (
                    len(under_way) < self._width
                    and self._pages + len(under_way) < self._job.pages_max
                    # A page is as deep as the shortest way to it: no page is read while one that is less
                    # deep may still lead to what this one leads to.
                    and self._frontier.depth <= min(under_way.values(), default=DEPTH_MAX)
                    and (place := self._frontier.pop()) is not None
                ):
                    under_way[asyncio.create_task(self._read(place))] = place.depth
                if not under_way:
                    break
                done, _ = await asyncio.wait(
                    under_way, timeout=self._remaining_s, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    del under_way[task]
                    task.result()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
            await self._reader.close()
        if not self._has_ended:
            await self._write(self._finish)
            self._announce_change()

    def _finish(self, con: Connection) -> None:
        if self._has_time:
            finish(con, self._job)
        else:
            reason = "timeoutMs was over: pages that had not been read by then are missing."
            conclude(con, self._job, "completed", reason)

    @property
    def _remaining_s(self) -> float | None:
        """The seconds that the crawl has left, if its caller has bounded them."""
        if self._crawl is None or self._crawl.timeout_ms is None:
            return None
        return max(0.0, (self._job.created_at_ms + self._crawl.timeout_ms - now_ms()) / 1000)

    @property
    def _has_time(self) -> bool:
        return self._remaining_s is None or self._remaining_s > 0

    async def _take_up(self) -> None:
        job_id = self._job.id
        await self._write(lambda con: begin_job(con, job_id))
        frontier, read = await self._services.state.read(
            lambda con: (frontier_of(con, job_id), list_read_urls(con, job_id))
        )
        for place, pending in frontier:
            self._frontier.add_stored(place, pending=pending)
        for number, place_number, url in read:
            self._pages = max(self._pages, number)
            self._frontier.mark_known(url)
            if place_number == 0:
                self._frontier.add_start(url)
        if self._crawl is None or read:
            return
        links: list[str] = []
        if self._crawl.reads_sitemaps:
            links = await sitemap_urls(
                self._scraper, self._job.url, self._job.pages_max, self._job.owner
            )
        if self._crawl.use_map_discovery:
            links += await self._mapped(self._crawl)
        if links:
            # Stored before any of them is read: only a stored address can be finished.
            found = self._frontier.add(await self._chosen(links, 1), 1)
            await self._write(partial(extend_frontier, job_id=job_id, found=found))

    async def _mapped(self, crawl: CrawlRequest) -> list[str]:
        """The addresses that a map of the site finds."""
        request = MapRequest.model_validate(
            {"url": self._job.url, "includeSubdomains": crawl.allow_subdomains}
        )
        discovery = Discovery(self._scraper, self._job.url, self._job.owner, request)
        try:
            found: list[str] = (await discovery.run(AddressPatterns()))["links"]
        except (InvalidRequest, RateLimited) as fault:
            # The crawl reads the start page itself, and reports its failure.
            log.info("site not mapped", job=self._job.id, error=fault.kind)
            return []
        return found

    async def _read(self, place: FrontierEntry) -> None:
        if await self._services.state.read(lambda con: why_out_of_force(con, self._job.owner)):
            # The runner ends the job, and says why.
            self._has_ended = True
            return
        scraped: ScrapeResult | None = None
        failure: FetchFailed | None = None
        is_new, chosen = True, list[str]()
        try:
            async with asyncio.timeout(self._page_deadline_s):
                scraped = await self._scrape(place.url)
                is_new = self._is_new(place, scraped)
                if self._crawl is not None and not self._crawl.sitemaps_only:
                    chosen = await self._chosen(scraped.links, place.depth + 1, scraped.url)
                if self._extraction is not None and is_new:
                    scraped = await self._extraction.extract(scraped)
        except FetchFailed as fault:
            failure = fault
        except TimeoutError:
            failure = FetchFailed("The page was not done in time.", code="timeout")
        except InvalidRequest as fault:
            # The request needs something that is missing here, such as a browser.
            failure = FetchFailed(fault.message, code="invalid_request")
        except _PatternsFailed:
            raise
        except FairleadError:
            # The database does not answer, which is no fault of the page.
            raise
        except Exception as error:  # noqa: BLE001 - one page's defect is not the job's
            log.error("page failed", job=self._job.id, error=type(error).__name__)
            failure = FetchFailed(
                "This is a defect of fairlead; its log has more.", code="internal"
            )
        # From here to the end of the write nothing else of this job runs that takes a number.
        page: Page | None = None
        if scraped is None or failure is not None:
            page = self._page(place, None, failure)
        elif is_new:
            page = self._page(place, scraped, None)
        found = self._frontier.add(chosen, place.depth + 1)
        await self._store(place, page, scraped.document["title"] if scraped else None, found)

    async def _chosen(self, links: list[str], depth: int, page: str | None = None) -> list[str]:
        """The links that the job's patterns take. `_PatternsFailed` where they take too long: every page would."""
        candidates = self._frontier.candidates(links, depth, page)
        while True:
            try:
                return await self._scraper.choose(self._patterns, candidates, self._job.owner)
            except InvalidRequest as fault:
                raise _PatternsFailed(fault.message) from None
            except FetchFailed as failure:
                if failure.code != "overloaded":
                    raise _PatternsFailed(failure.reason) from None
            await asyncio.sleep(RETRY_PAUSE_S * random.uniform(0.8, 1.2))  # noqa: S311 - chance, no secret

    def _is_new(self, place: FrontierEntry, scraped: ScrapeResult) -> bool:
        """Whether the page is new to the job: after a redirect its address may be known already."""
        if self._crawl is None:
            return True
        if place.place == 0:
            self._frontier.add_start(scraped.url)
        is_own = self._frontier.is_one(scraped.url, place.url)
        return is_own or self._frontier.mark_known(scraped.url)

    def _options_of(self, url: str) -> ScrapeOptions:
        """How a page is read. A crawl's headers and cookies are for the origin where it starts."""
        if self._crawl is None or origin_of(url) == origin_of(self._job.url):
            return self._options
        return self._options.without_secrets()

    async def _scrape(self, url: str) -> ScrapeResult:
        """The page; a temporary failure is retried as often as the request allows."""
        tries = 0
        while True:
            try:
                return await self._scraper.scrape(
                    url,
                    self._options_of(url),
                    self._job.owner,
                    self._reading,
                )
            except FetchFailed as failure:
                if tries >= self._retries or not failure.is_temporary:
                    raise
                wait_s = failure.retry_after_s or RETRY_PAUSE_S * 2**tries
                tries += 1
            # With jitter: perhaps this job's own requests made the host busy.
            await asyncio.sleep(min(wait_s, RETRY_PAUSE_MAX_S) * random.uniform(0.8, 1.2))  # noqa: S311 - chance, no secret

    def _page(
        self, place: FrontierEntry, scraped: ScrapeResult | None, failure: FetchFailed | None
    ) -> Page:
        self._pages += 1
        if scraped is not None:
            return Page(
                self._pages,
                place.place,
                scraped.url,
                "completed",
                scraped.status,
                None,
                None,
                orjson.dumps(scraped.document).decode(),
                now_ms(),
            )
        reason = failure or FetchFailed("The page was not read.")
        return Page(
            self._pages,
            place.place,
            place.url,
            "failed",
            reason.status,
            reason.reason,
            reason.code,
            None,
            now_ms(),
        )

    async def _store(
        self, place: FrontierEntry, page: Page | None, title: str | None, found: list[FrontierEntry]
    ) -> None:
        job = self._job
        size = sum(len(link.url) for link in found)
        if page is not None and page.document is not None:
            size += len(page.document.encode())

        def store_page(con: Connection) -> tuple[EntryOutcome, int]:
            outcome = finish_entry(con, job.id, place.place, page, found)
            claimed = self._claimed
            if outcome == "stored":
                # Claimed in larger pieces, because each claim is a separate write.
                if claimed < size:
                    claimed = max(size, CLAIM_BYTES)
                    try:
                        claim_bytes(con, DATABASE, job.owner, claimed)
                    except (OwnerStorageFull, StorageFull):
                        claim_bytes(con, DATABASE, job.owner, claimed := size)
                claimed -= size
                if page is not None:
                    notify_page(con, job, page, title)
            return outcome, claimed

        outcome, self._claimed = await self._write(store_page)
        if outcome == "ended":
            self._has_ended = True
        elif self._fails_fast and page is not None and page.error is not None:
            reason = f"A page failed, and failFast is set: {page.error}"
            await self._write(lambda con: conclude(con, job, "failed", reason))
            self._has_ended = True
        self._announce_change()

    async def _write(self, write: Any) -> Any:
        # Relays need not know of pages, so these are written past the publisher.
        return await self._services.state.record(write, deadline_s=30.0)

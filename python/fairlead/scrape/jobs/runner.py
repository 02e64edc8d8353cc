"""What works on jobs: takes up every one that has not ended, reads its pages, stores each as it ends.

One runner for the process. A job is worked on by one task; each page's row, the addresses found on
it and its event are one transaction, so a crash loses at most the pages that were under way.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from functools import partial
from typing import Any, Final

import orjson
import structlog

from fairlead.errors import FairleadError, InvalidRequest, OwnerStorageFull, StorageFull
from fairlead.moment import now_ms
from fairlead.scrape.agent.run import AgentRun
from fairlead.scrape.browser.reader import JobReader
from fairlead.scrape.cache import sweep_cache
from fairlead.scrape.css.table import sweep_css_schemas
from fairlead.scrape.fetch import FetchFailed
from fairlead.scrape.jobs.ending import conclude, finish
from fairlead.scrape.jobs.extraction import Extraction
from fairlead.scrape.jobs.frontier import Frontier
from fairlead.scrape.jobs.hook import sweep_hooks, tell_page
from fairlead.scrape.jobs.table import (
    Job,
    Kind,
    Page,
    Place,
    Settled,
    active_jobs,
    begin_job,
    count_pages,
    extend_frontier,
    forget_strays,
    frontier_of,
    read_urls,
    settle_place,
    sweep_jobs,
    whole_job,
)
from fairlead.scrape.map_cache import sweep_maps
from fairlead.scrape.options import (
    DEPTH_MAX,
    WIDTH_DEFAULT,
    BatchAsk,
    CrawlAsk,
    ExtractTaskAsk,
    LlmsTxtAsk,
    ScrapeAsk,
)
from fairlead.scrape.scraper import Scraped, Scraper, scraper_of
from fairlead.scrape.seen import sweep_seen
from fairlead.scrape.sitemap import sitemap_urls
from fairlead.store.file import Connection
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.owner_bytes import DATABASE, MIB, claim_bytes, count_bytes
from fairlead.store.runner import Runner
from fairlead.store.services import Services

JOBS_AT_ONCE: Final = 16
# How many of a kind, and of these of one key: an agent has a tab of the browser, of which there are few.
OF_KIND_AT_ONCE: Final[dict[Kind, tuple[int, int]]] = {"agent": (3, 2)}
JOB_DEADLINE_S: Final = 6 * 3600.0
PAGE_DEADLINE_S: Final = 300.0
CLAIM_BYTES: Final = 4 * 1024 * 1024
RETRY_S: Final = 2.0
AGAIN_S: Final = 0.5
AGAIN_MAX_S: Final = 30.0

log = structlog.get_logger("fairlead.scrape")


class JobRunner(Runner[Job]):
    """Routes call `wake`, `stop` and `news`."""

    kind = "job"
    at_once = JOBS_AT_ONCE

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._scraper: Scraper = scraper_of(services)
        self._kinds: Counter[Kind] = Counter()
        self._of_owners: Counter[tuple[Kind, str]] = Counter()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            await self._scraper.close()
            self.services.discard(Scraper)

    async def active(self) -> list[Job]:
        return await self.services.state.read(active_jobs)

    def owner_of(self, item: Job) -> str:
        return item.owner

    def key_of(self, item: Job) -> str | None:
        return item.owner

    async def steps_of(self, items: list[Job]) -> dict[str, int]:
        ids = [item.id for item in items]
        return await self.services.state.read(lambda con: count_pages(con, ids))

    async def revoke(self, item: Job, reason: str) -> None:
        await self._end(item, "failed", reason)
        self.stop(item.id)

    async def sweep(self) -> None:
        await self.services.state.database.write(_sweep)

    def stop(self, item_id: str) -> None:
        super().stop(item_id)
        self._tell()

    async def news(self, within_s: float) -> None:
        """Waits until some job has changed, or for so long."""
        changed = self._changed
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await changed.wait()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def has_room(self, item: Job) -> bool:
        most, own = OF_KIND_AT_ONCE.get(item.kind, (JOBS_AT_ONCE, JOBS_AT_ONCE))
        return self._kinds[item.kind] < most and self._of_owners[item.kind, item.owner] < own

    def began(self, item: Job) -> None:
        self._kinds[item.kind] += 1
        self._of_owners[item.kind, item.owner] += 1

    def ended(self, item: Job) -> None:
        self._kinds[item.kind] -= 1
        self._of_owners[item.kind, item.owner] -= 1
        # Keys come and go: what is at nothing is not kept.
        self._of_owners += Counter()
        self._tell()

    async def work(self, job: Job) -> None:
        try:
            job = await self.services.state.read(lambda con: whole_job(con, job))
            run = AgentRun if job.kind == "agent" else _Run
            async with asyncio.timeout(JOB_DEADLINE_S):
                await run(self.services, self._scraper, job, self._tell).run()
        except TimeoutError:
            await self._end(
                job, "failed", f"The job was not done within {JOB_DEADLINE_S / 3600:g} h."
            )
        except (OwnerStorageFull, StorageFull) as error:
            await self._end(job, "failed", error.message)
        except FairleadError as error:
            # The database does not answer: the job stands as it is, and is taken up again.
            log.error("job interrupted", job=job.id, error=error.kind)
            await asyncio.sleep(RETRY_S)
        except Exception as error:  # noqa: BLE001 - a defect ends this job, not the others
            log.error("job failed", job=job.id, error=type(error).__name__)
            await self._end(job, "failed", "This is a defect of fairlead; its log has more.")

    async def give_up(self, job: Job, reason: str) -> None:
        await self._end(job, "failed", reason)
        self._tell()

    async def _end(self, job: Job, status: str, error: str | None) -> None:
        await self.services.state.record(lambda con: conclude(con, job, status, error))


class _Run:
    """One job from where its rows end to its last status."""

    def __init__(self, services: Services, scraper: Scraper, job: Job, tell: Any) -> None:
        self._services = services
        self._scraper = scraper
        self._job = job
        self._tell = tell
        asked = orjson.loads(job.options)
        self._crawl: CrawlAsk | None = None
        self._extraction: Extraction | None = None
        self._retries, self._page_deadline_s, self._fails_fast = 1, PAGE_DEADLINE_S, False
        if job.kind == "batch":
            batch = BatchAsk.model_validate(asked)
            self._options, self._width = batch.options, batch.concurrency
            self._retries, self._fails_fast = batch.max_retries, batch.fail_fast
            self._page_deadline_s = (batch.timeout or PAGE_DEADLINE_S * 1000) / 1000
        elif job.kind == "scrape":
            self._options, self._width = ScrapeAsk.model_validate(asked).options, 1
        elif job.kind == "extract":
            extract = ExtractTaskAsk.model_validate(asked)
            self._extraction = Extraction(services.config, scraper, job.owner, extract)
            self._options, self._width = extract.page_options, WIDTH_DEFAULT
            self._crawl = extract.as_crawl()
        elif job.kind == "crawl":
            self._crawl = CrawlAsk.model_validate(asked)
        else:
            self._crawl = LlmsTxtAsk.model_validate(asked).as_crawl()
        if self._crawl is not None:
            self._options, self._width = self._crawl.page_options, self._crawl.width
            self._retries = self._crawl.max_retries
            # A page's links are not in the cache, and a crawl wants the site as it is.
            self._options = self._options.model_copy(update={"skip_cache": True})
        self._reader = JobReader(scraper.rendering, self._options)
        self._frontier = Frontier(self._crawl, job.url)
        self._pages = 0
        # Bytes that were claimed and are not used yet.
        self._claimed = 0
        self._has_ended = False

    async def run(self) -> None:
        await self._take_up()
        under_way: dict[asyncio.Task[None], int] = {}
        try:
            while not self._has_ended:
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
                done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    del under_way[task]
                    task.result()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
            await self._reader.close()
        if not self._has_ended:
            await self._write(lambda con: finish(con, self._job))
            self._tell()

    async def _take_up(self) -> None:
        job_id = self._job.id
        await self._write(lambda con: begin_job(con, job_id))
        frontier, read = await self._services.state.read(
            lambda con: (frontier_of(con, job_id), read_urls(con, job_id))
        )
        for place, pending in frontier:
            self._frontier.wait(place, pending=pending)
        for number, place_number, url in read:
            self._pages = max(self._pages, number)
            self._frontier.know(url)
            if place_number == 0:
                self._frontier.widen(url)
        if self._crawl is not None and self._crawl.reads_sitemaps and not read:
            links = await sitemap_urls(
                self._scraper, self._job.url, self._job.pages_max, self._job.owner
            )
            # Before any of them is read: an address that is not stored cannot be settled.
            found = self._frontier.add(links, 1)
            await self._write(partial(extend_frontier, job_id=job_id, found=found))

    async def _read(self, place: Place) -> None:
        scraped: Scraped | None = None
        failure: FetchFailed | None = None
        is_new = True
        try:
            async with asyncio.timeout(self._page_deadline_s):
                scraped = await self._scrape(place.url)
                is_new = self._is_new(place, scraped)
                if self._extraction is not None and is_new:
                    scraped = await self._extraction.of(scraped)
        except FetchFailed as fault:
            failure = fault
        except TimeoutError:
            failure = FetchFailed("The page was not done in time.", code="timeout")
        except InvalidRequest as fault:
            # What was asked for cannot be done here, such as a browser where there is none.
            failure = FetchFailed(fault.message, code="invalid_request")
        except FairleadError:
            # The database does not answer: this is no fault of the page.
            raise
        except Exception as error:  # noqa: BLE001 - one page's defect is not the job's
            log.error("page failed", job=self._job.id, error=type(error).__name__)
            failure = FetchFailed(
                "This is a defect of fairlead; its log has more.", code="internal"
            )
        # From here to the end of the write nothing else of this job runs that takes a number.
        page: Page | None = None
        found: list[Place] = []
        if scraped is None or failure is not None:
            page = self._page(place, None, failure)
        elif is_new:
            page = self._page(place, scraped, None)
        if scraped is not None and self._crawl is not None and not self._crawl.sitemaps_only:
            found = self._frontier.add(scraped.links, place.depth + 1)
        await self._store(place, page, scraped.document["title"] if scraped else None, found)

    def _is_new(self, place: Place, scraped: Scraped) -> bool:
        """Whether the page is not one that the job knows under another address already."""
        if self._crawl is None:
            return True
        if place.place == 0:
            self._frontier.widen(scraped.url)
        return scraped.url == place.url or self._frontier.know(scraped.url)

    async def _scrape(self, url: str) -> Scraped:
        """The page, asked for again as often as was allowed where that may help."""
        tries = 0
        while True:
            try:
                return await self._scraper.scrape(
                    url,
                    self._options,
                    self._job.owner,
                    wants_links=self._crawl is not None,
                    reader=self._reader,
                )
            except FetchFailed as failure:
                if tries >= self._retries or not failure.may_pass:
                    raise
                wait_s = failure.retry_after_s or AGAIN_S * 2**tries
                tries += 1
            # Not all at once: what made a host busy was perhaps this job.
            await asyncio.sleep(min(wait_s, AGAIN_MAX_S) * random.uniform(0.8, 1.2))  # noqa: S311 - chance, no secret

    def _page(self, place: Place, scraped: Scraped | None, failure: FetchFailed | None) -> Page:
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
        self, place: Place, page: Page | None, title: str | None, found: list[Place]
    ) -> None:
        job = self._job
        size = sum(len(link.url) for link in found)
        if page is not None and page.document is not None:
            size += len(page.document.encode())

        def work(con: Connection) -> tuple[Settled, int]:
            settled = settle_place(con, job.id, place.place, page, found)
            claimed = self._claimed
            if settled == "stored":
                # Not for each page: a claim is a write of its own.
                if claimed < size:
                    claimed = max(size, CLAIM_BYTES)
                    try:
                        claim_bytes(con, DATABASE, job.owner, claimed)
                    except (OwnerStorageFull, StorageFull):
                        claim_bytes(con, DATABASE, job.owner, claimed := size)
                claimed -= size
                if page is not None:
                    tell_page(con, job, page, title)
            return settled, claimed

        settled, self._claimed = await self._write(work)
        if settled == "ended":
            self._has_ended = True
        elif self._fails_fast and page is not None and page.error is not None:
            reason = f"A page failed, and failFast is set: {page.error}"
            await self._write(lambda con: conclude(con, job, "failed", reason))
            self._has_ended = True
        self._tell()

    async def _write(self, work: Any) -> Any:
        # Past the publisher: relays need not know of pages.
        return await self._services.state.record(work, deadline_s=30.0)


def _sweep(con: Connection) -> None:
    at_ms = now_ms()
    forget_strays(con)
    sweep_jobs(con, at_ms)
    sweep_hooks(con)
    sweep_cache(con, at_ms, read_operator_settings(con).scrape_cache_mb * MIB)
    sweep_maps(con, at_ms)
    sweep_css_schemas(con, at_ms)
    sweep_seen(con, at_ms)
    count_bytes(con)

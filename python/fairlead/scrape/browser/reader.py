"""Pages in sequence by the browser: a scrape has a separate context, a job one for all its pages, which is renewed
with its cookies after `CONTEXT_PAGES` pages.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from dataclasses import dataclass
from typing import Any, Final

from fairlead.errors import FairleadError
from fairlead.net.egress import AddressForbidden, NameUnknown
from fairlead.net.url import split_url
from fairlead.scrape.address import BadAddress, canonical
from fairlead.scrape.browser.actions import Downloads, act, archive_of, pdf_of, picture_of
from fairlead.scrape.browser.api_calls import Calls
from fairlead.scrape.browser.evaluate import text_of
from fairlead.scrape.browser.origin_headers import origin_headers
from fairlead.scrape.browser.process import (
    ACTION_MS,
    Browser,
    Context,
    ContextOptions,
    failure_of,
    in_time,
)
from fairlead.scrape.browser.quiet import Quiet
from fairlead.scrape.fetch.fetcher import PAGE_MAX_BYTES, FetchFailed, FetchResult
from fairlead.scrape.fetch.sent_headers import private_headers
from fairlead.scrape.fetch.transport import RESOLVE_S
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.scrape.requests.presentation import ScreenshotOptions

CONTEXT_PAGES: Final = 50
PAGES_AT_ONCE: Final = 4
LOAD_MS: Final = 30_000
PAGE_DEADLINE_S: Final = 120.0
CLOSING_S: Final = 10.0
ARTIFACTS_MAX_BYTES: Final = 5 * 1024 * 1024


class Renderer:
    """Renders pages, at most `PAGES_AT_ONCE` over all callers."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.free = asyncio.Semaphore(PAGES_AT_ONCE)

    async def fetch(
        self, url: str, options: ScrapeOptions, calls: Calls | None = None
    ) -> FetchResult:
        """The page after its scripts, waits and actions, in a separate context; `calls` records its calls. Raises
        `FetchFailed`, or `InvalidRequest` if there is no browser.
        """
        reader = JobReader(self, options)
        try:
            return await reader.fetch(url, options, calls)
        finally:
            await reader.close()


class JobReader:
    """The pages of one job, which share cookies; the context is opened for the first of them."""

    def __init__(self, renderer: Renderer, options: ScrapeOptions) -> None:
        self._rendering = renderer
        self._context_options = ContextOptions(
            skip_tls_verification=options.skip_tls_verification,
            is_ordinary=options.stealth_mode,
            takes_downloads=options.wants_downloads,
            is_mobile=options.mobile,
            languages=tuple(options.location.tags) if options.location else (),
        )
        self._context: Context | None = None
        self._pages = 0
        self._under_way = 0
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        """Closes the job's context."""
        context, self._context = self._context, None
        if context is not None:
            await context.close()

    async def fetch(
        self, url: str, options: ScrapeOptions, calls: Calls | None = None
    ) -> FetchResult:
        """The page after its scripts, waits and actions, in the job's context. `FetchFailed`."""
        started = time.monotonic()
        await check_destination(self._rendering.browser, url)
        try:
            # The caller's own time is over before this one, so the tab is closed in order.
            deadline_s = max(PAGE_DEADLINE_S, (options.timeout_s or 0) + CLOSING_S)
            async with self._rendering.free, asyncio.timeout(deadline_s):
                context = await self._opened()
                self._under_way += 1
                try:
                    return await read(context.inner, url, options, started, calls)
                finally:
                    self._under_way -= 1
        except TimeoutError:
            raise FetchFailed("The page was not done in time.", code="timeout") from None
        except (FetchFailed, FairleadError):
            raise
        except Exception as error:  # noqa: BLE001 - Playwright's errors share no base with ours
            raise failure_of(error) from None

    async def _opened(self) -> Context:
        async with self._opening:
            context, state = self._context, None
            if context is not None and not context.is_alive:
                context = self._context = None
            if context is not None and self._pages >= CONTEXT_PAGES and self._under_way == 0:
                state = await context.state()
                await self.close()
                context = None
            if context is None:
                context = self._context = await self._rendering.browser.open(
                    self._context_options, state
                )
                self._pages = 0
            self._pages += 1
            return context


async def check_destination(browser: Browser, url: str) -> None:
    """Refuses an address that the proxy would refuse, before the browser asks for it and with a plain reason."""
    parts = split_url(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(RESOLVE_S):
            await browser.egress.resolve(parts.hostname or "", port)
    except TimeoutError:
        raise FetchFailed("The host's name was not resolved in time.", code="timeout") from None
    except AddressForbidden:
        raise FetchFailed(
            "The address leads to a private or reserved network, which is not fetched.",
            code="forbidden_address",
        ) from None
    except NameUnknown as error:
        raise FetchFailed(f"The page cannot be fetched: {error}.", code="unreachable") from None


async def read(
    context: Any, url: str, options: ScrapeOptions, started: float, calls: Calls | None = None
) -> FetchResult:
    """Opens the address in a tab of the context, does what is asked, and closes the tab."""
    page = await context.new_page()
    downloads = Downloads()
    if options.wants_downloads:
        downloads.watch(page)
    if calls is not None:
        calls.watch(page)
    try:
        page.on("popup", lambda popup: asyncio.ensure_future(in_time(popup.close())))
        private = private_headers(options.headers, options.cookies)
        async with origin_headers(page, url, private):
            with Quiet(page) as quiet:
                answer = await page.goto(url, wait_until="load", timeout=options.timeout or LOAD_MS)
                if answer is None:
                    raise FetchFailed("The browser got no answer.", code="unreachable")
                await wait_and_act(page, options, quiet)
            if calls is not None:
                await calls.settled(page)
            return await capture(page, PageLoad(url, started, answer), options, downloads)
    finally:
        await in_time(page.close())


async def wait_and_act(page: Any, options: ScrapeOptions, quiet: Quiet) -> None:
    """Does what is asked in a loaded page, and waits until it has been rendered, unless the caller names a wait."""
    if options.wait_for_selector:
        await page.wait_for_selector(options.wait_for_selector, timeout=ACTION_MS * 3)
    if options.wait_for_timeout:
        await page.wait_for_timeout(options.wait_for_timeout)
    if not options.names_wait:
        await quiet.wait()
    for number, action in enumerate(options.actions):
        await act(page, action, number)
    if options.actions and not options.names_wait:
        await quiet.wait()


@dataclass(frozen=True, slots=True)
class PageLoad:
    """How a page was loaded: the address that was asked for, when (monotonic seconds), and Playwright's response,
    if known.
    """

    url: str
    started_s: float
    answer: Any


async def capture(
    page: Any, load: PageLoad, options: ScrapeOptions, downloads: Downloads
) -> FetchResult:
    """The current page, with the requested files and pictures."""
    answer = load.answer
    text = await text_of(page, PAGE_MAX_BYTES)
    artifacts: dict[str, Any] = {}
    if options.wants_picture:
        artifacts["screenshot"] = await _screenshot(page, options.screenshot or ScreenshotOptions())
    if "pdf" in options.formats:
        paper = await pdf_of(page)
        artifacts["pdf"] = f"data:application/pdf;base64,{b64encode(paper).decode()}"
    if "mhtml" in options.formats:
        artifacts["mhtml"] = await archive_of(page)
    if options.wants_downloads:
        await downloads.settled()
        artifacts["downloads"] = await _files(downloads)
    headers = await answer.all_headers() if answer is not None else {}
    try:
        final = canonical(page.url)
    except BadAddress as fault:
        raise FetchFailed(f"The page went to an address that {fault}.", code="redirects") from None
    return FetchResult(
        url=final,
        status=answer.status if answer is not None else 200,
        headers=headers,
        body=text.encode("utf-8", "replace"),
        # The browser has decoded it, and shows everything as HTML.
        content_type="text/html; charset=utf-8",
        elapsed_ms=(time.monotonic() - load.started_s) * 1000,
        redirects=[load.url] if final != load.url else [],
        artifacts=artifacts,
    )


async def _screenshot(page: Any, wanted: ScreenshotOptions) -> str:
    """The picture as a `data:` URL. The tab keeps its size."""
    size = page.viewport_size
    if wanted.viewport is not None:
        await page.set_viewport_size(wanted.viewport.model_dump())
    try:
        picture = await picture_of(page, is_whole=wanted.full_page, quality=wanted.quality)
    finally:
        if wanted.viewport is not None:
            await page.set_viewport_size(size)
    kind = "png" if wanted.quality is None else "jpeg"
    return f"data:image/{kind};base64,{b64encode(picture).decode()}"


async def _files(downloads: Downloads) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    remaining = ARTIFACTS_MAX_BYTES
    for file in downloads.files:
        view: dict[str, Any] = {"name": file.name, "size": file.size_bytes}
        if file.size_bytes <= remaining:
            remaining -= file.size_bytes
            view["content"] = b64encode(await asyncio.to_thread(file.path.read_bytes)).decode()
        else:
            view["error"] = f"Larger than what is left of {ARTIFACTS_MAX_BYTES} bytes."
        found.append(view)
    return found + [{"error": reason} for reason in downloads.refused]

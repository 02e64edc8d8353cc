"""Reading a page by a real browser, for pages that scripts make and for actions.

Playwright drives the system's Chromium; both are optional, and where one is missing the error names
the command that installs it. The browser reaches the network through a proxy of our own on loopback
and nowhere else, so the egress guard judges every address that a page's scripts ask for, at the
moment it is dialled. One context for each page, downloads and service workers off; the process is
started anew after `PAGES_MAX` pages.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import shutil
import time
from typing import Any, Final
from urllib.parse import urlsplit

from fairlead.egress import AddressForbidden, Egress, NameUnknown
from fairlead.errors import InvalidRequest
from fairlead.scrape.address import BadAddress, canonical
from fairlead.scrape.fetch import PAGE_MAX_BYTES, Fetched, FetchFailed
from fairlead.scrape.options import Action, ScrapeOptions
from fairlead.scrape.proxy import GuardedProxy
from fairlead.scrape.transport import RESOLVE_S

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PAGES_MAX: Final = 100
CONTEXTS_MAX: Final = 4
START_DEADLINE_S: Final = 30.0
LOAD_MS: Final = 30_000
ACTION_MS: Final = 10_000
PAGE_DEADLINE_S: Final = 120.0
SCROLL_MAX: Final = 1_000_000

_FLAGS: Final = [
    "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run",
    "--disable-sync", "--disable-component-update", "--disable-quic", "--mute-audio",
    # Without this, Chromium goes around its proxy for loopback.
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
]  # fmt: skip


class Browser:
    """Started when it is first needed."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._free = asyncio.Semaphore(CONTEXTS_MAX)
        self._starting = asyncio.Lock()
        self._proxy: GuardedProxy | None = None
        self._playwright: Any = None
        self._browser: Any = None
        self._pages = 0
        self._open = 0

    async def close(self) -> None:
        """Ends the browser and its proxy."""
        browser, self._browser = self._browser, None
        playwright, self._playwright = self._playwright, None
        proxy, self._proxy = self._proxy, None
        for ending in (
            browser.close() if browser else None,
            playwright.stop() if playwright else None,
            proxy.close() if proxy else None,
        ):
            if ending is not None:
                with contextlib.suppress(Exception):
                    async with asyncio.timeout(5.0):
                        await ending

    async def fetch(self, url: str, options: ScrapeOptions) -> Fetched:
        """The page after its scripts, waits and actions. `FetchFailed`, or `InvalidRequest` where
        there is no browser.
        """
        started = time.monotonic()
        await self._judge(url)
        async with self._free:
            browser = await self._started()
            self._open += 1
            try:
                async with asyncio.timeout(PAGE_DEADLINE_S):
                    return await _read(browser, url, options, started)
            except TimeoutError:
                raise FetchFailed("The page was not done in time.", code="timeout") from None
            except FetchFailed:
                raise
            except Exception as error:  # noqa: BLE001 - Playwright's errors share no base with ours
                raise _failure(error) from None
            finally:
                self._open -= 1

    async def _judge(self, url: str) -> None:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            async with asyncio.timeout(RESOLVE_S):
                await self._egress.resolve(parts.hostname or "", port)
        except TimeoutError:
            raise FetchFailed("The host's name was not resolved in time.", code="timeout") from None
        except (AddressForbidden, NameUnknown) as error:
            raise FetchFailed(f"The page cannot be fetched: {error}.", code="unreachable") from None

    async def _started(self) -> Any:
        async with self._starting:
            worn = self._pages >= PAGES_MAX and self._open == 0
            if self._browser is not None and (worn or not self._browser.is_connected()):
                await self.close()
            if self._browser is None:
                try:
                    async with asyncio.timeout(START_DEADLINE_S):
                        await self._start()
                except TimeoutError:
                    await self.close()
                    raise FetchFailed(
                        "The browser did not start in time.", code="browser"
                    ) from None
            self._pages += 1
            return self._browser

    async def _start(self) -> None:
        try:
            playwright = importlib.import_module("playwright.async_api")
        except ImportError:
            raise InvalidRequest(
                "This needs a browser, and Playwright is not installed: "
                "run `pip install 'fairlead[browser]'`.",
                param="options.useBrowser",
            ) from None
        program = next(filter(None, map(shutil.which, PROGRAMS)), None)
        if program is None:
            raise InvalidRequest(
                "This needs a browser, and there is no Chromium on the path: "
                "run `apt-get install chromium`, or install it as your system does.",
                param="options.useBrowser",
            )
        self._proxy = GuardedProxy(self._egress)
        address = await self._proxy.start()
        self._playwright = await playwright.async_playwright().start()
        self._browser = await self._playwright.chromium.launch(
            executable_path=program,
            headless=True,
            proxy={"server": address},
            args=_FLAGS,
            # As root, Chromium has no sandbox of its own to use.
            chromium_sandbox=not _is_root(),
        )
        self._pages = 0


def _is_root() -> bool:
    return os.geteuid() == 0


async def _read(browser: Any, url: str, options: ScrapeOptions, started: float) -> Fetched:
    context = await browser.new_context(
        accept_downloads=False,
        service_workers="block",
        ignore_https_errors=options.skip_tls_verification,
        locale="en-US" if options.stealth_mode else None,
    )
    try:
        context.set_default_timeout(ACTION_MS)
        page = await context.new_page()
        page.on("popup", lambda popup: asyncio.ensure_future(popup.close()))
        answer = await page.goto(url, wait_until="load", timeout=LOAD_MS)
        if answer is None:
            raise FetchFailed("The browser got no answer.", code="unreachable")
        if options.wait_for_selector:
            await page.wait_for_selector(options.wait_for_selector, timeout=ACTION_MS * 3)
        if options.wait_for_timeout:
            await page.wait_for_timeout(options.wait_for_timeout)
        for number, action in enumerate(options.actions):
            await _act(page, action, number)
        text = await page.content()
        if len(text) > PAGE_MAX_BYTES:
            raise FetchFailed(f"The page is larger than {PAGE_MAX_BYTES} bytes.", code="too_large")
        headers = await answer.all_headers()
        try:
            final = canonical(page.url)
        except BadAddress as fault:
            raise FetchFailed(
                f"The page went to an address that {fault}.", code="redirects"
            ) from None
        return Fetched(
            url=final,
            status=answer.status,
            headers=headers,
            text=text,
            charset="utf-8",
            content_type=headers.get("content-type", "text/html").partition(";")[0].strip().lower(),
            size_bytes=len(text),
            elapsed_ms=(time.monotonic() - started) * 1000,
            redirects=[url] if final != url else [],
        )
    finally:
        await context.close()


async def _act(page: Any, action: Action, number: int) -> None:
    limit_ms = action.timeout or ACTION_MS
    try:
        match action.type:
            case "click":
                await page.click(_selector(action), timeout=limit_ms)
            case "fill":
                await page.fill(_selector(action), action.value or "", timeout=limit_ms)
            case "select":
                await page.select_option(_selector(action), action.value or "", timeout=limit_ms)
            case "wait" if action.selector:
                await page.wait_for_selector(action.selector, timeout=limit_ms)
            case "wait":
                await page.wait_for_timeout(action.timeout or 1000)
            case "scroll" if action.selector:
                await page.locator(action.selector).first.scroll_into_view_if_needed(
                    timeout=limit_ms
                )
            case "scroll":
                target = action.position if action.position is not None else SCROLL_MAX
                await page.evaluate("y => window.scrollTo(0, y)", target)
    except FetchFailed:
        raise
    except Exception as error:  # noqa: BLE001 - Playwright's errors share no base with ours
        if action.optional:
            return
        raise FetchFailed(
            f"actions[{number}] ({action.type}) failed: {_first_line(error)}", code="action"
        ) from None


def _selector(action: Action) -> str:
    if not action.selector:
        raise FetchFailed(f"An action of type {action.type} needs a selector.", code="action")
    return action.selector


def _failure(error: Exception) -> FetchFailed:
    return FetchFailed(f"The browser failed: {_first_line(error)}", code="browser")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__

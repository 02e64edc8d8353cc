"""Chromium, driven by Playwright: started when it is first needed, renewed when it is worn.

Both are optional, and if one is missing the error names the command that installs it. The browser reaches the
network only through our proxy on loopback, so the egress guard checks every address of a page's scripts at the
moment it is dialled. A process that has opened `CONTEXTS_WORN` contexts opens no more; it ends with the last of
them, and another one has replaced it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import shutil
from dataclasses import dataclass
from typing import Any, Final

import structlog

from fairlead.errors import InvalidRequest
from fairlead.net.egress import Egress
from fairlead.process.extra import install_command
from fairlead.process.minimal_environment import minimal_environment
from fairlead.scrape.browser.proxy import GuardedProxy
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.fetch.sent_headers import MOBILE_AGENT
from fairlead.scrape.requests.presentation import Location

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CONTEXTS_WORN: Final = 100
START_DEADLINE_S: Final = 30.0
END_DEADLINE_S: Final = 5.0
ACTION_MS: Final = 10_000
DESKTOP_SIZE: Final = (1280, 800)
MOBILE_SIZE: Final = (390, 844)

log = structlog.get_logger("fairlead.scrape")

_FLAGS: Final = [
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-sync",
    "--disable-component-update",
    "--disable-quic",
    "--mute-audio",
    # A page's heap is limited, and the page ends at the limit; the others continue.
    "--js-flags=--max-old-space-size=512",
    # Without this, Chromium goes around its proxy for loopback.
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
]


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """How a browser context presents itself, and what it may do. `viewport` is width and height in pixels."""

    skip_tls_verification: bool = False
    is_ordinary: bool = False
    user_agent: str | None = None
    viewport: tuple[int, int] | None = None
    takes_downloads: bool = False
    is_mobile: bool = False
    languages: tuple[str, ...] = ()

    @property
    def presentation(self) -> dict[str, Any]:
        """The parameters of Playwright for the screen, the program and the languages."""
        width, height = self.viewport or (MOBILE_SIZE if self.is_mobile else DESKTOP_SIZE)
        shown: dict[str, Any] = {"viewport": {"width": width, "height": height}}
        if self.is_mobile:
            shown |= {"is_mobile": True, "has_touch": True, "user_agent": MOBILE_AGENT}
        if self.user_agent is not None:
            shown["user_agent"] = self.user_agent
        if self.languages:
            weights = Location(languages=list(self.languages)).accept_language
            shown |= {
                "locale": self.languages[0],
                "extra_http_headers": {"accept-language": weights},
            }
        elif self.is_ordinary:
            shown["locale"] = "en-US"
        return shown


class Process:
    """One Chromium process. `users` counts its open contexts, `opened` all that it ever had."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.users = 0
        self.opened = 0

    @property
    def is_worn(self) -> bool:
        return self.opened >= CONTEXTS_WORN


class Browser:
    """The browser of this process: at most one Chromium that takes contexts, and worn ones until their last context
    ends.
    """

    def __init__(self, egress: Egress) -> None:
        self.egress = egress
        self._starting = asyncio.Lock()
        self._proxy: GuardedProxy | None = None
        self._playwright: Any = None
        self._present: Process | None = None
        self._running: set[Process] = set()

    async def close(self) -> None:
        """Ends every process, with all contexts, and the proxy."""
        running, self._running, self._present = self._running, set(), None
        for process in running:
            await in_time(process.browser.close())
        playwright, self._playwright = self._playwright, None
        if playwright is not None:
            await in_time(playwright.stop())
        proxy, self._proxy = self._proxy, None
        if proxy is not None:
            await in_time(proxy.close())

    @property
    def processes(self) -> int:
        """The number of running processes: one, and those that are worn but still in use."""
        return len(self._running)

    async def open(self, options: ContextOptions, state: Any = None) -> Context:
        """A separate context: cookies, storage and cache are shared with nobody. `state` is the `Context.state` of
        an earlier one. Raises `InvalidRequest` if there is no browser.
        """
        process = await self._process_with_room()
        process.users += 1
        process.opened += 1
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                inner = await process.browser.new_context(
                    accept_downloads=options.takes_downloads,
                    service_workers="block",
                    ignore_https_errors=options.skip_tls_verification,
                    storage_state=state,
                    **options.presentation,
                )
        except BaseException:
            await self._release(process)
            raise
        inner.set_default_timeout(ACTION_MS)
        return Context(self, process, inner)

    async def _release(self, process: Process) -> None:
        process.users -= 1
        is_over = process is not self._present or process.is_worn
        if process.users == 0 and is_over and process in self._running:
            self._running.discard(process)
            if process is self._present:
                self._present = None
            await in_time(process.browser.close())

    async def drop(self, process: Process) -> None:
        """Ends a process that does not respond, with every context in it."""
        if process is self._present:
            self._present = None
        self._running.discard(process)
        await in_time(process.browser.close())

    async def _process_with_room(self) -> Process:
        async with self._starting:
            present = self._present
            if present is not None and not present.browser.is_connected():
                self._running.discard(present)
                present = None
            if present is None or present.is_worn:
                try:
                    async with asyncio.timeout(START_DEADLINE_S):
                        present = await self._start()
                except TimeoutError:
                    raise FetchFailed(
                        "The browser did not start in time.", code="browser"
                    ) from None
                self._present = present
                self._running.add(present)
            return present

    async def _start(self) -> Process:
        try:
            playwright = importlib.import_module("playwright.async_api")
        except ImportError:
            raise InvalidRequest(
                "This needs a browser, and Playwright is not installed: "
                f"run `{install_command('browser')}`.",
                param="options.useBrowser",
            ) from None
        program = next(filter(None, map(shutil.which, PROGRAMS)), None)
        if program is None:
            raise InvalidRequest(
                "This needs a browser, and there is no Chromium on the path: "
                "run `apt-get install chromium`, or install it as your system does.",
                param="options.useBrowser",
            )
        if self._proxy is None:
            self._proxy = GuardedProxy(self.egress)
            await self._proxy.start()
        if self._playwright is None:
            _bare_driver()
            self._playwright = await playwright.async_playwright().start()
        try:
            browser = await self._playwright.chromium.launch(
                executable_path=program,
                headless=True,
                proxy={"server": self._proxy.address},
                args=_FLAGS,
                env=minimal_environment(),
                # As root, Chromium cannot use its sandbox.
                chromium_sandbox=not _is_root(),
            )
        except Exception as error:  # noqa: BLE001 - Playwright's errors share no base with ours
            raise failure_of(error) from None
        return Process(browser)


class Context:
    """One context of the browser."""

    def __init__(self, browser: Browser, process: Process, inner: Any) -> None:
        self.inner = inner
        self._browser = browser
        self._process = process
        self._is_open = True

    @property
    def is_alive(self) -> bool:
        """Whether pages can still be opened in it."""
        return self._is_open and bool(self._process.browser.is_connected())

    async def state(self) -> Any:
        """Cookies and storage, for a context that continues from here."""
        async with asyncio.timeout(END_DEADLINE_S):
            return await self.inner.storage_state()

    async def close(self) -> None:
        """Closes it with its pages. One that does not close takes its process with it."""
        if not self._is_open:
            return
        self._is_open = False
        if not await in_time(self.inner.close()):
            await self._browser.drop(self._process)
        await self._browser._release(self._process)  # noqa: SLF001 - the two are one


async def in_time(ending: Any) -> bool:
    """Awaits the end of something that may have ended already; False when it takes longer than `END_DEADLINE_S`."""
    with contextlib.suppress(Exception):
        try:
            async with asyncio.timeout(END_DEADLINE_S):
                await ending
        except TimeoutError:
            return False
    return True


def failure_of(error: Exception) -> FetchFailed:
    """An error of Playwright as a failure of the page."""
    reason = first_line(error)
    if "Download is starting" in reason:
        return FetchFailed(
            "The address starts a download: ask for it without a browser, or in a browser session.",
            code="content_type",
        )
    return FetchFailed(f"The browser failed: {reason}", code="browser")


def first_line(error: Exception) -> str:
    """The beginning of an error's text."""
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def _bare_driver() -> None:
    """Replaces the function with which Playwright hands our whole environment on to its driver; there is no
    parameter for it.
    """
    try:
        transport: Any = importlib.import_module("playwright._impl.transport")
        given = transport.get_driver_env
    except (ImportError, AttributeError):
        log.warning("the browser's driver starts with the environment of control")
        return

    def bare() -> dict[str, str]:
        own = {name: value for name, value in given().items() if name.startswith("PW_")}
        return minimal_environment(**own)

    if not hasattr(given, "is_bare"):
        bare.is_bare = True  # type: ignore[attr-defined]
        transport.get_driver_env = bare


def _is_root() -> bool:
    return os.geteuid() == 0

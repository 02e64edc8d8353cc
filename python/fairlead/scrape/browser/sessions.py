"""Browser sessions: a tab that a caller keeps open and works in, action by action.

They live in this process and end with it; each has one owner, one action at a time, an idle time and an
age. Every address that is opened by name passes `robots.txt` and the host's turn as a scrape does; what a
page itself opens passes the egress guard, and a tab that leaves the web is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any, Final
from uuid import uuid4

from fairlead.errors import InvalidRequest, NotFound, RateLimited
from fairlead.moment import iso, moment_of, now_ms
from fairlead.scrape.browser.actions import Downloads, File, perform, picture_of
from fairlead.scrape.browser.evaluate import evaluate_script, text_of, title_of
from fairlead.scrape.browser.origin_headers import origin_headers
from fairlead.scrape.browser.process import Browser, Context, ContextOptions, failure_of, in_time
from fairlead.scrape.browser.quiet import Quiet
from fairlead.scrape.browser.reader import (
    LOAD_MS,
    PageLoad,
    capture,
    check_destination,
    wait_and_act,
)
from fairlead.scrape.browser.survey import Survey, settle, survey_of
from fairlead.scrape.fetch.fetcher import PAGE_MAX_BYTES, FetchFailed, FetchResult
from fairlead.scrape.fetch.sent_headers import private_headers
from fairlead.scrape.requests.browser import SessionAction, SessionRequest
from fairlead.scrape.requests.page import Action, ScrapeOptions

SESSIONS_MAX: Final = 10
SESSIONS_OF_OWNER_MAX: Final = 5
IDLE_S: Final = 300.0
AGE_S: Final = 1800.0
ACTION_DEADLINE_S: Final = 40.0
RESULT_MAX_CHARS: Final = 1_000_000
POPUPS_MAX: Final = 10
BLOCKED_MAX: Final = 10
POPUP_DEADLINE_S: Final = 5.0


class Session:
    """One tab in a separate context."""

    def __init__(self, owner: str, context: Context, page: Any, *, is_of_job: bool) -> None:
        self.id = str(uuid4())
        self.owner = owner
        self.is_of_job = is_of_job
        self.context = context
        self.page = page
        self.downloads = Downloads()
        self.popups: list[str] = []
        self.blocked: list[str] = []
        """Addresses that its tabs were kept from, if they are confined."""
        self._noting: set[asyncio.Task[None]] = set()
        self.turn = asyncio.Lock()
        self.created_at_ms = self.used_at_ms = now_ms()
        self.created_s = self.used_s = time.monotonic()
        self.answer: Any = None
        self.title = ""
        self.private = contextlib.AsyncExitStack()
        """Ends the caller's headers and cookies in the tab."""
        self.downloads.watch(page)
        page.on("popup", self._popup)

    @property
    def ends_s(self) -> float:
        """When it expires, on the monotonic clock; never during an action."""
        if self.turn.locked():
            return self.created_s + AGE_S + ACTION_DEADLINE_S
        return min(self.used_s + IDLE_S, self.created_s + AGE_S)

    def view(self) -> dict[str, Any]:
        """The session as the API shows it."""
        left_ms = round((self.ends_s - time.monotonic()) * 1000)
        return {
            "id": self.id,
            "currentUrl": self.page.url,
            "currentTitle": self.title,
            "createdAt": iso(moment_of(self.created_at_ms)),
            "lastUsedAt": iso(moment_of(self.used_at_ms)),
            "expiresAt": iso(moment_of(now_ms() + left_ms)),
            "busy": self.turn.locked(),
            "popups": self.popups,
        }

    def _popup(self, popup: Any) -> None:
        task = asyncio.ensure_future(self._note(popup))
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)

    async def _note(self, popup: Any) -> None:
        # A popup is reported, not followed: the caller may navigate there.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(POPUP_DEADLINE_S):
                await popup.wait_for_load_state("domcontentloaded")
        if len(self.popups) < POPUPS_MAX:
            self.popups.append(str(popup.url)[:2048])
        await in_time(popup.close())


class Sessions:
    """The open sessions of this process."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._open: dict[str, Session] = {}
        self._opening = 0

    async def create(self, owner: str, ask: SessionRequest, *, is_of_job: bool = False) -> Session:
        """A new session on an empty page; `RateLimited` where there are enough of them. `owner` is a key's id, or a
        job's if `is_of_job`.
        """
        # Expired sessions do not count, even before they are swept.
        await self.expire()
        own = sum(session.owner == owner for session in self._open.values())
        if len(self._open) + self._opening >= SESSIONS_MAX or own >= SESSIONS_OF_OWNER_MAX:
            raise RateLimited(
                f"There are at most {SESSIONS_MAX} browser sessions, {SESSIONS_OF_OWNER_MAX} of one key: "
                "close one, or wait for one to expire.",
                retry_after_s=round(IDLE_S),
            )
        self._opening += 1
        try:
            size = ask.viewport
            context = await self._browser.open(
                ContextOptions(
                    user_agent=ask.user_agent,
                    viewport=(size.width, size.height) if size else None,
                    takes_downloads=True,
                    is_mobile=ask.mobile,
                    languages=tuple(ask.location.tags) if ask.location else (),
                )
            )
            try:
                page = await context.inner.new_page()
                session = Session(owner, context, page, is_of_job=is_of_job)
                private = private_headers(ask.headers, ask.cookies)
                await session.private.enter_async_context(
                    origin_headers(page, ask.initial_url or "", private)
                )
            except Exception as error:  # noqa: BLE001 - Playwright's errors share no base with ours
                await context.close()
                raise failure_of(error) from None
        finally:
            self._opening -= 1
        self._open[session.id] = session
        return session

    def of(self, owner: str) -> list[Session]:
        """The owner's sessions, oldest first."""
        now_s = time.monotonic()
        return [
            session
            for session in self._open.values()
            if session.owner == owner and session.ends_s > now_s
        ]

    def find(self, session_id: str, owner: str) -> Session:
        """The owner's session; `NotFound`, also for another's and for one that has expired."""
        session = self._open.get(session_id)
        if session is None or session.owner != owner or session.ends_s <= time.monotonic():
            raise NotFound("Session not found: it may have expired.", param="id")
        return session

    async def close(self, session: Session) -> None:
        """Ends a session, its page and its files."""
        if self._open.pop(session.id, None) is not None:
            await session.private.aclose()
            await session.context.close()

    async def expire(self) -> None:
        """Closes those whose time is over, and those that have lost their browser."""
        now_s = time.monotonic()
        for session in list(self._open.values()):
            if session.ends_s <= now_s or not session.context.is_alive:
                await self.close(session)

    def owners(self) -> set[str]:
        """The keys that have a session. A job's session ends with its job."""
        return {session.owner for session in self._open.values() if not session.is_of_job}

    async def close_of(self, owners: Collection[str]) -> None:
        """Ends the sessions of these keys."""
        for session in list(self._open.values()):
            if session.owner in owners:
                await self.close(session)

    async def close_all(self) -> None:
        """Ends every session."""
        for session in list(self._open.values()):
            await self.close(session)

    async def navigate(self, session: Session, url: str) -> None:
        """Opens a canonical address in the session's tab."""
        await check_destination(self._browser, url)
        session.answer = await session.page.goto(url, wait_until="load", timeout=LOAD_MS)

    async def act(self, session: Session, action: SessionAction) -> dict[str, Any]:
        """Performs one action; its result. After a `FetchFailed` the session stays as it is."""
        if session.turn.locked():
            raise InvalidRequest("The session is busy with another action.", param="id")
        async with session.turn:
            async with self._deadline(session, "The page did not answer in time"):
                result = await self._perform(session, action)
                await session.downloads.settled()
                session.title = await title_of(session.page)
            if not session.page.url.startswith(("http://", "https://", "about:blank")):
                await self.close(session)
                raise FetchFailed(
                    "The page went to an address that is not of the web; the session is closed.",
                    code="forbidden_address",
                )
            return result

    async def survey(self, session: Session) -> Survey:
        """The page's address, title, HTML and elements. `FetchFailed`."""
        async with session.turn, self._deadline(session, "The page did not answer in time"):
            return await survey_of(session.page, session.popups)

    async def settled(self, session: Session) -> str:
        """Waits until the page is loaded and quiet, or a few seconds; the page's address then. `FetchFailed`."""
        async with session.turn, self._deadline(session, "The page did not answer in time"):
            await settle(session.page)
            return str(session.page.url)

    async def confine(self, session: Session, allows: Callable[[str], bool]) -> None:
        """From now on the session's tabs go only where `allows` says; what their pages load is free.
        Redirects are not asked about: whoever confines looks at where a page ended, too.
        """

        async def judge_navigation(route: Any) -> None:
            # A tab that is gone meanwhile needs no answer.
            with contextlib.suppress(Exception):
                if _is_tab_navigation(route.request) and not allows(route.request.url):
                    del session.blocked[BLOCKED_MAX:]
                    session.blocked.append(str(route.request.url)[:2048])
                    # `aborted`, not `failed`: the page stays as it is.
                    await route.abort("aborted")
                else:
                    await route.continue_()

        async with self._deadline(session, "The page did not answer in time"):
            await session.context.inner.route("**/*", judge_navigation)

    async def read(self, session: Session, url: str, options: ScrapeOptions) -> FetchResult:
        """An address in the session's tab, with the session's cookies, as a scrape sees it."""
        started = time.monotonic()
        if session.turn.locked():
            raise FetchFailed("The session is busy with another action.", code="session")
        async with session.turn, self._deadline(session, "The page was not done in time"):
            page = session.page
            private = private_headers(options.headers, options.cookies)
            async with origin_headers(page, url, private):
                with Quiet(page) as quiet:
                    await self.navigate(session, url)
                    await wait_and_act(page, options, quiet)
                session.title = await title_of(page)
                load = PageLoad(url, started, session.answer)
                return await capture(page, load, options, session.downloads)

    @contextlib.asynccontextmanager
    async def _deadline(self, session: Session, late: str) -> AsyncIterator[None]:
        """Bounds what is done in a tab and raises failures as `FetchFailed`; a tab that is late is closed."""
        self._touch(session)
        try:
            async with asyncio.timeout(ACTION_DEADLINE_S):
                yield
        except TimeoutError:
            await self.close(session)
            raise FetchFailed(f"{late}; the session is closed.", code="timeout") from None
        except FetchFailed:
            raise
        except Exception as error:  # noqa: BLE001 - Playwright's errors share no base with ours
            raise failure_of(error) from None
        finally:
            self._touch(session)

    def file(self, session: Session, number: int) -> File:
        """A file that the session was given; `NotFound`."""
        for file in session.downloads.files:
            if file.number == number:
                return file
        raise NotFound("Download not found", param="number")

    def _touch(self, session: Session) -> None:
        session.used_s, session.used_at_ms = time.monotonic(), now_ms()

    async def _perform(self, session: Session, action: SessionAction) -> dict[str, Any]:
        page, limit_ms = session.page, action.timeout or 10_000
        match action.type:
            case "navigate":
                await self.navigate(session, action.url or "")
                status = session.answer.status if session.answer is not None else None
                return {"url": page.url, "status": status}
            case "type":
                await page.locator(action.selector).first.press_sequentially(
                    action.value or "", timeout=limit_ms
                )
            case "press":
                await page.press(action.selector or "body", action.value or "", timeout=limit_ms)
            case "waitForSelector":
                await page.wait_for_selector(action.selector, timeout=limit_ms)
            case "screenshot":
                picture = await picture_of(page, is_whole=action.full_page)
                return {"contentType": "image/png", "screenshot": b64encode(picture).decode()}
            case "evaluate":
                value = await evaluate_script(page, action.script or "", RESULT_MAX_CHARS)
                return {"value": value}
            case "content":
                return {"url": page.url, "content": await text_of(page, PAGE_MAX_BYTES)}
            case "back":
                session.answer = await page.go_back(timeout=LOAD_MS)
            case "forward":
                session.answer = await page.go_forward(timeout=LOAD_MS)
            case "reload":
                session.answer = await page.reload(timeout=LOAD_MS)
            case "click" | "fill" | "select" | "scroll" | "wait":
                await perform(
                    page,
                    Action.model_validate(
                        action.model_dump(
                            include={"type", "selector", "value", "position", "timeout"}
                        )
                    ),
                )
            case "scrape":
                raise FetchFailed("scrape is no action of a session.")
        return {"url": page.url}


def _is_tab_navigation(request: Any) -> bool:
    """Whether the request leads a whole tab elsewhere."""
    if not request.is_navigation_request():
        return False
    try:
        return request.frame.parent_frame is None
    except Exception:  # noqa: BLE001 - Playwright has no frame yet for a window that opens
        return True

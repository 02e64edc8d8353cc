"""Actions in a page: those of a scrape, screenshots, downloads."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fairlead.scrape.browser.evaluate import extent_of
from fairlead.scrape.browser.process import ACTION_MS, first_line
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.requests.page import Action

SCROLL_MAX: Final = 1_000_000
PICTURE_MAX_PX: Final = 16_000
PICTURE_MAX_PIXELS: Final = 32_000_000
PICTURE_MAX_BYTES: Final = 10 * 1024 * 1024
PRINT_MAX_BYTES: Final = 20 * 1024 * 1024
PRINT_DEADLINE_S: Final = 30.0
FILES_MAX: Final = 10
FILE_MAX_BYTES: Final = 25 * 1024 * 1024
FILE_DEADLINE_S: Final = 20.0
NAME_MAX_CHARS: Final = 200


async def act(page: Any, action: Action, number: int) -> None:
    """One action of a scrape. `FetchFailed` names it by its number, unless it is optional."""
    try:
        await perform(page, action)
    except Exception as error:  # noqa: BLE001 - Playwright's errors share no base with ours
        if action.optional:
            return
        reason = error.reason if isinstance(error, FetchFailed) else first_line(error)
        raise FetchFailed(
            f"actions[{number}] ({action.type}) failed: {reason}", code="action"
        ) from None


async def perform(page: Any, action: Action) -> None:
    """Click, fill, select, wait or scroll; what Playwright raises, or `FetchFailed`."""
    limit_ms = action.timeout or ACTION_MS
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
            await page.wait_for_timeout(action.timeout if action.timeout is not None else 1000)
        case "scroll" if action.selector:
            await page.locator(action.selector).first.scroll_into_view_if_needed(timeout=limit_ms)
        case "scroll":
            target = action.position if action.position is not None else SCROLL_MAX
            await page.evaluate("y => window.scrollTo(0, y)", target)


def _selector(action: Action) -> str:
    if not action.selector:
        raise FetchFailed(f"An action of type {action.type} needs a selector.", code="action")
    return action.selector


async def picture_of(page: Any, *, is_whole: bool, quality: int | None = None) -> bytes:
    """A picture of what is seen, or of the whole page down to `PICTURE_MAX_PX`: a PNG, or with `quality` a JPEG."""
    clip: dict[str, float] | None = None
    if is_whole:
        width, height = await extent_of(page)
        width = max(1, min(width, PICTURE_MAX_PX))
        # A PNG of `PICTURE_MAX_PIXELS` is at most a few times `PICTURE_MAX_BYTES`, whatever it shows.
        most = min(PICTURE_MAX_PX, PICTURE_MAX_PIXELS // width)
        clip = {"x": 0, "y": 0, "width": width, "height": max(1, min(height, most))}
    form = {} if quality is None else {"type": "jpeg", "quality": quality}
    picture: bytes = await page.screenshot(full_page=is_whole, clip=clip, timeout=ACTION_MS, **form)
    if len(picture) > PICTURE_MAX_BYTES:
        raise FetchFailed(
            f"The picture is larger than {PICTURE_MAX_BYTES} bytes.", code="too_large"
        )
    return picture


async def pdf_of(page: Any) -> bytes:
    """A PDF of the page as it would be printed."""
    async with asyncio.timeout(PRINT_DEADLINE_S):
        paper: bytes = await page.pdf(print_background=True)
    if len(paper) > PRINT_MAX_BYTES:
        raise FetchFailed(f"The PDF is larger than {PRINT_MAX_BYTES} bytes.", code="too_large")
    return paper


async def archive_of(page: Any) -> str:
    """The page with its pictures and styles as one file (MHTML)."""
    async with asyncio.timeout(PRINT_DEADLINE_S):
        wire = await page.context.new_cdp_session(page)
        try:
            snapshot = await wire.send("Page.captureSnapshot", {"format": "mhtml"})
        finally:
            await wire.detach()
    archive: str = snapshot["data"]
    if len(archive) > PRINT_MAX_BYTES:
        raise FetchFailed(f"The archive is larger than {PRINT_MAX_BYTES} bytes.", code="too_large")
    return archive


@dataclass(frozen=True, slots=True)
class File:
    """A file that a page gave. `path` lies in a temporary folder until its context is closed."""

    number: int
    name: str
    path: Path
    size_bytes: int


class Downloads:
    """The files of one context; those beyond `FILES_MAX` or larger than `FILE_MAX_BYTES` are refused."""

    def __init__(self) -> None:
        self.files: list[File] = []
        self.refused: list[str] = []
        self._begun = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def watch(self, page: Any) -> None:
        """Keeps the files that this page gives from now on."""
        page.on("download", self._begin)

    async def settled(self) -> None:
        """Waits for downloads in progress, at most `FILE_DEADLINE_S`."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=FILE_DEADLINE_S)

    def _begin(self, download: Any) -> None:
        self._begun += 1
        task = asyncio.ensure_future(self._take(download, self._begun))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take(self, download: Any, number: int) -> None:
        name = str(download.suggested_filename)[:NAME_MAX_CHARS]
        try:
            async with asyncio.timeout(FILE_DEADLINE_S):
                if number > FILES_MAX:
                    raise FetchFailed(f"More than {FILES_MAX} files.")
                path = Path(await download.path())
                size = await asyncio.to_thread(lambda: path.stat().st_size)
                if size > FILE_MAX_BYTES:
                    raise FetchFailed(f"Larger than {FILE_MAX_BYTES} bytes.")
        except Exception as error:  # noqa: BLE001 - Playwright's errors share no base with ours
            reason = (
                error.reason if isinstance(error, FetchFailed) else "It did not arrive in time."
            )
            self.refused.append(f"{name}: {reason}")
            del self.refused[FILES_MAX:]
            with contextlib.suppress(Exception):
                async with asyncio.timeout(ACTION_MS / 1000):
                    await download.cancel()
                    await download.delete()
            return
        self.files.append(File(number, name, path, size))

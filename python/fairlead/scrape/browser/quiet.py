"""When a page has been rendered: no request is open, and its elements have not changed, for half a second."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any, Final, Self

from fairlead.scrape.browser.evaluate import evaluate_bounded

QUIET_S: Final = 0.5
QUIET_MAX_S: Final = 5.0
LOOK_EVERY_S: Final = 0.1

_SIZE: Final = """() => {
  const root = document.documentElement;
  return root ? [document.getElementsByTagName('*').length, (root.textContent || '').length] : [0, 0];
}"""


class Quiet:
    """Watches the requests of a tab; made before its page is opened."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._open: set[Any] = set()
        # Playwright marks each handler, so that none may be a function of Python itself.
        self._handlers = {
            "request": self._begin,
            "requestfinished": self._finish,
            "requestfailed": self._finish,
        }

    def __enter__(self) -> Self:
        for event, handler in self._handlers.items():
            self._page.on(event, handler)
        return self

    def __exit__(self, *_: object) -> None:
        for event, handler in self._handlers.items():
            self._page.remove_listener(event, handler)

    def _begin(self, request: Any) -> None:
        self._open.add(request)

    def _finish(self, request: Any) -> None:
        self._open.discard(request)

    async def wait(self) -> None:
        """Waits until the page is quiet, at most `QUIET_MAX_S`."""
        # A page that is never quiet, or goes elsewhere meanwhile, is read as it is then.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(QUIET_MAX_S):
                await self._until_quiet()

    async def _until_quiet(self) -> None:
        size: Any = None
        quiet_since_s = time.monotonic()
        while time.monotonic() - quiet_since_s < QUIET_S:
            await asyncio.sleep(LOOK_EVERY_S)
            seen = await self._size()
            if self._open or seen != size:
                size, quiet_since_s = seen, time.monotonic()

    async def _size(self) -> Any:
        try:
            return await evaluate_bounded(self._page, _SIZE, None, 100)
        except TimeoutError:
            raise
        except Exception:  # noqa: BLE001 - Playwright's errors share no base; the page is on its way elsewhere
            return None

"""Headers and cookies of a caller in a browser's tab: added to requests for one origin, and to no others.

Playwright sends such headers to every host, or repeats them after a redirect. Here each request of the tab is paused,
also after a redirect, and its headers follow from its own address.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from fairlead.scrape.browser.process import in_time
from fairlead.scrape.fetch.sent_headers import origin_of


@contextlib.asynccontextmanager
async def origin_headers(page: Any, url: str, private: Mapping[str, str]) -> AsyncIterator[None]:
    """While the body runs, `private` headers are in every request of the tab for the origin of `url`."""
    if not private:
        yield
        return
    adder = _Adder(page, url, private)
    await adder.begin()
    try:
        yield
    finally:
        await adder.end()


class _Adder:
    def __init__(self, page: Any, url: str, private: Mapping[str, str]) -> None:
        self._page = page
        self._origin = origin_of(url)
        self._private = dict(private)
        self._tasks: set[asyncio.Task[None]] = set()
        self._wire: Any = None

    async def begin(self) -> None:
        self._wire = await self._page.context.new_cdp_session(self._page)
        self._wire.on("Fetch.requestPaused", self._decide)
        await self._wire.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})

    async def end(self) -> None:
        await in_time(self._wire.send("Fetch.disable"))
        await in_time(self._wire.detach())
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _decide(self, paused: dict[str, Any]) -> None:
        task = asyncio.ensure_future(self._continue(paused))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _continue(self, paused: dict[str, Any]) -> None:
        request = paused["request"]
        headers = {name.lower(): value for name, value in request["headers"].items()}
        if origin_of(request["url"]) == self._origin:
            headers |= self._private
            if "cookie" in self._private:
                headers["cookie"] = await self._cookies(request["url"])
        else:
            # A redirect keeps the headers of the request before it.
            headers = {name: value for name, value in headers.items() if name not in self._private}
        answer = {
            "requestId": paused["requestId"],
            "headers": [{"name": name, "value": value} for name, value in headers.items()],
        }
        # The tab may be gone meanwhile.
        with contextlib.suppress(Exception):
            await self._wire.send("Fetch.continueRequest", answer)

    async def _cookies(self, url: str) -> str:
        """The caller's cookies with those that the site has set."""
        own = {pair.partition("=")[0] for pair in self._private["cookie"].split("; ")}
        of_site = [
            f"{cookie['name']}={cookie['value']}"
            for cookie in await self._page.context.cookies(url)
            if cookie["name"] not in own
        ]
        return "; ".join([*of_site, self._private["cookie"]])

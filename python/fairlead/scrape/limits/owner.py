"""The calling key, as a dependency of every route of scraping, with its limits of calls in a minute and in a day."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Annotated, Final

from fastapi import Depends
from starlette.requests import Request
from starlette.responses import Response

from fairlead.calls.caller import caller_of
from fairlead.calls.origin import public_base
from fairlead.errors import RateLimited, Unauthenticated
from fairlead.moment import now_ms
from fairlead.scrape.limits.quota import daily_calls_of
from fairlead.scrape.scraper import scraper_of
from fairlead.store.services import services_of

WINDOW_S: Final = 60.0
OWNERS_MAX: Final = 10_000
# GET routes that read pages, so they count towards the day.
_COUNTED_GETS: Final = ("/api/reader", "/api/endpoints/", "/api/map/health")


class CallLimit:
    """Calls of each key in the present minute, for the `OWNERS_MAX` keys that called last."""

    def __init__(self) -> None:
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def spend(self, owner: str, most: int, now_s: float) -> None:
        """Counts a call; `RateLimited` when the minute has no room for it."""
        begun_s, count = self._windows.pop(owner, (now_s, 0))
        if now_s - begun_s >= WINDOW_S:
            begun_s, count = now_s, 0
        if most and count >= most:
            self._windows[owner] = (begun_s, count)
            raise RateLimited(
                "Too many requests: slow down and retry later.",
                retry_after_s=max(1, round(begun_s + WINDOW_S - now_s)),
            )
        self._windows[owner] = (begun_s, count + 1)
        while len(self._windows) > OWNERS_MAX:
            self._windows.popitem(last=False)


async def _owner(request: Request, response: Response) -> str:
    principal = caller_of(request).principal
    if principal.kind != "key" or principal.id is None:
        raise Unauthenticated("A gateway API key is required: send `X-API-Key: sk-fl-...`.")
    services = services_of(request)
    limit = services.singleton(CallLimit, CallLimit)
    settings = await scraper_of(services).settings()
    limit.spend(principal.id, settings.scrape_requests_per_minute, time.monotonic())
    if _is_counted(request):
        most = settings.scrape_requests_per_day
        made = await daily_calls_of(services).spend(principal.id, most, now_ms())
        if most:
            response.headers["x-quota-limit"] = str(most)
            response.headers["x-quota-remaining"] = str(most - made)
    return principal.id


def _is_counted(request: Request) -> bool:
    """Whether a call counts towards the day: GET and DELETE of stored things do not."""
    is_free = request.method in {"GET", "DELETE"}
    return not is_free or request.url.path.startswith(_COUNTED_GETS)


async def _base(request: Request) -> str:
    return public_base(services_of(request).config, request)


OwnerDep = Annotated[str, Depends(_owner)]
"""The id of the calling key."""
BaseDep = Annotated[str, Depends(_base)]
"""The address that links to the gateway begin with, without a slash at its end."""

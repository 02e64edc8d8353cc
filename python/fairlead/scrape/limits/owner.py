"""The calling key, as a dependency of every route of scraping, with its limits of calls in a minute and in a day."""

from __future__ import annotations

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
from fairlead.store.call_windows import WINDOW_MS, CallWindows, call_windows_of
from fairlead.store.operator_settings import OperatorSettings
from fairlead.store.services import services_of

_CRAWL_STARTS: Final = frozenset({("POST", "/api/crawl"), ("POST", "/v2/crawl")})
# GET routes that read pages, so they count towards the day.
_COUNTED_GETS: Final = ("/api/reader", "/api/endpoints/", "/api/map/health")


async def _owner(request: Request, response: Response) -> str:
    principal = caller_of(request).principal
    if principal.kind != "key" or principal.id is None:
        raise Unauthenticated("A gateway API key is required: send `X-API-Key: sk-fl-...`.")
    services = services_of(request)
    settings = await scraper_of(services).settings()
    is_counted = _is_counted(request)
    rates = await spend_call(
        call_windows_of(services), principal.id, limits_of(request, settings, is_counted), now_ms()
    )
    response.headers.update(rates)
    if is_counted:
        most = settings.scrape_requests_per_day
        try:
            made = await daily_calls_of(services).spend(principal.id, most, now_ms())
        except RateLimited as refusal:
            refusal.headers = {**rates, "x-quota-limit": str(most), "x-quota-remaining": "0"}
            raise
        if most:
            response.headers["x-quota-limit"] = str(most)
            response.headers["x-quota-remaining"] = str(most - made)
    return principal.id


def limits_of(request: Request, settings: OperatorSettings, is_counted: bool) -> dict[str, int]:
    """The classes of a call, and the calls that a key has of each in a minute; 0 is no limit."""
    if (request.method, request.url.path) in _CRAWL_STARTS:
        own = {"crawls": settings.scrape_crawls_per_minute}
    elif is_counted:
        own = {"expensive": settings.scrape_expensive_per_minute}
    else:
        own = {"status": settings.scrape_status_per_minute}
    return {"all": settings.scrape_requests_per_minute, **own}


async def spend_call(
    windows: CallWindows, owner: str, limits: dict[str, int], at_ms: int
) -> dict[str, str]:
    """Counts a call under its classes; the headers `ratelimit-*` of the class that has least left. `RateLimited` when
    a class has no room for it.
    """
    bounded = {name: most for name, most in limits.items() if most}
    if not bounded:
        return {}
    counted = await windows.count([f"scrape:{name}:{owner}" for name in bounded], at_ms)
    left = {
        name: (most - window.calls, most, window.ends_in_s(at_ms))
        for (name, most), window in zip(bounded.items(), counted, strict=True)
    }
    remaining, most, reset_s = min(left.values())
    headers = {
        "ratelimit-limit": str(most),
        "ratelimit-remaining": str(max(0, remaining)),
        "ratelimit-reset": str(reset_s),
        "ratelimit-policy": f"{most};w={WINDOW_MS // 1000}",
    }
    if remaining < 0:
        refusal = RateLimited(
            "Too many requests: slow down and retry later.", retry_after_s=reset_s
        )
        refusal.headers = headers
        raise refusal
    return headers


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

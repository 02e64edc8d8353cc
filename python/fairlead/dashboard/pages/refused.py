"""Requests that were refused because of who called or from where, which the log of requests does not have."""

from __future__ import annotations

from typing import Any, Final

from fairlead.dashboard.api import Api, Refused
from fairlead.dashboard.page import Page, View, Visit
from fairlead.dashboard.window import NAMES, Window, choices_of, window_of

SHOWN: Final = 200
# Windows that are longer than refusals are kept.
LONG: Final = ("30d", "month")


async def read_refused(api: Api, window: Window, limit: int) -> dict[str, Any]:
    """The newest groups, and the number of requests in the window; none for a visitor who may not see them."""
    try:
        found: dict[str, Any] = await api.get(
            "/api/usage/refused-callers", limit=limit, **window.query
        )
    except Refused:
        return {"refused": [], "requests": 0}
    return found


async def show_refused(visit: Visit) -> View:
    """A table of the groups, the newest first."""
    window = window_of(visit.query, "24h")
    found = await read_refused(visit.api, window, SHOWN)
    fields = {
        "window": window,
        "windows": choices_of(window, {}, [name for name in NAMES if name not in LONG]),
        "counts": found["refused"],
        "requests": found["requests"],
    }
    return View("refused.html", fields, ("rows",))


PAGES = (Page("logs/refused", "Refused callers", show_refused),)

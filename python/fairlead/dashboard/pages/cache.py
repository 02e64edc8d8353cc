"""The response cache: what it saved, and what it keeps."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import urlencode

from fairlead.dashboard.api import Refused
from fairlead.dashboard.names import read_names
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit

PLACE: Final = "/cache"
SHOWN: Final = 50
FILTERS: Final = ("model", "provider", "keyId")


async def show(visit: Visit) -> View:
    """Figures since the workers started, and the kept answers, newest first."""
    chosen = {
        name: visit.query[name].strip() for name in FILTERS if visit.query.get(name, "").strip()
    }
    number = visit.query.get("page", "1")
    page = int(number) if number.isdecimal() and len(number) < 4 and int(number) else 1
    error = None
    entries: dict[str, Any] = {"entries": [], "pagination": {"total": 0, "totalPages": 0}}
    overview, stats, names = await asyncio.gather(
        visit.api.get("/api/cache"),
        visit.api.get("/api/cache/stats"),
        read_names(visit.api),
    )
    try:
        entries = await visit.api.get("/api/cache/entries", page=page, limit=SHOWN, **chosen)
    except Refused as refusal:
        error = refusal.message
    shared = urlencode(chosen)
    pages = entries["pagination"]["totalPages"]
    fields = {
        "cache": overview["semanticCache"],
        "vectors": overview["vectorCache"],
        "config": overview["config"],
        "sizes": stats["semanticCache"],
        "entries": entries["entries"],
        "total": entries["pagination"]["total"],
        "chosen": chosen,
        "error": error,
        "names": names,
        "keys": sorted(names.keys.items(), key=lambda each: each[1].lower()),
        "before": f"?page={page - 1}&{shared}" if page > 1 else None,
        "after": f"?page={page + 1}&{shared}" if page < pages else None,
    }
    return View("cache.html", fields)


async def forget(visit: Visit, typed: FormFields) -> str:
    """Deletes one stored answer."""
    await visit.api.send(
        "DELETE", "/api/cache/entries", query={"signature": typed.get("signature") or "none"}
    )
    return PLACE


async def confirm_clear(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes."""
    cache = (await visit.api.get("/api/cache"))["semanticCache"]
    goes = [
        f"{cache['totalEntries']:,} cached answers, in memory and on disk.",
        "Equal requests go to providers again, and cost again.",
    ]
    return Question("Delete every cached answer?", goes, "Delete them", f"/dashboard{PLACE}")


async def confirm_forget_chosen(visit: Visit, typed: FormFields) -> Question:
    """Names what goes: all that fits the filter that was shown."""
    chosen = _chosen(typed)
    found, names = await asyncio.gather(
        visit.api.get("/api/cache/entries", limit=1, **chosen), read_names(visit.api)
    )
    words = {
        "model": f"of the model {chosen.get('model')}",
        "provider": f"of the provider {chosen.get('provider')}",
        "keyId": f"of the key {names.key(chosen.get('keyId'))}",
    }
    goes = [
        f"{found['pagination']['total']:,} cached answers {', '.join(words[name] for name in chosen)}.",
        "Equal requests go to providers again, and cost again.",
    ]
    back = f"/dashboard{PLACE}?{urlencode(chosen)}"
    return Question("Delete the matching answers?", goes, "Delete them", back)


async def forget_chosen(visit: Visit, typed: FormFields) -> str:
    """Deletes every stored answer that matches the filter."""
    await visit.api.send("DELETE", "/api/cache/entries", query=_chosen(typed))
    return PLACE


def _chosen(typed: FormFields) -> dict[str, str]:
    """The filter of a form; `Refused` without one, which would be everything."""
    chosen = {name: typed[name].strip() for name in FILTERS if typed.get(name, "").strip()}
    if not chosen:
        raise Refused(400, "The form names no filter: filter first.")
    return chosen


async def clear(visit: Visit, _typed: FormFields) -> str:
    """Empties the cache."""
    await visit.api.send("DELETE", "/api/cache/entries")
    return PLACE


PAGES = (
    Page(
        "cache",
        "Cache",
        show,
        group="Protect",
        rank=3,
        icon="cache",
        actions={
            "forget": Action(forget, "The answer was deleted."),
            "forget_chosen": Action(
                forget_chosen, "The matching answers were deleted.", confirm_forget_chosen
            ),
            "clear": Action(clear, "The cache is empty.", confirm_clear),
        },
    ),
)

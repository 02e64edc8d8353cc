"""The first page: what happens now, what it costs, and what needs attention."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from fairlead.calls.caller import caller_of
from fairlead.dashboard import chart, figures
from fairlead.dashboard.api import Api, Refused
from fairlead.dashboard.budgets import Budget, read_budgets_and_today
from fairlead.dashboard.config_changes import read_changes
from fairlead.dashboard.live import open_consoles
from fairlead.dashboard.names import read_all, read_keys, read_names
from fairlead.dashboard.overview import read_overview
from fairlead.dashboard.page import Page, View, Visit
from fairlead.dashboard.recent_failures import FailingProvider, is_failing, read_recent
from fairlead.dashboard.window import (
    ZEROS,
    Row,
    Window,
    by_bucket,
    choices_of,
    day_and_month,
    day_start_ms,
    read_groups,
    read_total,
    window_of,
)
from fairlead.moment import iso, moment_of, now_ms

NOW_MS: Final = 60_000
SUMMED: Final = ("requests", "costUsdMicros", "unpricedRequests")
BUDGETS_SHOWN: Final = 6
NEAR: Final = 0.8
# Circuits that let fewer requests through than all, or are about to.
SERVES_LESS: Final = ("open", "half-open", "degraded")
# Requests of a month up to which the page still leads through the first steps.
FIRST_CALLS: Final = 5
# Days that are over change by late records alone, and their percentiles are most of what a read of a month takes.
PAST_HOLDS_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that an operator should look at."""

    mood: str
    words: str
    href: str
    button: str = "Open"
    """The words of the button that leads there."""


async def show(visit: Visit) -> View:
    """The page, whose figures are read at once."""
    api = visit.api
    window = window_of(visit.query)
    _, _, whole = day_and_month()
    minute = iso(moment_of(now_ms() - NOW_MS))
    names = await read_names(api)
    (
        health,
        now,
        rows,
        (budgets, today),
        past,
        keys,
        more,
        recent,
        overview,
        changes,
    ) = await asyncio.gather(
        api.get("/api/monitoring/health"),
        read_total(api, **{"from": minute}),
        _read_rows(api, window),
        read_budgets_and_today(api),
        _read_month_until_today(api),
        read_keys(api),
        _more_notices(api),
        read_recent(api),
        read_overview(api, names),
        read_changes(api, window),
    )
    this_month = {name: past[name] + today[name] for name in SUMMED}
    failing = await _notices_of_failures(api, recent.failing)
    notices = [*failing, *notices_of_health(health), *more, *_notices_of_budgets(budgets)]
    notices.sort(key=lambda each: each.mood != "bad")
    fields = {
        "window": window,
        "windows": choices_of(window, {}),
        "origin": f"{caller_of(visit.request).scheme}://{caller_of(visit.request).host or 'localhost'}",
        "now": now,
        "today": today,
        "month": this_month,
        "projected": round(this_month["costUsdMicros"] * whole),
        "sums": {name: sum(row[name] for row in rows) for name in SUMMED},
        "streams": sum(each["openStreams"] for each in health["workers"] if each["live"]),
        "in_flight": _in_flight(visit, health),
        "budgets": sorted(budgets, key=lambda each: -each.part)[:BUDGETS_SHOWN],
        "notices": notices,
        "is_used": recent.requests > 0,
        "is_failing": is_failing(now["requests"], now["errors"]),
        "is_new": this_month["requests"] <= FIRST_CALLS,
        "first_call": await _newest_call(api)
        if 0 < this_month["requests"] <= FIRST_CALLS
        else None,
        "has_provider": health["providerSummary"]["configuredCount"] > 0,
        "has_key": bool(keys),
        "overview": overview,
        **_charts(window, rows, changes),
    }
    return View("home.html", fields, ("begin", "now", "notices", "overview", "money", "charts"))


def _in_flight(visit: Visit, health: dict[str, Any]) -> int:
    """Requests in progress, without the consoles: this page is one itself, or is sent over a stream that is one."""
    every: int = sum(each["inFlight"] for each in health["workers"] if each["live"])
    return max(every - max(open_consoles(visit.request), 1), 0)


async def _newest_call(api: Api) -> dict[str, Any] | None:
    logs: list[dict[str, Any]] = (await api.get("/api/usage/request-logs", limit=1))["logs"]
    return logs[0] if logs else None


async def _read_rows(api: Api, window: Window) -> list[Row]:
    """Usage by the buckets of the window."""
    # On the first day of a month, this month has no day that is over.
    if window.bucket != "day" or not window.is_open or window.from_ms >= day_start_ms():
        return await read_groups(api, window.bucket, **window.query)
    day, _, _ = day_and_month()
    past, today = await asyncio.gather(
        _read_past(api, window.bounds[0], day), read_groups(api, "day", **{"from": day})
    )
    return past + today


async def _read_month_until_today(api: Api) -> Row:
    """The sums of this month's days that are over, which all consoles read once in half a minute."""
    day, month, _ = day_and_month()
    if month == day:
        return {**ZEROS}

    async def read(api: Api) -> Row:
        return await read_total(api, percentiles="false", **{"from": month, "to": day})

    name = f"month {month} {day} {now_ms() // PAST_HOLDS_MS}"
    return await api.cached_for_a_while(name, read)


async def _read_past(api: Api, from_: str, until: str) -> list[Row]:
    """Days that are over, which all consoles read once in half a minute."""

    async def read(api: Api) -> list[Row]:
        return await read_groups(api, "day", **{"from": from_, "to": until})

    name = f"days {from_} {until} {now_ms() // PAST_HOLDS_MS}"
    return await api.cached_for_a_while(name, read)


def notices_of_health(health: dict[str, Any]) -> list[Notice]:
    """Faults in the health report."""
    found = []
    if health["status"] == "error":
        found.append(Notice("bad", "Storage fails: nothing can be changed.", "/dashboard/health"))
    found += [
        Notice("bad", f"The background task {each['name']} is down.", "/dashboard/health")
        for each in health["tasks"]
        if not each["running"]
    ]
    if health["spool"].get("rejected"):
        words = "Usage records were set aside because they cannot be read."
        found.append(Notice("warn", words, "/dashboard/health"))
    found += [
        Notice(
            "bad",
            f"The connection {each['name']} ({each['provider']}) failed its test: "
            f"{each['lastError'] or each['testStatus']}",
            f"/dashboard/providers/{each['id']}",
            "Open connection",
        )
        for each in health["credentialHealth"].get("failedConnections") or ()
    ]
    found += [
        Notice("warn", f"The connection {each['name']} is {each['state']}.", "/dashboard/health")
        for each in health.get("connectionHealth", ())
        if each["state"] not in ("active", "deactivated")
    ]
    return found


async def _notices_of_failures(api: Api, failing: list[FailingProvider]) -> list[Notice]:
    """Providers whose requests fail, and those whose circuit is open."""
    resilience, names = await asyncio.gather(api.get("/api/resilience"), read_names(api))
    found = [_notice_of(each, names.provider(each.provider)) for each in failing]
    found += [
        Notice(
            "bad" if each["state"] == "open" else "warn",
            f"{names.provider(each['provider'])}: its circuit is {each['state']} after {each['failures']:,} "
            "failures in a row.",
            "/dashboard/health",
        )
        for each in resilience["breakers"]
        if each["state"] in SERVES_LESS
    ]
    return found


def _notice_of(failing: FailingProvider, name: str) -> Notice:
    mood = "bad" if failing.provider is not None or failing.fails_always else "warn"
    return Notice(mood, failing.words(name), failing.href, "Show requests")


async def _more_notices(api: Api) -> list[Notice]:
    found = []
    try:
        hooks = await api.cached("webhooks", _read_webhooks)
        cooldowns = await api.get("/api/resilience/model-cooldowns")
    except Refused as error:
        return [Notice("warn", error.message, "/dashboard/health")]
    found += [
        Notice(
            "warn",
            f"The webhook {each['name'] or each['url']} was disabled.",
            "/dashboard/webhooks",
        )
        for each in hooks
        if each["state"] == "disabled_due_to_failed_deliveries"
    ]
    if cooldowns["total"]:
        words = f"{cooldowns['total']} models are in cooldown after failures."
        found.append(Notice("warn", words, "/dashboard/health"))
    return found


async def _read_webhooks(api: Api) -> list[dict[str, Any]]:
    return await read_all(api, "/api/webhooks", "webhooks")


def _notices_of_budgets(budgets: list[Budget]) -> list[Notice]:
    return [
        Notice(
            "bad" if each.part >= 1 else "warn",
            f"The key {each.name} has spent {figures.share(each.part)} of its limit ({each.words}).",
            f"/dashboard/keys/{each.key_id}",
            "Open key",
        )
        for each in budgets
        if each.part >= NEAR
    ]


def _charts(window: Window, rows: list[Row], changes: list[chart.Mark]) -> dict[str, chart.Chart]:
    labels = window.labels()
    requests = by_bucket(window, rows, "requests")
    errors = by_bucket(window, rows, "errors")
    good = tuple((all_ or 0) - (bad or 0) for all_, bad in zip(requests, errors, strict=True))
    traffic = [chart.Series("completed", good, 0), chart.Series("failed or refused", errors, 2)]
    speed = [
        chart.Series(words, tuple(value or None for value in by_bucket(window, rows, name)), colour)
        for words, name, colour in (("p50", "p50LatencyMs", 0), ("p99", "p99LatencyMs", 3))
    ]
    cost = [chart.Series("cost", by_bucket(window, rows, "costUsdMicros"), 1)]
    log, usage = window.links("/dashboard/logs"), window.links("/dashboard/usage")
    slow = window.links("/dashboard/logs", sort="latency")
    return {
        "traffic": chart.marked(
            chart.bars("Requests", labels, traffic, figures.count, log), changes
        ),
        "speed": chart.lines("Answer time", labels, speed, figures.milliseconds, slow),
        "cost": chart.bars("Cost", labels, cost, figures.money, usage),
    }


PAGES = (Page("", "Home", show, group="Observe", rank=1, icon="home"),)

"""The first page: what happens now, what it costs, and what needs a hand."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from fairlead.caller import caller_of
from fairlead.dashboard import chart, figures
from fairlead.dashboard.api import Api, Refused
from fairlead.dashboard.names import read_all
from fairlead.dashboard.page import Page, View, Visit
from fairlead.dashboard.window import (
    Row,
    by_bucket,
    day_and_month,
    read_groups,
    read_total,
    window_of,
)
from fairlead.moment import iso, moment_of, now_ms
from fairlead.store.budgets import KINDS
from fairlead.store.budgets import window_of as budget_window

NOW_MS: Final = 60_000
BUDGETS_SHOWN: Final = 6
NEAR: Final = 0.8
ERRORS_NOTED: Final = 0.05
# Requests of a month up to which the page still leads through the first steps.
FIRST_CALLS: Final = 5
_PERIODS: Final = {"day": "today", "week": "this week", "month": "this month"}


@dataclass(frozen=True, slots=True)
class Hand:
    """Something that an operator should look at."""

    mood: str
    words: str
    href: str


@dataclass(frozen=True, slots=True)
class Budget:
    """A key's limit of money and what is spent of it; micro-dollars."""

    key_id: str
    name: str
    words: str
    spent: int
    limit: int

    @property
    def part(self) -> float:
        """From 0 on; more than 1 where the last request went over."""
        return self.spent / self.limit if self.limit else 1.0


async def show(visit: Visit) -> View:
    """The page, whose figures are read at once."""
    api = visit.api
    window = window_of(visit.query)
    day, month, whole = day_and_month()
    minute = iso(moment_of(now_ms() - NOW_MS))
    health, now, rows, today, this_month, keys, sums = await asyncio.gather(
        api.get("/api/monitoring/health"),
        read_total(api, **{"from": minute}),
        read_groups(api, window.bucket, **window.query),
        read_total(api, **{"from": day}),
        read_total(api, **{"from": month}),
        read_all(api, "/api/keys", "keys"),
        read_total(api, **window.query),
    )
    budgets = await read_budgets(api, keys)
    hands = [*hands_of(health, now), *await _more_hands(api), *_hands_of_budgets(budgets)]
    fields = {
        "window": window,
        "origin": f"{caller_of(visit.request).scheme}://{caller_of(visit.request).host or 'localhost'}",
        "now": now,
        "today": today,
        "month": this_month,
        "projected": round(this_month["costUsdMicros"] * whole),
        "sums": sums,
        "streams": sum(each["openStreams"] for each in health["workers"] if each["live"]),
        "in_flight": sum(each["inFlight"] for each in health["workers"] if each["live"]),
        "budgets": sorted(budgets, key=lambda each: -each.part)[:BUDGETS_SHOWN],
        "hands": hands,
        "is_new": this_month["requests"] <= FIRST_CALLS,
        "first_call": await _newest_call(api)
        if 0 < this_month["requests"] <= FIRST_CALLS
        else None,
        "has_provider": health["providerSummary"]["configuredCount"] > 0,
        "has_key": bool(keys),
        **_charts(window, rows),
    }
    return View("home.html", fields, ("begin", "now", "hands", "money", "charts"))


async def _newest_call(api: Api) -> dict[str, Any] | None:
    logs: list[dict[str, Any]] = (await api.get("/api/usage/request-logs", limit=1))["logs"]
    return logs[0] if logs else None


async def read_budgets(api: Api, keys: list[Row]) -> list[Budget]:
    """The keys' limits of money, with what is spent of each since its day, week or month began in its zone."""
    at_ms = now_ms()
    limits = [
        (key, kind, budget_window(kind, key["usageLimitTz"], at_ms)[0])
        for key in keys
        if key["usageLimitEnabled"]
        for kind in KINDS
        if key[kind.field] is not None
    ]
    starts = sorted({start for _, _, start in limits})
    rows = await asyncio.gather(
        *(read_groups(api, "key", **{"from": iso(moment_of(start))}) for start in starts)
    )
    spent = {
        (start, row["keyId"]): row["costUsdMicros"]
        for start, each in zip(starts, rows, strict=True)
        for row in each
    }
    return [
        Budget(
            key["id"],
            key["name"],
            f"{_PERIODS[kind.period]}, {key['usageLimitTz']}",
            spent.get((start, key["id"]), 0),
            round(key[kind.field] * 1_000_000),
        )
        for key, kind, start in limits
    ]


def hands_of(health: dict[str, Any], now: Row) -> list[Hand]:
    """Faults that the health report and the last minute tell."""
    found = []
    if health["status"] == "error":
        found.append(Hand("bad", "Storage fails: nothing can be changed.", "/dashboard/health"))
    found += [
        Hand("bad", f"The background task {each['name']} is down.", "/dashboard/health")
        for each in health["tasks"]
        if not each["running"]
    ]
    if health["spool"].get("rejected"):
        words = "Usage records were set aside because they cannot be read."
        found.append(Hand("warn", words, "/dashboard/health"))
    found += [
        Hand(
            "bad",
            f"The connection {each['name']} ({each['provider']}) failed its test: "
            f"{each['lastError'] or each['testStatus']}",
            f"/dashboard/providers/{each['id']}",
        )
        for each in health["credentialHealth"].get("failedConnections") or ()
    ]
    found += [
        Hand("warn", f"The connection {each['name']} is {each['state']}.", "/dashboard/health")
        for each in health.get("connectionHealth", ())
        if each["state"] not in ("active", "deactivated")
    ]
    if now["requests"] >= 20 and now["errors"] / now["requests"] > ERRORS_NOTED:
        part = figures.share(now["errors"] / now["requests"])
        words = f"{part} of the requests of the last minute failed."
        found.append(Hand("bad", words, "/dashboard/logs?outcome=upstream_failed"))
    return found


async def _more_hands(api: Api) -> list[Hand]:
    found = []
    try:
        hooks = await read_all(api, "/api/webhooks", "webhooks")
        rests = await api.get("/api/resilience/model-cooldowns")
    except Refused as error:
        return [Hand("warn", error.message, "/dashboard/health")]
    found += [
        Hand(
            "warn",
            f"The webhook {each['name'] or each['url']} was disabled.",
            "/dashboard/webhooks",
        )
        for each in hooks
        if each["state"] == "disabled_due_to_failed_deliveries"
    ]
    if rests["total"]:
        words = f"{rests['total']} models rest after failures."
        found.append(Hand("warn", words, "/dashboard/health"))
    return found


def _hands_of_budgets(budgets: list[Budget]) -> list[Hand]:
    return [
        Hand(
            "bad" if each.part >= 1 else "warn",
            f"The key {each.name} has spent {figures.share(each.part)} of its limit ({each.words}).",
            f"/dashboard/keys/{each.key_id}",
        )
        for each in budgets
        if each.part >= NEAR
    ]


def _charts(window: Any, rows: list[Row]) -> dict[str, chart.Chart]:
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
    return {
        "traffic": chart.bars("Requests", labels, traffic, figures.count),
        "speed": chart.lines("Answer time", labels, speed, figures.milliseconds),
        "cost": chart.bars("Cost", labels, cost, figures.money),
    }


PAGES = (Page("", "Home", show, group="Watch", rank=1, icon="home"),)

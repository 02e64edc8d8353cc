"""One request with its way through the gateway, and its stored bodies."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from fairlead.dashboard import figures
from fairlead.dashboard.api import Refused, not_there
from fairlead.dashboard.combo_fields import STRATEGIES
from fairlead.dashboard.log_words import OUTCOME_MOODS, OUTCOME_WORDS
from fairlead.dashboard.names import Names, read_names
from fairlead.dashboard.page import Page, View, Visit
from fairlead.dashboard.reason import reason_of
from fairlead.dashboard.timeline import make_timeline

HITS: Final = ("hit", "exact", "vector", "joined")
MICROS: Final = 1_000_000
# Models whose names contain the name of one.
MODELS_READ: Final = 50


@dataclass(frozen=True, slots=True)
class CostLine:
    """Tokens at a price in US dollars for a million; micro-dollars."""

    name: str
    tokens: int
    price: float
    micros: float


async def show_request(visit: Visit) -> View:
    """One request: who asked, what answered, how long each step took, and how its cost comes about."""
    request_id = visit.params["request_id"]
    answer, names = await asyncio.gather(
        visit.api.get("/api/usage/request-logs", requestId=request_id, limit=1),
        read_names(visit.api),
    )
    if not answer["logs"]:
        raise not_there("request with this id in the log")
    row = answer["logs"][0]
    lines = await _cost_lines(visit, row)
    fields = {
        "row": row,
        "names": names,
        "reason": reason_of(row, names),
        "way": make_timeline(row, names, OUTCOME_WORDS[row["outcome"]]),
        "decision": _decision(row, names),
        "why": _why(row),
        "lines": lines,
        "headers": await _headers(visit, row),
        "is_told": abs(sum(line.micros for line in lines) - row["costUsdMicros"]) < 1.5,
        "title": f"Request {request_id}",
        **_facts(row, names),
        "words": OUTCOME_WORDS,
        "moods": OUTCOME_MOODS,
    }
    return View("request.html", fields)


async def show_bodies(visit: Visit) -> View:
    """The bodies of the request and of its answer. Opening the page is a read that the audit log notes."""
    request_id = visit.params["request_id"]
    bodies = await visit.api.get(f"/api/usage/logs/{quote(request_id, safe='')}/body")
    fields = {"bodies": bodies, "title": f"Bodies of request {request_id}"}
    return View("bodies.html", fields)


async def _headers(visit: Visit, row: dict[str, Any]) -> dict[str, Any] | None:
    """The headers that steered the request, and those of its answer; None where none are kept."""
    if not row["hasBodies"]:
        return None
    try:
        headers: dict[str, Any] = await visit.api.get(
            f"/api/usage/logs/{quote(row['requestId'], safe='')}/headers"
        )
    except Refused:
        # They have gone in the meantime.
        return None
    return headers if headers["request"] or headers["response"] else None


async def _cost_lines(visit: Visit, row: dict[str, Any]) -> list[CostLine]:
    """The arithmetic of the cost at today's prices; nothing where the price is not known."""
    if not row["costUsdMicros"] or row["provider"] is None:
        return []
    price = await _price(visit, row["provider"], row["upstreamModel"] or row["model"])
    if price is None:
        return []
    cached, written = row["tokensCached"], row["tokensCacheWrite"]
    plain = max(row["tokensInput"] - cached - written, 0)
    parts = (
        ("input", plain, price["input"]),
        ("input from the provider's cache", cached, _or(price["cachedInput"], price["input"])),
        (
            "input written to the provider's cache",
            written,
            _or(price["cacheWrite"], price["input"]),
        ),
        ("output", row["tokensOutput"], price["output"]),
    )
    return [CostLine(name, tokens, each, tokens * each) for name, tokens, each in parts if tokens]


async def _price(visit: Visit, provider: str, model: str) -> dict[str, Any] | None:
    """The price in force; of a provider without a connection the one that the catalogue ships."""
    try:
        known = await visit.api.get("/api/pricing", provider=provider)
        if found := known.get(provider, {}).get(model):
            return dict(found)
        page = await visit.api.get(
            "/api/models/catalog", provider=provider, q=model, limit=MODELS_READ
        )
    except Refused:
        return None
    listed = [
        each for entry in page["providers"] for kind in entry["models"].values() for each in kind
    ]
    named = (each for each in listed if each["id"].partition("/")[2] == model)
    price: dict[str, Any] | None = next((each["price"] for each in named if each["price"]), None)
    return price


def _decision(row: dict[str, Any], names: Names) -> list[tuple[str, str, str]]:
    """The targets that were asked, in their order: name and model, its outcome, its colour."""
    targets = [
        (
            f"{names.connections.get(each['connectionId'], 'a connection')} ({each['model']})",
            f"{each['errorKind'].replace('_', ' ')}, at {figures.milliseconds(each['endedMs'])}",
            "bad",
        )
        for each in row["failedAttempts"]
    ]
    if row["outcome"] == "completed" and row["attempts"]:
        where = names.connections.get(row["connectionId"] or "", names.provider(row["provider"]))
        targets.append((f"{where} ({row['upstreamModel']})", "answered", "good"))
    return targets


def _strategy(row: dict[str, Any]) -> str:
    name = str(row["strategy"])
    return f"the strategy {dict(STRATEGIES).get(name, name)}"


def _why(row: dict[str, Any]) -> str:
    """Why these targets, and in this order."""
    if row["cache"] in HITS and not row["attempts"]:
        return "The answer came from the response cache: no provider was called."
    if row["combo"]:
        return f"The combo {row['combo']} put its targets in order by {_strategy(row)}."
    if row["strategy"] and row["strategy"] != "single":
        return f"The targets were put in order by {_strategy(row)}."
    if row["provider"]:
        return "The prefix of the model's name selects the provider; its connections are used by priority."
    return "No provider was chosen."


def _or(price: float | None, other: float) -> float:
    return other if price is None else price


def _shorter(row: dict[str, Any]) -> str:
    before, after = row["compressionTokensBefore"], row["compressionTokensAfter"]
    return f"{row['compression']}: {figures.count(before)} tokens to {figures.count(after)}"


def _facts(row: dict[str, Any], names: Names) -> dict[str, Any]:
    """Names and values, those that there are."""
    request_facts = (
        ("Key", names.key(row["keyId"])),
        ("Requested model", row["model"]),
        ("Combo", row["combo"] and f"{row['combo']} ({row['strategy']})"),
        ("Session tag", row["sessionTag"]),
        ("Session", row["sessionId"]),
        ("Route", f"{row['method']} {row['path']}"),
        ("Answered as", "a stream" if row["stream"] else "one body"),
        ("Request", f"{row['bytesRequest']:,} bytes"),
        ("Response", f"{row['bytesResponse']:,} bytes"),
    )
    served = (
        ("Provider", row["provider"] and names.provider(row["provider"])),
        ("Model", row["upstreamModel"]),
        ("Connection", row["connectionId"] and names.connection(row["connectionId"])),
        ("Attempts", str(row["attempts"])),
        ("Cache", row["cache"] and " ".join(filter(None, (row["cache"], row["cacheKind"])))),
        ("Shortened", row.get("compression") and _shorter(row)),
        ("Prices", ", ".join(row["priceTiers"])),
        ("Fault injection", row["chaos"]),
        ("Worker", row["workerId"]),
        ("Trace", row["traceId"]),
    )
    return {
        "request_facts": [each for each in request_facts if each[1]],
        "served": [each for each in served if each[1]],
    }


PAGES = (
    Page("logs/{request_id}", "Request", show_request),
    Page("logs/{request_id}/bodies", "Bodies", show_bodies),
)

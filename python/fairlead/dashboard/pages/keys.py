"""Keys: who may call, which models, how often, for how much."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fairlead import _core
from fairlead.caller import caller_of
from fairlead.dashboard.api import Refused
from fairlead.dashboard.form import (
    Field,
    Group,
    changed_values,
    make_form,
    nested,
    read_values,
    whole_number,
)
from fairlead.dashboard.key_access import access_of, read_left
from fairlead.dashboard.names import read_all
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.record import SEEN, check_unchanged
from fairlead.dashboard.spending import read_spending
from fairlead.dashboard.window import day_and_month, day_start_ms, read_total, window_of

DAYS: Final = (
    ("1", "Monday"),
    ("2", "Tuesday"),
    ("3", "Wednesday"),
    ("4", "Thursday"),
    ("5", "Friday"),
    ("6", "Saturday"),
    ("0", "Sunday"),
)
ENDPOINTS: Final = (
    ("chat", "Chat"),
    ("embeddings", "Embeddings"),
    ("images", "Images"),
    ("audio", "Audio"),
    ("video", "Video"),
    ("rerank", "Rerank"),
    ("moderations", "Moderations"),
    ("ocr", "OCR"),
    ("search", "Search"),
    ("models", "Lists of models"),
    ("files", "Files"),
    ("batches", "Batches"),
    ("scraping", "Scraping"),
    ("management", "Management"),
)
GUARDRAILS: Final = (
    ("pii-masker", "Personal data"),
    ("prompt-injection", "Prompt injection"),
    ("credential-masker", "Credentials"),
)
FAULTS: Final = (
    ("error", "An error of the provider's (502)"),
    ("overload", "Overloaded (503)"),
    ("rate-limit", "A rate limit (429)"),
    ("timeout", "A timeout (504)"),
    ("latency", "A late answer"),
)
SCOPES: Final = (
    ("manage", "manage: all but what is the administrator's"),
    ("admin", "admin: all of it"),
    *((str(each["scope"]), f"{each['scope']}: {each['summary']}") for each in _core.key_scopes()),
)
PLACE: Final = "/keys"


def _groups(combos: list[Any], connections: list[Any], teams: list[Any]) -> tuple[Group, ...]:
    """The whole record in groups."""
    return (
        _identity(teams),
        Group("What it may spend", _SPENDING, is_open=True),
        _models(combos),
        _connections(connections),
        Group("How often, and when", _PACE),
        Group("What else it opens", _RIGHTS),
        Group("Faults on purpose", _FAULTS),
    )


def _identity(teams: list[Any]) -> Group:
    return Group(
        "Who it is for",
        (
            Field("name", "Name", most=200, is_required=True, example="support assistant"),
            Field("isActive", "Active", "switch", "A key that is not is refused."),
            Field("isBanned", "Banned", "switch", "Refused whatever else it may do."),
            Field("expiresAt", "Expires", "moment", "Empty: never.", "UTC"),
            Field(
                "groupId",
                "Group",
                "choice",
                "Its limits and rules hold, too.",
                options=(("", "none"), *_places(teams)),
            ),
            Field("tags", "Tags", "lines", "Usage is found by them. One in a line."),
        ),
        is_open=True,
    )


def _models(combos: list[Any]) -> Group:
    return Group(
        "Which models",
        (
            Field(
                "modelAccessMode",
                "Models",
                "choice",
                options=(("all", "all but the blocked ones"), ("restricted", "only these")),
            ),
            Field("forcedModel", "Always this model", hint="Whatever callers ask for."),
            Field("allowedModels", "Only these", "lines", "One in a line; * stands for any."),
            Field("blockedModels", "Never these", "lines", "One in a line; * stands for any."),
            Field(
                "allowedCombos",
                "Only these combos",
                "choices",
                options=tuple((each["name"], each["name"]) for each in combos),
            ),
            Field("allowAutoCombos", "May use combos that are made by themselves", "switch"),
            Field("disableNonPublicModels", "Only models that are listed", "switch"),
            Field(
                "catalogScope",
                "Lists show",
                "choice",
                options=(
                    ("all", "models and combos"),
                    ("combos", "combos"),
                    ("models", "models"),
                ),
            ),
        ),
    )


def _connections(connections: list[Any]) -> Group:
    return Group(
        "Which connections",
        (
            Field(
                "connectionAccessMode",
                "Connections",
                "choice",
                options=(("all", "all"), ("restricted", "only these")),
            ),
            Field(
                "allowedConnections",
                "Only these",
                "choices",
                options=tuple((each["id"], each["name"]) for each in connections),
            ),
        ),
    )


_SPENDING: Final = (
    Field("usageLimitEnabled", "Limits of money are in force", "switch"),
    Field("dailyUsageLimitUsd", "A day", "decimal", "Empty: no limit.", "USD"),
    Field("weeklyUsageLimitUsd", "A week", "decimal", "Empty: no limit.", "USD"),
    Field("monthlyUsageLimitUsd", "A month", "decimal", "Empty: no limit.", "USD"),
    Field("usageLimitTz", "Time zone of these", example="Europe/Vienna"),
    Field(
        "usageAlertPercents",
        "Tell webhooks at",
        "lines",
        "One in a line: 80 is four fifths of a limit. None: never.",
        "%",
    ),
)
_PACE: Final = (
    Field(
        "rateLimits", "Requests in a time", "lines", "One in a line: 100 / 60 is 100 in 60 seconds."
    ),
    Field("maxSessions", "Sessions at once", "whole", "0 sets no limit."),
    Field("throttleDelayMs", "Each request waits", "whole", unit="ms"),
    Field("accessSchedule.enabled", "Only at certain times", "switch"),
    Field("accessSchedule.from", "From", example="08:00"),
    Field("accessSchedule.until", "Until", example="18:00"),
    Field("accessSchedule.tz", "Time zone", example="Europe/Vienna"),
    Field("accessSchedule.days", "On", "choices", options=DAYS),
)
_RIGHTS: Final = (
    Field("allowedEndpoints", "Kinds of call", "choices", "None chosen: all.", options=ENDPOINTS),
    Field(
        "scopes",
        "Of the management API",
        "choices",
        "None chosen: nothing of it.",
        options=SCOPES,
    ),
    Field("disabledGuardrails", "Guardrails that are not run", "choices", options=GUARDRAILS),
    Field("compressionEnabled", "Its conversations are made shorter, where that is on", "switch"),
    Field("noLog", "Its requests are in no log", "switch", "They are still counted."),
    Field(
        "captureBodies",
        "What it asks and is answered is kept",
        "switch",
        "Masked, sealed, for some days; not where its requests are in no log.",
    ),
    Field("allowUsageCommand", "It may ask what it has used", "switch"),
    Field(
        "cacheDefaultMode",
        "Response cache",
        "choice",
        options=(("legacy", "used"), ("bypass", "passed by")),
    ),
    Field(
        "toolServiceMode",
        "Service tier of its conversations",
        "choice",
        options=(
            ("inherit", "as callers say"),
            ("default", "the usual one"),
            ("priority", "priority"),
            ("flex", "flex"),
        ),
    ),
)
_FAULTS: Final = (
    Field(
        "chaosModeEnabled",
        "Some calls are given faults in place of answers",
        "switch",
        "For trying how a program fares when a provider fails.",
    ),
    Field("chaosRate", "Share of calls", "decimal", "0.1 is one in ten."),
    Field("chaosFaults", "Which", "choices", options=FAULTS),
    Field("chaosLatencyMs", "Those that take time take", "whole", unit="ms"),
)


async def show_keys(visit: Visit) -> View:
    """Every key with what it has spent today, and in seven days."""
    day_ms, week_ms = day_start_ms(), window_of({}, "7d").from_ms
    keys, spending = await asyncio.gather(
        read_all(visit.api, "/api/keys", "keys"), read_spending(visit.api, (day_ms, week_ms))
    )
    wanted = visit.query.get("q", "").strip().lower()
    fields = {
        "keys": [key for key in keys if wanted in key["name"].lower()],
        "has_any": bool(keys),
        "wanted": wanted,
        "today": spending[day_ms].keys,
        "week": spending[week_ms].keys,
    }
    return View("keys.html", fields)


async def show_new(visit: Visit) -> View:
    """The form of a new key."""
    groups = await _all_groups(visit)
    form = make_form("create", groups, _flat(_DEFAULTS), visit.failure)
    return View("key.html", {"key": None, "fields": form, "title": "New key"})


async def show_key(visit: Visit) -> View:
    """A key, its spending, and its form."""
    key_id = visit.params["key_id"]
    day, month, _ = day_and_month()
    key = await visit.api.get(f"/api/keys/{key_id}")
    left, connections, today, this_month, groups = await asyncio.gather(
        read_left(visit.api, key),
        read_all(visit.api, "/api/providers", "connections"),
        read_total(visit.api, percentiles="false", **{"from": day, "keyId": key_id}),
        read_total(visit.api, percentiles="false", **{"from": month, "keyId": key_id}),
        _all_groups(visit),
    )
    form = make_form("change", groups, _flat(key), visit.failure, **{SEEN: key["updatedAt"]})
    names = {each["id"]: each["displayName"] or each["name"] for each in connections}
    fields = {
        "key": key,
        "fields": form,
        "today": today,
        "month": this_month,
        "left": left,
        "access": access_of(key, names, dict(ENDPOINTS)),
        "title": key["name"],
    }
    return View("key.html", fields)


async def create(visit: Visit, typed: FormFields) -> View:
    """Makes the key, whose text is on this page alone."""
    values = read_values(_fields(await _all_groups(visit)), typed)
    body = _body(changed_values(values, _flat(_DEFAULTS)) | {"name": values["name"]}, values)
    made = await visit.api.send("POST", "/api/keys", body)
    return _text_view(visit, made, status=201)


async def change(visit: Visit, typed: FormFields) -> str:
    """Changes what differs."""
    path = f"/api/keys/{visit.params['key_id']}"
    key = await visit.api.get(path)
    check_unchanged(key, typed)
    values = read_values(_fields(await _all_groups(visit)), typed)
    # What an older version gave it and this one does not know is not taken away unseen.
    known = {name for name, _ in SCOPES}
    values["scopes"] += [each for each in key["scopes"] if each not in known]
    changed = _body(changed_values(values, _flat(key)), values)
    if changed:
        await visit.api.send("PATCH", path, changed)
    return f"{PLACE}/{key['id']}"


async def ask_delete(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with a key."""
    key = await visit.api.get(f"/api/keys/{visit.params['key_id']}")
    goes = [
        f"The key {key['name']} ({key['keyPreview']}): whoever uses it is refused at once, for good.",
        "Its webhooks of the generative service.",
        "Its usage stays in the log, under a deleted key.",
    ]
    place = f"/dashboard{PLACE}/{key['id']}"
    return Question(f"Revoke the key {key['name']}?", goes, "Revoke it", place)


async def ask_regenerate(visit: Visit, _typed: FormFields) -> Question:
    """Names what a new text changes."""
    key = await visit.api.get(f"/api/keys/{visit.params['key_id']}")
    goes = [
        f"The text {key['keyPreview']}: whoever uses it is refused at once, for good.",
        "A new one is shown once. Rules, limits and usage of the key stay.",
    ]
    place = f"/dashboard{PLACE}/{key['id']}"
    return Question(f"Give the key {key['name']} a new text?", goes, "Make it", place)


async def regenerate(visit: Visit, _typed: FormFields) -> View:
    """Gives the key a new text, which is on this page alone."""
    path = f"/api/keys/{visit.params['key_id']}/regenerate"
    return _text_view(visit, await visit.api.send("POST", path))


async def delete(visit: Visit, _typed: FormFields) -> str:
    """Revokes the key."""
    await visit.api.send("DELETE", f"/api/keys/{visit.params['key_id']}")
    return PLACE


def _text_view(visit: Visit, made: dict[str, Any], status: int = 200) -> View:
    caller = caller_of(visit.request)
    origin = f"{caller.scheme}://{caller.host or 'localhost'}"
    fields = {"made": made, "origin": origin, "title": "New key"}
    return View("key_made.html", fields, status=status)


async def _all_groups(visit: Visit) -> tuple[Group, ...]:
    combos, connections, teams = await asyncio.gather(
        read_all(visit.api, "/api/combos", "combos"),
        read_all(visit.api, "/api/providers", "connections"),
        read_all(visit.api, "/api/groups", "groups"),
    )
    return _groups(combos, connections, teams)


def _places(teams: list[Any]) -> tuple[tuple[str, str], ...]:
    """Groups by their ids, with the names of those above them."""
    return tuple(
        (team["id"], " / ".join([*(each["name"] for each in team["path"]), team["name"]]))
        for team in teams
    )


def _fields(groups: tuple[Group, ...]) -> list[Field]:
    return [field for group in groups for field in group.fields]


def _flat(key: dict[str, Any]) -> dict[str, Any]:
    """The record as the form has it: rate limits as lines, a schedule that is not as one that is off."""
    limits = [f"{each['limit']} / {each['window']}" for each in key.get("rateLimits") or ()]
    schedule = dict(key.get("accessSchedule") or {"enabled": False, "tz": "UTC", "days": []})
    schedule["days"] = [str(day) for day in schedule["days"]]
    percents = [str(percent) for percent in key["usageAlertPercents"]]
    return {
        **key,
        "rateLimits": limits,
        "accessSchedule": schedule,
        "usageAlertPercents": percents,
    }


def _body(changed: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The body of a change: of a schedule whole or none, of limits their numbers."""
    body = {
        name: value for name, value in changed.items() if not name.startswith("accessSchedule.")
    }
    if len(body) < len(changed):
        schedule = nested(values)["accessSchedule"]
        schedule["days"] = [int(day) for day in schedule["days"]]
        is_set = schedule["enabled"] or schedule.get("from") or schedule.get("until")
        body["accessSchedule"] = schedule if is_set else None
    if not values.get("chaosModeEnabled") and not body.get("chaosFaults", True):
        # None is chosen while none is given: what stands stays.
        del body["chaosFaults"]
    if "usageAlertPercents" in body:
        body["usageAlertPercents"] = [_percent(line) for line in body["usageAlertPercents"]]
    if "rateLimits" in body:
        body["rateLimits"] = [_rate_limit(line) for line in body["rateLimits"]] or None
    return body


def _percent(line: str) -> int:
    try:
        return whole_number(line)
    except ValueError:
        words = f"`{line[:40]}` is no percentage: write a whole number, such as 80."
        raise Refused(400, words, "usageAlertPercents") from None


def _rate_limit(line: str) -> dict[str, int]:
    limit, slash, window = line.partition("/")
    try:
        if not slash:
            raise ValueError
        return {"limit": whole_number(limit), "window": whole_number(window)}
    except ValueError:
        raise Refused(
            400, f"`{line[:40]}` is no limit: write 100 / 60 for 100 in 60 seconds.", "rateLimits"
        ) from None


_DEFAULTS: Final[dict[str, Any]] = {
    "isActive": True,
    "modelAccessMode": "all",
    "connectionAccessMode": "all",
    "catalogScope": "all",
    "allowAutoCombos": True,
    "cacheDefaultMode": "legacy",
    "maxSessions": 0,
    "throttleDelayMs": 0,
    "isBanned": False,
    "usageLimitEnabled": False,
    "usageLimitTz": "UTC",
    "usageAlertPercents": ["50", "80", "100"],
    "disableNonPublicModels": False,
    "noLog": False,
    "captureBodies": False,
    "compressionEnabled": True,
    "allowUsageCommand": False,
    "allowedModels": [],
    "blockedModels": [],
    "allowedCombos": [],
    "allowedConnections": [],
    "allowedEndpoints": [],
    "scopes": [],
    "disabledGuardrails": [],
    "toolServiceMode": "inherit",
    "chaosModeEnabled": False,
    "chaosRate": 0.1,
    "chaosFaults": [value for value, _ in FAULTS],
    "chaosLatencyMs": 2_000,
    "tags": [],
}

PAGES = (
    Page(
        "keys",
        "Keys",
        show_keys,
        group="Set up",
        rank=2,
        icon="keys",
    ),
    Page("keys/new", "New key", show_new, actions={"create": Action(create, "The key was made.")}),
    Page(
        "keys/{key_id}",
        "Key",
        show_key,
        actions={
            "change": Action(change, "The key was saved."),
            "regenerate": Action(regenerate, "The key has a new text.", ask_regenerate),
            "delete": Action(delete, "The key was revoked.", ask_delete),
        },
    ),
)

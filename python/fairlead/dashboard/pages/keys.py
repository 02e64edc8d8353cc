"""Keys: who may call, which models, how often, for how much."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fairlead.calls.caller import caller_of
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
from fairlead.dashboard.in_force import (
    KEY,
    PAUSE,
    has_limits,
    is_paused,
    refuse_idle,
    with_enforcement,
)
from fairlead.dashboard.key_access import access_of, read_left
from fairlead.dashboard.key_fields import ENDPOINTS, FAULTS, SCOPES, Choices, groups_of
from fairlead.dashboard.names import read_all
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.record import SEEN, check_unchanged
from fairlead.dashboard.spending import read_spending
from fairlead.dashboard.window import ZEROS, day_and_month, day_start_ms, read_total, window_of
from fairlead.moment import iso, moment_of, now_ms

PLACE: Final = "/keys"


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
        "none_spent": ZEROS,
        "today": spending[day_ms].keys,
        "week": spending[week_ms].keys,
    }
    return View("keys.html", fields)


async def show_new(visit: Visit) -> View:
    """The form of a new key."""
    groups = await _all_groups(visit, _DEFAULTS)
    preset = visit.query.get("preset", "")
    values = {**_flat(_DEFAULTS), **preset_values(preset)}
    form = make_form("create", groups, values, visit.failure)
    fields = {
        "key": None,
        "fields": form,
        "presets": [(title, f"?preset={name}") for name, (title, _, _) in PRESETS.items()],
        "preset": PRESETS[preset][0] if preset in PRESETS else "",
        "title": "New key",
    }
    return View("key.html", fields)


def preset_values(name: str) -> dict[str, Any]:
    """The values of a preset as the form has them; none for an unknown name."""
    if name not in PRESETS:
        return {}
    _, days, values = PRESETS[name]
    if days is None:
        return values
    return {**values, "expiresAt": iso(moment_of(now_ms() + days * DAY_MS))}


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
        _all_groups(visit, key),
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
        "is_paused": is_paused(key),
        "title": key["name"],
    }
    return View("key.html", fields)


async def create(visit: Visit, typed: FormFields) -> View:
    """Makes the key, whose text is on this page alone."""
    stored = _flat(_DEFAULTS)
    values = read_values(_fields(await _all_groups(visit, _DEFAULTS)), typed)
    refuse_idle(values, stored, KEY)
    values = with_enforcement(values, stored)
    body = _body(changed_values(values, stored) | {"name": values["name"]}, values)
    made = await visit.api.send("POST", "/api/keys", body)
    return text_view(visit, made, status=201)


async def change(visit: Visit, typed: FormFields) -> str:
    """Changes what differs."""
    path = f"/api/keys/{visit.params['key_id']}"
    key = await visit.api.get(path)
    check_unchanged(key, typed)
    values = read_values(_fields(await _all_groups(visit, key)), typed)
    stored = _flat(key)
    refuse_idle(values, stored, KEY)
    values = with_enforcement(values, stored)
    # Values of an older version that this one does not know are not removed silently.
    known = {name for name, _ in SCOPES}
    values["scopes"] += [each for each in key["scopes"] if each not in known]
    changed = _body(changed_values(values, stored), values)
    if changed:
        await visit.api.send("PATCH", path, changed)
    return f"{PLACE}/{key['id']}"


async def confirm_delete(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with a key."""
    key = await visit.api.get(f"/api/keys/{visit.params['key_id']}")
    goes = [
        f"The key {key['name']} ({key['keyPreview']}): requests with it will be refused at once. You cannot undo this.",
        "Its webhooks of the generative service.",
        "Its usage stays in the log, under a deleted key.",
    ]
    page_url = f"/dashboard{PLACE}/{key['id']}"
    return Question(f"Revoke the key {key['name']}?", goes, "Revoke it", page_url)


async def confirm_regenerate(visit: Visit, _typed: FormFields) -> Question:
    """Names what a new text changes."""
    key = await visit.api.get(f"/api/keys/{visit.params['key_id']}")
    goes = [
        f"The text {key['keyPreview']}: requests with it will be refused at once. You cannot undo this.",
        "A new one is shown once. Rules, limits and usage of the key stay.",
    ]
    page_url = f"/dashboard{PLACE}/{key['id']}"
    return Question(f"Give the key {key['name']} a new secret?", goes, "Make it", page_url)


async def regenerate(visit: Visit, _typed: FormFields) -> View:
    """Gives the key a new text, which is on this page alone."""
    path = f"/api/keys/{visit.params['key_id']}/regenerate"
    return text_view(visit, await visit.api.send("POST", path))


async def delete(visit: Visit, _typed: FormFields) -> str:
    """Revokes the key."""
    await visit.api.send("DELETE", f"/api/keys/{visit.params['key_id']}")
    return PLACE


def text_view(visit: Visit, made: dict[str, Any], place: str = PLACE, *, status: int = 200) -> View:
    """The text of a key that was made, on this page alone; `place` is the page of all keys."""
    caller = caller_of(visit.request)
    origin = f"{caller.scheme}://{caller.host or 'localhost'}"
    fields = {"made": made, "origin": origin, "place": f"/dashboard{place}", "title": "New key"}
    return View("key_made.html", fields, status=status)


async def _all_groups(visit: Visit, key: dict[str, Any]) -> tuple[Group, ...]:
    combos, connections, teams = await asyncio.gather(
        read_all(visit.api, "/api/combos", "combos"),
        read_all(visit.api, "/api/providers", "connections"),
        read_all(visit.api, "/api/groups", "groups"),
    )
    return groups_of(Choices(combos, connections, teams), is_pausable=has_limits(key))


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
        PAUSE: is_paused(key),
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
        # None is selected while there is no value: the stored value stays.
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


DAY_MS: Final = 86_400_000
# Starting values of the form: the title, the days until the key expires, and fields.
PRESETS: Final[dict[str, tuple[str, int | None, dict[str, Any]]]] = {
    "application": ("Application", None, {"monthlyUsageLimitUsd": 100}),
    "agent": ("Coding agent", None, {"dailyUsageLimitUsd": 20, "monthlyUsageLimitUsd": 200}),
    "ci": ("CI job", 90, {"dailyUsageLimitUsd": 5, "rateLimits": ["60 / 60"]}),
    "temporary": ("Temporary", 1, {"dailyUsageLimitUsd": 5}),
}
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
    "allowedProviderObjects": [],
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
        group="Access",
        rank=1,
        icon="keys",
    ),
    Page("keys/new", "New key", show_new, actions={"create": Action(create, "The key was made.")}),
    Page(
        "keys/{key_id}",
        "Key",
        show_key,
        actions={
            "change": Action(change, "The key was saved."),
            "regenerate": Action(regenerate, "The key was rotated.", confirm_regenerate),
            "delete": Action(delete, "The key was revoked.", confirm_delete),
        },
    ),
)

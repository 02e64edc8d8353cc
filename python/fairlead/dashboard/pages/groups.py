"""Groups: teams of keys, what each may spend and call, and who is in them."""

from __future__ import annotations

import asyncio
from typing import Any, Final

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
from fairlead.dashboard.in_force import ACCESS, refuse_idle
from fairlead.dashboard.key_access import limit_name
from fairlead.dashboard.key_fields import (
    RATE_LIMITS,
    TAGS,
    connection_access,
    inexpressible,
    model_access,
    spending_limits,
)
from fairlead.dashboard.names import read_all
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.record import SEEN, check_unchanged

PLACE: Final = "/groups"
NO_GROUP: Final = "none"
INTERVALS: Final = {"day": "daily", "week": "weekly", "month": "monthly"}
ROLES: Final = (("member", "member: makes keys"), ("admin", "admin: changes every key"))
MEMBER: Final = (
    Field("email", "Address of a user", is_required=True, most=254, example="name@example.org"),
    Field("role", "Role", "choice", options=ROLES),
)
_GUARDRAIL_ACTIONS: Final[tuple[tuple[str, str], ...]] = (
    ("off", "as the settings say"),
    ("warn", "at least warn"),
    ("redact", "at least redact"),
    ("block", "block"),
)
_GUARDRAILS: Final = tuple(
    Field(
        f"guardrails.{side}.{name}",
        f"{label} in {words}",
        "choice",
        options=tuple(
            each for each in _GUARDRAIL_ACTIONS if name != "promptInjection" or each[0] != "redact"
        ),
    )
    for side, words in (("request", "requests"), ("answer", "answers"))
    for name, label in (
        ("piiMasker", "Personal data"),
        ("promptInjection", "Prompt injection"),
        ("credentialMasker", "Credentials"),
    )
    if (side, name) != ("answer", "promptInjection")
)


def _above(groups: list[Any], group_id: str | None) -> tuple[tuple[str, str], ...]:
    """The groups that a group can be part of: neither itself nor one below it."""
    return tuple(
        (each["id"], _path_label(each))
        for each in groups
        if len(each["path"]) < 2
        and each["id"] != group_id
        and group_id not in {one["id"] for one in each["path"]}
    )


def _parts(
    above: tuple[tuple[str, str], ...], combos: list[Any], connections: list[Any]
) -> tuple[Group, ...]:
    """The whole record in groups of fields."""
    return (
        Group(
            "Identity",
            (
                Field("name", "Name", most=200, is_required=True, example="research"),
                Field("parentId", "Part of", "choice", options=(("", "nothing"), *above)),
                Field("isActive", "Active", "switch", "While it is off its keys are refused."),
                TAGS,
            ),
            is_open=True,
        ),
        Group("Spending limits of all its keys together", _MONEY, is_open=True),
        Group("Rate limits", _RATES),
        Group("Which models", model_access(combos)),
        connection_access(connections),
        Group("Guardrails that no key opts out of", _GUARDRAILS),
        Group("Requests", (inexpressible("as the group above or the connection says"),)),
    )


_MONEY: Final = spending_limits("Time zone of its limits")
_RATES: Final = (
    RATE_LIMITS,
    Field("tokenLimits", "Tokens in a time", "lines", "One in a line: 500000 / day (week, month)."),
)


def _moving(group: dict[str, Any], others: list[tuple[str, str]]) -> Group:
    """The group to which the keys of a deleted group move."""
    count = group["keyCount"]
    words = {0: "Its keys go to", 1: "Its key goes to"}.get(count, f"Its {count:,} keys go to")
    options = ((NO_GROUP, "no group"), *others)
    return Group("Keys", (Field("moveKeysTo", words, "choice", options=options),))


def _path_label(group: dict[str, Any]) -> str:
    return " / ".join([*(each["name"] for each in group["path"]), group["name"]])


async def show_groups(visit: Visit) -> View:
    """Every group in its place."""
    groups = await read_all(visit.api, "/api/groups", "groups")
    shown = sorted(((_path_label(each), each) for each in groups), key=lambda each: each[0].lower())
    return View("groups.html", {"groups": shown})


async def show_new(visit: Visit) -> View:
    """The form of a new group."""
    form = make_form("create", await _form_parts(visit), _flat(_DEFAULTS), visit.failure)
    return View("group.html", {"group": None, "fields": form, "title": "New group"})


async def show_group(visit: Visit) -> View:
    """A group: what is left at its levels, its members, and its form."""
    group_id = visit.params["group_id"]
    path = f"/api/groups/{group_id}"
    group, spending, members, groups, parts = await asyncio.gather(
        visit.api.get(path),
        visit.api.get(f"{path}/spending"),
        visit.api.get(f"{path}/members"),
        read_all(visit.api, "/api/groups", "groups"),
        _form_parts(visit),
    )
    others = [(each["id"], _path_label(each)) for each in groups if each["id"] != group_id]
    fields = {
        "group": group,
        "place": _path_label(group),
        "levels": [level for level in spending["levels"] if level["limits"]],
        "limit_name": limit_name,
        "members": members["members"],
        "member_form": make_form(
            "add", (Group("Member", MEMBER),), {"role": "member"}, visit.failure
        ),
        "delete_form": make_form(
            "delete", (_moving(group, others),), {"moveKeysTo": NO_GROUP}, visit.failure
        ),
        "fields": make_form(
            "change", parts, _flat(group), visit.failure, **{SEEN: group["updatedAt"]}
        ),
        "title": group["name"],
    }
    return View("group.html", fields)


async def create(visit: Visit, typed: FormFields) -> str:
    """Makes the group."""
    values = read_values(_fields(await _form_parts(visit)), typed)
    refuse_idle(values, _flat(_DEFAULTS), ACCESS)
    body = _body(changed_values(values, _flat(_DEFAULTS)) | {"name": values["name"]}, values)
    made = await visit.api.send("POST", "/api/groups", body)
    return f"{PLACE}/{made['id']}"


async def change(visit: Visit, typed: FormFields) -> str:
    """Changes what differs."""
    path = f"/api/groups/{visit.params['group_id']}"
    group = await visit.api.get(path)
    check_unchanged(group, typed)
    values = read_values(_fields(await _form_parts(visit)), typed)
    refuse_idle(values, _flat(group), ACCESS)
    changed = _body(changed_values(values, _flat(group)), values)
    if changed:
        await visit.api.send("PATCH", path, changed)
    return f"{PLACE}/{group['id']}"


async def add_member(visit: Visit, typed: FormFields) -> str:
    """Makes a user a member."""
    group_id = visit.params["group_id"]
    await visit.api.send("POST", f"/api/groups/{group_id}/members", read_values(MEMBER, typed))
    return f"{PLACE}/{group_id}"


async def remove_member(visit: Visit, typed: FormFields) -> str:
    """Ends a membership."""
    group_id = visit.params["group_id"]
    path = f"/api/groups/{group_id}/members/{typed.get('user', '')}"
    await visit.api.send("DELETE", path)
    return f"{PLACE}/{group_id}"


async def confirm_delete(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with a group."""
    group = await visit.api.get(f"/api/groups/{visit.params['group_id']}")
    goes = [
        f"The group {group['name']}, its limits and its rules.",
        f"The membership of {group['memberCount']} people.",
        f"Its {group['keyCount']} keys are kept, and moved to the group in the form.",
        "Its usage stays in the log.",
    ]
    page_url = f"/dashboard{PLACE}/{group['id']}"
    return Question(f"Delete the group {group['name']}?", goes, "Delete it", page_url)


async def delete(visit: Visit, typed: FormFields) -> str:
    """Deletes the group."""
    path = f"/api/groups/{visit.params['group_id']}"
    await visit.api.send("DELETE", path, query={"moveKeysTo": typed.get("moveKeysTo")})
    return PLACE


async def _form_parts(visit: Visit) -> tuple[Group, ...]:
    groups, combos, connections = await asyncio.gather(
        read_all(visit.api, "/api/groups", "groups"),
        read_all(visit.api, "/api/combos", "combos"),
        read_all(visit.api, "/api/providers", "connections"),
    )
    return _parts(_above(groups, visit.params.get("group_id")), combos, connections)


def _fields(parts: tuple[Group, ...]) -> list[Field]:
    return [field for part in parts for field in part.fields]


def _flat(group: dict[str, Any]) -> dict[str, Any]:
    """The record as the form has it: limits as lines."""
    words = {word: name for name, word in INTERVALS.items()}
    return {
        **group,
        "rateLimits": [
            f"{each['limit']} / {each['window']}" for each in group.get("rateLimits") or ()
        ],
        "tokenLimits": [
            f"{each['limit']} / {words[each['interval']]}"
            for each in group.get("tokenLimits") or ()
        ],
        "usageAlertPercents": [str(percent) for percent in group["usageAlertPercents"]],
    }


def _body(changed: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The body of a change: guardrails whole, of limits their numbers."""
    body = {name: value for name, value in changed.items() if not name.startswith("guardrails.")}
    if len(body) < len(changed):
        body["guardrails"] = nested(values)["guardrails"]
    if "usageAlertPercents" in body:
        body["usageAlertPercents"] = [
            _number("usageAlertPercents", line) for line in body["usageAlertPercents"]
        ]
    if "rateLimits" in body:
        body["rateLimits"] = [
            {"limit": limit, "window": _number("rateLimits", window)}
            for limit, window in map(_rate, body["rateLimits"])
        ] or None
    if "tokenLimits" in body:
        body["tokenLimits"] = [_token_limit(line) for line in body["tokenLimits"]] or None
    return body


def _rate(line: str) -> tuple[int, str]:
    limit, _, window = line.partition("/")
    return _number("rateLimits", limit), window


def _token_limit(line: str) -> dict[str, Any]:
    limit, _, word = line.partition("/")
    interval = INTERVALS.get(word.strip())
    if interval is None:
        words = f"`{line[:40]}` is no limit: write 500000 / day, 500000 / week or 500000 / month."
        raise Refused(400, words, "tokenLimits")
    return {"limit": _number("tokenLimits", limit), "interval": interval}


def _number(field: str, text: str) -> int:
    try:
        return whole_number(text)
    except ValueError:
        words = f"`{text.strip()[:40]}` is no whole number."
        raise Refused(400, words, field) from None


_NO_GUARDRAILS: Final = {
    "request": {"piiMasker": "off", "promptInjection": "off", "credentialMasker": "off"},
    "answer": {"piiMasker": "off", "credentialMasker": "off"},
}
_DEFAULTS: Final[dict[str, Any]] = {
    "isActive": True,
    "tags": [],
    "modelAccessMode": "all",
    "connectionAccessMode": "all",
    "usageLimitTz": "UTC",
    "usageAlertPercents": [50, 80, 100],
    "guardrails": _NO_GUARDRAILS,
    "allowedModels": [],
    "blockedModels": [],
    "allowedCombos": [],
    "allowedConnections": [],
}

PAGES = (
    Page("groups", "Groups", show_groups, group="Access", rank=3, icon="groups"),
    Page(
        "groups/new",
        "New group",
        show_new,
        actions={"create": Action(create, "The group was made.")},
    ),
    Page(
        "groups/{group_id}",
        "Group",
        show_group,
        actions={
            "change": Action(change, "The group was saved."),
            "add": Action(add_member, "The member was added."),
            "remove": Action(remove_member, "The membership was ended."),
            "delete": Action(delete, "The group was deleted.", confirm_delete),
        },
    ),
)

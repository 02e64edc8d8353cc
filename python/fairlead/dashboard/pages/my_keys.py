"""A person's own groups: what is spent and left of their limits, and the keys there. It needs no right to manage."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from fairlead.dashboard.api import Api, Refused, not_there
from fairlead.dashboard.form import Field, Group, make_form, read_values
from fairlead.dashboard.key_access import limit_name
from fairlead.dashboard.names import read_all
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.pages.keys import text_view

PLACE: Final = "/my-keys"
GROUPS_SHOWN: Final = 20
LIMITS: Final = ("dailyUsageLimitUsd", "monthlyUsageLimitUsd")
NEW: Final = (
    Field("name", "Name", most=200, is_required=True, example="laptop"),
    Field(
        "dailyUsageLimitUsd", "Limit a day", "decimal", "Empty: the group's limits alone.", "USD"
    ),
    Field("monthlyUsageLimitUsd", "Limit a month", "decimal", "Empty: as above.", "USD"),
)


@dataclass(frozen=True, slots=True)
class OwnGroup:
    """A group of the visitor: its limits, and its keys with whether the visitor may change each."""

    id: str
    name: str
    is_admin: bool
    levels: list[dict[str, Any]]
    keys: list[tuple[dict[str, Any], bool]]


async def show(visit: Visit) -> View:
    """Every group of the visitor with its keys."""
    mine = (await visit.api.get("/api/me/groups"))["groups"]
    shown = sorted(mine, key=_label)[:GROUPS_SHOWN]
    groups = await asyncio.gather(*(_own_group(visit, each) for each in shown))
    options = tuple((each["id"], _label(each)) for each in shown)
    chosen = Field("group", "Group", "choice", options=options)
    form = make_form("create", (Group("New key", (chosen, *NEW)),), {}, visit.failure)
    fields = {
        "groups": groups,
        "hidden": len(mine) - len(shown),
        "fields": form,
        "limit_name": limit_name,
    }
    return View("my_keys.html", fields)


async def _own_group(visit: Visit, group: dict[str, Any]) -> OwnGroup:
    path = f"/api/me/groups/{group['id']}"
    spending, keys = await asyncio.gather(
        visit.api.get(f"{path}/spending"), read_all(visit.api, f"{path}/keys", "keys")
    )
    is_admin = group["role"] == "admin"
    return OwnGroup(
        group["id"],
        _label(group),
        is_admin,
        [level for level in spending["levels"] if level["limits"]],
        [(key, is_admin or key["madeBy"] == visit.person.id) for key in keys],
    )


def _label(group: dict[str, Any]) -> str:
    return " / ".join([*(each["name"] for each in group["path"]), group["name"]])


async def create(visit: Visit, typed: FormFields) -> View:
    """Makes a key, whose text is on this page alone."""
    values = {name: value for name, value in read_values(NEW, typed).items() if value is not None}
    if any(name in values for name in LIMITS):
        values["usageLimitEnabled"] = True
    group_id = typed.get("group", "")
    made = await visit.api.send("POST", f"/api/me/groups/{_segment(group_id)}/keys", values)
    return text_view(visit, made, PLACE, status=201)


async def confirm_revoke(visit: Visit, typed: FormFields) -> Question:
    """Names what goes with a key."""
    key = await _key(visit.api, typed)
    goes = [
        f"The key {key['name']} ({key['keyPreview']}): requests with it will be refused at once. You cannot undo this."
    ]
    return Question(f"Revoke the key {key['name']}?", goes, "Revoke it", f"/dashboard{PLACE}")


async def revoke(visit: Visit, typed: FormFields) -> str:
    """Revokes a key."""
    await visit.api.send("DELETE", _key_path(typed))
    return PLACE


async def confirm_regenerate(visit: Visit, typed: FormFields) -> Question:
    """Names what a new text changes."""
    key = await _key(visit.api, typed)
    goes = [
        f"The text {key['keyPreview']}: requests with it will be refused at once. You cannot undo this.",
        "A new one is shown once. Rules, limits and usage of the key stay.",
    ]
    question = f"Give the key {key['name']} a new secret?"
    return Question(question, goes, "Rotate it", f"/dashboard{PLACE}")


async def regenerate(visit: Visit, typed: FormFields) -> View:
    """Gives a key a new text, which is on this page alone."""
    made = await visit.api.send("POST", f"{_key_path(typed)}/regenerate")
    return text_view(visit, made, PLACE)


async def _key(api: Api, typed: FormFields) -> dict[str, Any]:
    keys = await read_all(api, f"/api/me/groups/{_segment(typed.get('group', ''))}/keys", "keys")
    found = next((each for each in keys if each["id"] == typed.get("key")), None)
    if found is None:
        raise not_there("key")
    return found


def _key_path(typed: FormFields) -> str:
    group, key = (_segment(typed.get(name, "")) for name in ("group", "key"))
    return f"/api/me/groups/{group}/keys/{key}"


def _segment(text: str) -> str:
    """An id as one segment of a path."""
    if not text.replace("-", "").isalnum() or not text.isascii():
        raise Refused(400, "Choose one of your groups.", "group")
    return text


PAGES = (
    Page(
        "my-keys",
        "My keys",
        show,
        right="person",
        actions={
            "create": Action(create, "The key was made."),
            "revoke": Action(revoke, "The key was revoked.", confirm_revoke),
            "regenerate": Action(regenerate, "The key has a new text.", confirm_regenerate),
        },
    ),
)

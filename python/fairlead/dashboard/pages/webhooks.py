"""Webhooks: who is told of what, and whether it arrived."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fairlead.dashboard.api import Api
from fairlead.dashboard.form import Field, Group, changed_values, make_form, read_values
from fairlead.dashboard.names import read_all
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.record import SEEN, check_unchanged

PLACE: Final = "/webhooks"
EVERY: Final = "*"
DELIVERIES_SHOWN: Final = 50
MOODS: Final = {"delivered": "good", "failed": "bad", "pending": "warn"}
STATES: Final = {"enabled": "good", "disabled": "", "disabled_due_to_failed_deliveries": "bad"}


async def _groups(api: Api) -> tuple[Group, ...]:
    events = (await api.get("/api/webhooks/events"))["events"]
    options = ((EVERY, "every event, those of later versions too"),)
    options += tuple((each["name"], each["name"]) for each in events)
    return (
        Group(
            "Listener",
            (
                Field("name", "Name", most=200, example="on-call channel"),
                Field("url", "URL", is_required=True, most=2048, example="https://..."),
                Field("active", "Active", "switch"),
            ),
            is_open=True,
        ),
        Group("Events", (Field("events", "Told of", "choices", options=options),), is_open=True),
    )


async def show_webhooks(visit: Visit) -> View:
    """Every subscription."""
    hooks = await read_all(visit.api, "/api/webhooks", "webhooks")
    return View("webhooks.html", {"hooks": hooks, "states": STATES})


async def show_new(visit: Visit) -> View:
    """The form of a new subscription."""
    form = make_form("create", await _groups(visit.api), {"active": True}, visit.failure)
    return View("webhook_new.html", {"fields": form})


async def show_webhook(visit: Visit) -> View:
    """A subscription with its deliveries, newest first."""
    path = f"/api/webhooks/{visit.params['webhook_id']}"
    answer, told, groups = await asyncio.gather(
        visit.api.get(path),
        visit.api.get(f"{path}/deliveries", limit=DELIVERIES_SHOWN),
        _groups(visit.api),
    )
    hook = answer["webhook"]
    fields = {
        "hook": hook,
        "deliveries": told["deliveries"],
        "total": told["total"],
        "fields": make_form("change", groups, hook, visit.failure, **{SEEN: hook["updatedAt"]}),
        "moods": MOODS,
        "states": STATES,
        "title": hook["name"] or hook["url"],
    }
    return View("webhook.html", fields)


async def create(visit: Visit, typed: FormFields) -> View:
    """Makes the subscription, whose secret is on this page alone."""
    values = await _values(visit, typed)
    made = await visit.api.send("POST", "/api/webhooks", values)
    return _secret_view(made)


async def change(visit: Visit, typed: FormFields) -> str:
    """Changes what differs."""
    path = f"/api/webhooks/{visit.params['webhook_id']}"
    hook = (await visit.api.get(path))["webhook"]
    check_unchanged(hook, typed)
    changed = changed_values(await _values(visit, typed), hook)
    if changed:
        await visit.api.send("PUT", path, changed)
    return f"{PLACE}/{hook['id']}"


async def test(visit: Visit, _typed: FormFields) -> str:
    """Sends a test event; how it went is the newest delivery."""
    webhook_id = visit.params["webhook_id"]
    await visit.api.send("POST", f"/api/webhooks/{webhook_id}/test")
    return f"{PLACE}/{webhook_id}"


async def redeliver(visit: Visit, typed: FormFields) -> str:
    """Sends a delivery again."""
    webhook_id = visit.params["webhook_id"]
    body = {"deliveryId": typed.get("delivery", "")}
    await visit.api.send("POST", f"/api/webhooks/{webhook_id}/redeliver", body)
    return f"{PLACE}/{webhook_id}"


async def ask_rotate(visit: Visit, _typed: FormFields) -> Question:
    """Names what a new secret changes."""
    webhook_id = visit.params["webhook_id"]
    goes = [
        "A new signing secret is made and shown once.",
        "Deliveries are signed with the old one too for 24 hours; then it goes.",
    ]
    place = f"/dashboard{PLACE}/{webhook_id}"
    return Question("Make a new signing secret?", goes, "Make it", place)


async def rotate(visit: Visit, _typed: FormFields) -> View:
    """Makes a new secret, which is on this page alone."""
    path = f"/api/webhooks/{visit.params['webhook_id']}/rotate-secret"
    return _secret_view(await visit.api.send("POST", path, {}))


async def ask_delete(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with a subscription."""
    hook = (await visit.api.get(f"/api/webhooks/{visit.params['webhook_id']}"))["webhook"]
    goes = [
        f"The subscription {hook['name'] or ''} to {hook['url']}".replace("  ", " "),
        "Its secrets, and the history of its deliveries.",
        "Deliveries that are still to be made.",
    ]
    return Question("Delete this webhook?", goes, "Delete it", f"/dashboard{PLACE}/{hook['id']}")


async def delete(visit: Visit, _typed: FormFields) -> str:
    """Deletes the subscription."""
    await visit.api.send("DELETE", f"/api/webhooks/{visit.params['webhook_id']}")
    return PLACE


async def _values(visit: Visit, typed: FormFields) -> dict[str, Any]:
    groups = await _groups(visit.api)
    values = read_values([field for group in groups for field in group.fields], typed)
    if EVERY in values["events"]:
        values["events"] = [EVERY]
    return values


def _secret_view(made: dict[str, Any]) -> View:
    return View("webhook_secret.html", {"made": made, "title": "Signing secret"}, status=201)


PAGES = (
    Page(
        "webhooks",
        "Webhooks",
        show_webhooks,
        group="Set up",
        rank=4,
        icon="webhooks",
    ),
    Page(
        "webhooks/new",
        "New webhook",
        show_new,
        actions={
            "create": Action(create, "The webhook was made."),
        },
    ),
    Page(
        "webhooks/{webhook_id}",
        "Webhook",
        show_webhook,
        actions={
            "change": Action(change, "The webhook was saved."),
            "test": Action(test, "A test was sent: the newest delivery says how it went."),
            "redeliver": Action(redeliver, "It is on its way again."),
            "rotate": Action(rotate, "The secret was made.", ask_rotate),
            "delete": Action(delete, "The webhook was deleted.", ask_delete),
        },
    ),
)

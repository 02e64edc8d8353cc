"""Webhooks: who receives which events, and whether they arrived."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import urlencode

from fairlead.dashboard import figures
from fairlead.dashboard.api import Api
from fairlead.dashboard.form import Field, Group, changed_values, make_form, read_values
from fairlead.dashboard.names import read_all
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.record import SEEN, check_unchanged

PLACE: Final = "/webhooks"
EVERY: Final = "*"
DELIVERIES_SHOWN: Final = 50
BODY_MAX: Final = 100_000
DELIVERY_STATES: Final = (
    ("", "any"),
    ("pending", "on its way"),
    ("delivered", "delivered"),
    ("failed", "failed"),
)
REPLAY: Final = (
    Field("from", "Queued from", "moment", is_required=True, unit="UTC"),
    Field("to", "Until before", "moment", "Empty: now.", "UTC"),
    Field(
        "state",
        "Those that",
        "choice",
        options=(("failed", "failed"), ("delivered", "arrived"), ("any", "either")),
    ),
)
ROTATION: Final = (
    Field(
        "keepPreviousHours",
        "The old one counts for",
        "whole",
        "0 ends it at once; at most 168.",
        "hours",
        is_required=True,
    ),
)
MOODS: Final = {"delivered": "good", "failed": "bad", "pending": "warn"}
STATES: Final = {"enabled": "good", "disabled": "", "disabled_due_to_failed_deliveries": "bad"}


async def _groups(api: Api) -> tuple[Group, ...]:
    events = (await api.get("/api/webhooks/events"))["events"]
    options = ((EVERY, "every event, including those of later versions"),)
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
        Group("Events", (Field("events", "Events", "choices", options=options),), is_open=True),
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
    state = visit.query.get("state", "")
    state = state if state in dict(DELIVERY_STATES) else ""
    after = visit.query.get("after", "")[:100]
    answer, history, groups = await asyncio.gather(
        visit.api.get(path),
        visit.api.get(f"{path}/deliveries", limit=DELIVERIES_SHOWN, after=after, state=state),
        _groups(visit.api),
    )
    hook = answer["webhook"]
    following = history["next"]
    fields = {
        "hook": hook,
        "deliveries": history["deliveries"],
        "total": history["total"],
        "state": state,
        "states_of_deliveries": DELIVERY_STATES,
        "next": f"?{urlencode({'state': state, 'after': following})}" if following else None,
        "newest": f"?{urlencode({'state': state})}" if after else None,
        "replay": make_form("replay", (Group("Send a time again", REPLAY),), {}, visit.failure),
        "fields": make_form("change", groups, hook, visit.failure, **{SEEN: hook["updatedAt"]}),
        "moods": MOODS,
        "states": STATES,
        "title": hook["name"] or hook["url"],
    }
    return View("webhook.html", fields, () if after else ("deliveries",))


async def show_delivery(visit: Visit) -> View:
    """A delivery: its attempts, and its body as it was sent."""
    webhook_id = visit.params["webhook_id"]
    path = f"/api/webhooks/{webhook_id}"
    hook, history = await asyncio.gather(
        visit.api.get(path),
        visit.api.get(f"{path}/deliveries", deliveryId=visit.params["delivery_id"]),
    )
    (delivery,) = history["deliveries"]
    body = delivery["body"] or ""
    fields = {
        "hook": hook["webhook"],
        "delivery": delivery,
        "body": figures.indented(body)[:BODY_MAX],
        "is_cut": len(body) > BODY_MAX,
        "moods": MOODS,
        "title": f"Delivery of {delivery['event']}",
    }
    return View("delivery.html", fields)


async def show_rotation(visit: Visit) -> View:
    """The form of a new secret."""
    hook = (await visit.api.get(f"/api/webhooks/{visit.params['webhook_id']}"))["webhook"]
    group = Group("New secret", ROTATION, is_open=True)
    form = make_form("rotate", (group,), {"keepPreviousHours": 24}, visit.failure)
    return View("webhook_rotation.html", {"hook": hook, "fields": form, "title": "New secret"})


async def replay(visit: Visit, typed: FormFields) -> str:
    """Sends the deliveries of a time again."""
    webhook_id = visit.params["webhook_id"]
    values = read_values(REPLAY, typed)
    body = {name: value for name, value in values.items() if value is not None}
    await visit.api.send("POST", f"/api/webhooks/{webhook_id}/redeliver", body)
    return f"{PLACE}/{webhook_id}"


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


async def rotate(visit: Visit, typed: FormFields) -> View:
    """Makes a new secret, which is on this page alone."""
    path = f"/api/webhooks/{visit.params['webhook_id']}/rotate-secret"
    return _secret_view(await visit.api.send("POST", path, read_values(ROTATION, typed)))


async def confirm_delete(visit: Visit, _typed: FormFields) -> Question:
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
        group="Operate",
        rank=1,
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
            "test": Action(test, "A test was sent: the newest delivery shows the result."),
            "redeliver": Action(redeliver, "It is on its way again."),
            "replay": Action(replay, "They are on their way again."),
            "delete": Action(delete, "The webhook was deleted.", confirm_delete),
        },
    ),
    Page(
        "webhooks/{webhook_id}/secret",
        "New secret",
        show_rotation,
        actions={"rotate": Action(rotate, "The secret was made.")},
    ),
    Page(
        "webhooks/{webhook_id}/deliveries/{delivery_id}",
        "Delivery",
        show_delivery,
        actions={"redeliver": Action(redeliver, "It is on its way again.")},
    ),
)

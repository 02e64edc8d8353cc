"""Mail: the server that alerts are handed to, who gets them, and a test."""

from __future__ import annotations

from typing import Any, Final

from fairlead.dashboard.api import Refused
from fairlead.dashboard.form import Field, Group, make_form, read_values
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.record import SEEN, fingerprint
from fairlead.records.mail_queue import MAIL_EVENTS, MailEvent

PLACE: Final = "/settings/mail"
ROUTE: Final = "/api/settings/mail"
MASK: Final = "***"
_EVENT_WORDS: Final[dict[MailEvent, str]] = {
    "budget.reached": "a share of a spending limit is reached",
    "budget.forecast": "a limit that will not last at this pace",
}
GROUPS: Final = (
    Group(
        "Server",
        (
            Field("host", "Host", is_required=True, example="smtp.example.com"),
            Field("port", "Port", "whole", "587 with STARTTLS, 465 with TLS.", is_required=True),
            Field(
                "tls",
                "Secured by",
                "choice",
                "Its certificate must be valid for the host.",
                options=(("starttls", "STARTTLS"), ("tls", "TLS from the start"), ("none", "none")),
            ),
            Field("username", "User name", most=255, hint="Empty: no login."),
            Field(
                "password",
                "Password",
                "secret",
                "Stored sealed. Leave it empty to keep the current one.",
            ),
        ),
        is_open=True,
    ),
    Group(
        "Mails",
        (
            Field("sender", "From", is_required=True, example="fairlead@example.com"),
            Field("recipients", "To", "lines", "One address in a line, at most 50."),
            Field(
                "events",
                "Events",
                "choices",
                options=tuple((event, _EVENT_WORDS[event]) for event in MAIL_EVENTS),
            ),
        ),
        is_open=True,
    ),
)
_FIELDS: Final = tuple(field for group in GROUPS for field in group.fields)
_NEW: Final = {"port": 587, "tls": "starttls", "events": list(MAIL_EVENTS)}


async def show(visit: Visit) -> View:
    """The server, its mails of the last days, the form."""
    return _view(visit, await visit.api.get(ROUTE))


def _view(visit: Visit, mail: dict[str, Any], test: dict[str, Any] | None = None) -> View:
    server = mail["server"]
    form = make_form("change", GROUPS, server or _NEW, visit.failure, **{SEEN: fingerprint(server)})
    fields = {"server": server, "queue": mail["queue"], "fields": form, "test": test}
    return View("mail.html", fields)


async def change(visit: Visit, typed: FormFields) -> str:
    """Sets the server, over the one that was shown."""
    server = (await visit.api.get(ROUTE))["server"]
    if typed.pop(SEEN, "") != fingerprint(server):
        raise Refused(
            409,
            "Somebody has changed the mail server in the meantime. What you typed is still "
            "here: save again to overwrite their change.",
        )
    values = read_values(_FIELDS, typed)
    is_kept = not values.get("password") and server is not None and server["password"] is not None
    if values.get("username") and is_kept:
        values["password"] = MASK
    sent = {name: value for name, value in values.items() if value is not None}
    await visit.api.send("PUT", ROUTE, sent)
    return PLACE


async def test(visit: Visit, _typed: FormFields) -> View:
    """Sends a mail to every recipient now; the page shows the result."""
    outcome = await visit.api.send("POST", f"{ROUTE}/test")
    return _view(visit, await visit.api.get(ROUTE), outcome)


async def confirm_delete(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with the server."""
    mail = await visit.api.get(ROUTE)
    server = mail["server"]
    if server is None:
        raise Refused(404, "There is no mail server: somebody has removed it.")
    goes = [
        f"The server {server['host']} and its password.",
        f"{mail['queue']['pending']:,} mails that wait: they are given up.",
        "No more alerts are sent by mail. Webhooks stay.",
    ]
    return Question("Remove the mail server?", goes, "Remove", f"/dashboard{PLACE}")


async def delete(visit: Visit, _typed: FormFields) -> str:
    """Takes the server back."""
    await visit.api.send("DELETE", ROUTE)
    return PLACE


PAGES = (
    Page(
        "settings/mail",
        "Mail",
        show,
        actions={
            "change": Action(change, "The mail server was saved."),
            "test": Action(test, "A test mail was sent."),
            "delete": Action(delete, "The mail server was removed.", confirm_delete),
        },
    ),
)

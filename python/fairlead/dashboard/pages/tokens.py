"""Management access tokens: what programs that manage the gateway send."""

from __future__ import annotations

from typing import Final

from fairlead.dashboard.form import Field, Group, make_form, read_values
from fairlead.dashboard.names import read_all
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit

PLACE: Final = "/tokens"
FIELDS: Final = (
    Field("name", "Name", most=200, is_required=True, example="deployment"),
    Field(
        "scope",
        "Access",
        "choice",
        options=(
            ("read", "read"),
            ("write", "read and change"),
            ("admin", "all, secrets too"),
        ),
    ),
    Field("expiresAt", "Expires", "moment", "Empty: never.", "UTC"),
)
GROUPS: Final = (Group("New access token", FIELDS, is_open=True),)


async def show(visit: Visit) -> View:
    """Every token, newest first, and the form of a new one."""
    tokens = await read_all(visit.api, "/api/auth/tokens", "tokens")
    form = make_form("create", GROUPS, {"scope": "read"}, visit.failure)
    return View("tokens.html", {"tokens": tokens, "fields": form})


async def create(visit: Visit, typed: FormFields) -> View:
    """Makes the token, whose text is on this page alone."""
    values = read_values(FIELDS, typed)
    sent = {name: value for name, value in values.items() if value is not None}
    made = await visit.api.send("POST", "/api/auth/tokens", sent)
    fields = {
        "made": made,
        "words": f"It opens the management API with the scope {made['scope']}; it calls no models.",
        "back": f"/dashboard{PLACE}",
        "title": "Access token",
    }
    return View("token_made.html", fields, status=201)


async def confirm_revoke(visit: Visit, typed: FormFields) -> Question:
    """Names the token that goes."""
    tokens = await read_all(visit.api, "/api/auth/tokens", "tokens")
    name = next((each["name"] for each in tokens if each["id"] == typed.get("id")), "")
    goes = [
        f"The access token {name}: requests with it will be refused at once. You cannot undo this."
    ]
    return Question(f"Revoke the access token {name}?", goes, "Revoke it", f"/dashboard{PLACE}")


async def revoke(visit: Visit, typed: FormFields) -> str:
    """Revokes the token."""
    await visit.api.send("DELETE", f"/api/auth/tokens/{typed.get('id') or 'none'}")
    return PLACE


PAGES = (
    Page(
        "tokens",
        "Access tokens",
        show,
        group="Access",
        rank=5,
        icon="keys",
        actions={
            "create": Action(create, "The token was made."),
            "revoke": Action(revoke, "The token was revoked.", confirm_revoke),
        },
    ),
)

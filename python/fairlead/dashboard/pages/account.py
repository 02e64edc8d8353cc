"""Your account: password, second factor, sessions, tool clients and their tokens. For every user."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fairlead.dashboard.api import Refused
from fairlead.dashboard.form import Field, Group, make_form, read_values
from fairlead.dashboard.names import read_all
from fairlead.dashboard.page import Action, Failure, FormFields, Page, Question, View, Visit

PLACE: Final = "/account"
CURRENT: Final = Field("currentPassword", "Your password now", "secret", is_required=True, most=200)
NEW_PASSWORD: Final = (
    CURRENT,
    Field("newPassword", "New password", "secret", is_required=True, most=200),
)
CODE: Final = Field("code", "Code of your app", is_required=True, most=64, example="123456")
TOKEN: Final = Field("name", "Name", most=200, example="editor on my laptop", is_required=True)
# Only the page that begins an enrolment has the secret; its form brings it back.
SECRET: Final = "secret"  # noqa: S105 - the name of a field
URI: Final = "uri"


async def show(visit: Visit) -> View:
    """The page of your account: the user, and everything that acts on their behalf."""
    api = visit.api
    me, factor, sessions, grants, tokens = await asyncio.gather(
        api.get("/api/auth/me"),
        api.get("/api/auth/2fa"),
        api.get("/api/auth/sessions"),
        api.get("/api/auth/grants"),
        read_all(api, "/api/me/tokens", "items"),
    )
    form = make_form("make", (Group("New token", (TOKEN,), is_open=True),), {}, visit.failure)
    fields = {
        "me": me,
        "factor": factor,
        "sessions": sessions["sessions"],
        "grants": grants["grants"],
        "tokens": tokens,
        "fields": form,
        "title": "Your account",
    }
    return View("account.html", fields)


async def confirm_end_others(_visit: Visit, _typed: FormFields) -> Question:
    """Names what ends."""
    goes = ["Every session of yours but this one, on every device, at once."]
    return Question("End all other sessions?", goes, "End them", f"/dashboard{PLACE}")


async def end_others(visit: Visit, _typed: FormFields) -> str:
    """Ends every session but this one."""
    await visit.api.send("DELETE", "/api/auth/sessions")
    return PLACE


async def end(visit: Visit, typed: FormFields) -> str:
    """Ends one session."""
    await visit.api.send("DELETE", f"/api/auth/sessions/{_id(typed)}")
    return PLACE


async def confirm_withdraw(visit: Visit, typed: FormFields) -> Question:
    """Names the client whose approval goes."""
    grants = (await visit.api.get("/api/auth/grants"))["grants"]
    name = next((each["clientName"] for each in grants if each["id"] == typed.get("id")), "it")
    goes = [f"What you allowed {name}: its tokens end at once.", "It can request approval again."]
    return Question(f"Revoke what {name} may do?", goes, "Remove", f"/dashboard{PLACE}")


async def withdraw(visit: Visit, typed: FormFields) -> str:
    """Takes an approval of a tool client back."""
    await visit.api.send("DELETE", f"/api/auth/grants/{_id(typed)}")
    return PLACE


async def make(visit: Visit, typed: FormFields) -> View:
    """Makes a static token, whose text is on this page alone."""
    made = await visit.api.send("POST", "/api/me/tokens", read_values((TOKEN,), typed))
    fields = {
        "made": made,
        "words": "It acts for you at /mcp until it is revoked.",
        "back": f"/dashboard{PLACE}",
        "title": "Your token",
    }
    return View("token_made.html", fields, status=201)


async def confirm_revoke(visit: Visit, typed: FormFields) -> Question:
    """Names the token that goes."""
    tokens = await read_all(visit.api, "/api/me/tokens", "items")
    name = next((each["name"] for each in tokens if each["id"] == typed.get("id")), "")
    goes = [f"The token {name}: requests with it will be refused at once. You cannot undo this."]
    return Question(f"Revoke the token {name}?", goes, "Revoke it", f"/dashboard{PLACE}")


async def revoke(visit: Visit, typed: FormFields) -> str:
    """Revokes a static token."""
    await visit.api.send("DELETE", f"/api/me/tokens/{_id(typed)}")
    return PLACE


async def show_password(visit: Visit) -> View:
    """The form of a new password."""
    form = make_form("change", (Group("Password", NEW_PASSWORD, is_open=True),), {}, visit.failure)
    return View("account_password.html", {"fields": form})


async def change_password(visit: Visit, typed: FormFields) -> str:
    """Changes the password; all other sessions end."""
    await visit.api.send("POST", "/api/auth/password", read_values(NEW_PASSWORD, typed))
    return PLACE


async def show_factor(visit: Visit) -> View:
    """Whether the second factor is on, and how to turn it on or off."""
    factor = await visit.api.get("/api/auth/2fa")
    action = visit.failure.action if visit.failure else "begin"
    form = make_form(action, (Group("Confirm", (CURRENT,), is_open=True),), {}, visit.failure)
    return View("second_factor.html", {"factor": factor, "fields": form, "enrolment": None})


async def begin(visit: Visit, typed: FormFields) -> View:
    """A fresh secret, and the form for a code of it."""
    made = await visit.api.send("POST", "/api/auth/2fa/enrol", read_values((CURRENT,), typed))
    return _enrolment_view(made["secret"], made["otpauthUri"], None)


async def confirm(visit: Visit, typed: FormFields) -> View:
    """Turns the second factor on. A wrong code leaves the secret where it is."""
    try:
        made = await visit.api.send("POST", "/api/auth/2fa/confirm", read_values((CODE,), typed))
    except Refused as error:
        failure = Failure("confirm", error.message, error.param or CODE.name, typed)
        return _enrolment_view(typed.get(SECRET, ""), typed.get(URI, ""), failure)
    return _codes_view(made["recoveryCodes"])


async def renew(visit: Visit, typed: FormFields) -> View:
    """Makes new recovery codes."""
    sent = read_values((CURRENT,), typed)
    made = await visit.api.send("POST", "/api/auth/2fa/recovery-codes", sent)
    return _codes_view(made["recoveryCodes"])


async def disable(visit: Visit, typed: FormFields) -> str:
    """Turns the second factor off."""
    await visit.api.send("POST", "/api/auth/2fa/disable", read_values((CURRENT,), typed))
    return f"{PLACE}/second-factor"


def _enrolment_view(secret: str, uri: str, failure: Failure | None) -> View:
    form = make_form(
        "confirm",
        (Group("A code of it", (CODE,), is_open=True),),
        {},
        failure,
        **{SECRET: secret, URI: uri},
    )
    enrolment = {"secret": secret, "uri": uri}
    fields: dict[str, Any] = {"factor": None, "fields": form, "enrolment": enrolment}
    return View("second_factor.html", fields, status=400 if failure else 200)


def _codes_view(codes: list[str]) -> View:
    return View("recovery_codes.html", {"codes": codes, "title": "Recovery codes"})


def _id(typed: FormFields) -> str:
    """An id as a segment of a path; one with a slash matches no route."""
    return typed.get("id") or "none"


PAGES = (
    Page(
        "account",
        "Your account",
        show,
        right="person",
        actions={
            "end": Action(end, "The session has ended."),
            "end-others": Action(end_others, "All other sessions have ended.", confirm_end_others),
            "withdraw": Action(withdraw, "The approval was revoked.", confirm_withdraw),
            "make": Action(make, "The token was made."),
            "revoke": Action(revoke, "The token was revoked.", confirm_revoke),
        },
    ),
    Page(
        "account/password",
        "Your password",
        show_password,
        right="person",
        actions={"change": Action(change_password, "The password was changed.")},
    ),
    Page(
        "account/second-factor",
        "Second factor",
        show_factor,
        right="person",
        actions={
            "begin": Action(begin, "Scan it."),
            "confirm": Action(confirm, "The second factor is on."),
            "renew": Action(renew, "New recovery codes were made."),
            "disable": Action(disable, "The second factor is off."),
        },
    ),
)

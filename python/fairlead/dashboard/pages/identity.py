"""People: who may sign in here, in which role."""

from __future__ import annotations

from typing import Any, Final

from fairlead.dashboard.api import not_there
from fairlead.dashboard.form import Field, Group, changed_values, make_form, read_values
from fairlead.dashboard.names import read_all
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.record import SEEN, check_unchanged

PLACE: Final = "/identity"
PASSWORD: Final = "currentPassword"  # noqa: S105 - the name of a field
ROLES: Final = (
    ("member", "member: own board, own account"),
    ("admin", "admin: manages the gateway"),
)
OWNER: Final = (("owner", "owner"),)
YOURS: Final = Field(
    PASSWORD, "Your password", "secret", "To change accounts, confirm your identity.", most=200
)


def _fields(roles: tuple[tuple[str, str], ...]) -> tuple[Field, ...]:
    return (
        Field("name", "Name", most=200, is_required=True, is_nullable=False),
        Field("email", "Address", most=254, is_required=True, example="name@example.org"),
        Field("role", "Role", "choice", options=roles),
    )


NEW: Final = (
    *_fields(ROLES),
    Field("password", "Password", "secret", "Empty: they sign in at the identity provider."),
    YOURS,
)
ACTIVE: Final = Field("isActive", "May sign in", "switch", "Off: all their sessions end at once.")


async def show_people(visit: Visit) -> View:
    """Everybody who has an account."""
    users = await read_all(visit.api, "/api/users", "users")
    wanted = visit.query.get("q", "").strip().lower()
    found = [each for each in users if wanted in f"{each['name']} {each['email']}".lower()]
    return View("people.html", {"users": found, "total": len(users), "wanted": wanted})


async def show_new(visit: Visit) -> View:
    """The form of a new account."""
    groups = (Group("Account", NEW, is_open=True),)
    form = make_form("create", groups, {"role": "member"}, visit.failure)
    return View("person.html", {"user": None, "fields": form, "title": "New person"})


async def show_person(visit: Visit) -> View:
    """An account and its form."""
    user = await _user(visit)
    groups = (Group("Account", _change_fields(user), is_open=True),)
    form = make_form("change", groups, user, visit.failure, **{SEEN: user["updatedAt"]})
    return View("person.html", {"user": user, "fields": form, "title": user["name"]})


async def create(visit: Visit, typed: FormFields) -> str:
    """Adds the account."""
    values = read_values(NEW, typed)
    sent = {name: value for name, value in values.items() if value is not None}
    user = await visit.api.send("POST", "/api/users", sent)
    return f"{PLACE}/{user['id']}"


async def change(visit: Visit, typed: FormFields) -> str:
    """Changes what differs."""
    user = await _user(visit)
    check_unchanged(user, typed)
    values = read_values(_change_fields(user), typed)
    password = values.pop(PASSWORD, None)
    changed: dict[str, Any] = changed_values(values, user)
    if changed:
        if password:
            changed[PASSWORD] = password
        await visit.api.send("PATCH", f"/api/users/{user['id']}", changed)
    return f"{PLACE}/{user['id']}"


async def confirm_delete(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with an account."""
    user = await _user(visit)
    goes = [
        f"The account of {user['name']} ({user['email']}).",
        "Their sessions, access tokens and approvals of tool clients, at once.",
        "Their changes stay in the audit log under their address.",
    ]
    page_url = f"/dashboard{PLACE}/{user['id']}"
    return Question(f"Remove {user['name']}?", goes, "Remove the account", page_url)


async def delete(visit: Visit, _typed: FormFields) -> str:
    """Removes the account."""
    await visit.api.send("DELETE", f"/api/users/{visit.params['user_id']}")
    return PLACE


def _change_fields(user: dict[str, Any]) -> tuple[Field, ...]:
    if user["role"] == "owner":
        # The owner's role stays, and the owner cannot be switched off.
        return (*_fields(OWNER), YOURS)
    return (*_fields(ROLES), ACTIVE, YOURS)


async def _user(visit: Visit) -> dict[str, Any]:
    users = await read_all(visit.api, "/api/users", "users")
    user = next((each for each in users if each["id"] == visit.params["user_id"]), None)
    if user is None:
        raise not_there("person")
    return user


PAGES = (
    Page("identity", "People", show_people, group="Access", rank=4, icon="people"),
    Page(
        "identity/new",
        "New person",
        show_new,
        actions={"create": Action(create, "The account was made.")},
    ),
    Page(
        "identity/{user_id}",
        "Person",
        show_person,
        actions={
            "change": Action(change, "The account was saved."),
            "delete": Action(delete, "The account was removed.", confirm_delete),
        },
    ),
)

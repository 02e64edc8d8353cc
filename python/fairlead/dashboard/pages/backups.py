"""Backups of the state: those that are kept, when they are made, how long they stay."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fairlead.dashboard import figures
from fairlead.dashboard.api import not_there
from fairlead.dashboard.form import Field, Group, changed_values, make_form, read_values
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.record import REVISION, change_settings

PLACE: Final = "/backups"
SCHEDULE: Final = (
    Field(
        "backupEveryHours",
        "One every",
        "whole",
        "0 turns the schedule off.",
        "hours",
        is_required=True,
    ),
    Field("backupKeepCount", "Keep newest", "whole", "1 to 1,000.", is_required=True),
    Field(
        "backupKeepDays",
        "For at most",
        "whole",
        "0 keeps them at any age; the newest always stays.",
        "days",
        is_required=True,
    ),
)
REASONS: Final = {
    "manual": "made by hand",
    "scheduled": "by schedule",
    "pre-restore": "before a restore",
}


async def show(visit: Visit) -> View:
    """Every backup, newest first, and the schedule."""
    answer, settings = await asyncio.gather(
        visit.api.get("/api/db-backups"), visit.api.get("/api/settings")
    )
    group = Group("Schedule and retention", SCHEDULE, is_open=True)
    revision = str(settings[REVISION])
    form = make_form("schedule", (group,), settings, visit.failure, **{REVISION: revision})
    fields = {
        "backups": answer["backups"],
        "size": sum(each["size"] for each in answer["backups"]),
        "reasons": REASONS,
        "every_hours": settings["backupEveryHours"],
        "fields": form,
    }
    return View("backups.html", fields)


async def make(visit: Visit, _typed: FormFields) -> str:
    """Makes a backup now."""
    await visit.api.send("PUT", "/api/db-backups")
    return PLACE


async def confirm_restore(visit: Visit, typed: FormFields) -> Question:
    """Names all that a restore replaces."""
    backup = await _backup(visit, typed)
    goes = [
        f"All of the state becomes that of {figures.moment(backup['createdAt'])} UTC.",
        "Keys, providers, combos, settings, people, their passwords and sessions are as they were.",
        "Everything created since then is lost, including keys. Usage and logs are kept.",
        "The current state is stored as a backup first, so that you can undo this.",
        "You may have to sign in again.",
    ]
    return Question("Restore this backup?", goes, "Put it back", f"/dashboard{PLACE}")


async def restore(visit: Visit, typed: FormFields) -> str:
    """Puts a backup back."""
    body = {"backupId": typed.get("backup", "")}
    await visit.api.send("POST", "/api/db-backups", body)
    return PLACE


async def confirm_delete(visit: Visit, typed: FormFields) -> Question:
    """Names the copy that goes."""
    backup = await _backup(visit, typed)
    goes = [
        f"The copy of {figures.moment(backup['createdAt'])} UTC ({figures.size(backup['size'])})."
    ]
    return Question("Delete this backup?", goes, "Delete it", f"/dashboard{PLACE}")


async def delete(visit: Visit, typed: FormFields) -> str:
    """Deletes a copy."""
    await visit.api.send("DELETE", f"/api/db-backups/{typed.get('backup') or 'none'}")
    return PLACE


async def change_schedule(visit: Visit, typed: FormFields) -> str:
    """Changes the settings that differ, over the revision that was shown."""
    settings = await visit.api.get("/api/settings")
    changed = changed_values(read_values(SCHEDULE, typed), settings)
    if changed:
        await change_settings(visit.api, changed, typed)
    return PLACE


async def _backup(visit: Visit, typed: FormFields) -> dict[str, Any]:
    backups: list[dict[str, Any]] = (await visit.api.get("/api/db-backups"))["backups"]
    found = next((each for each in backups if each["id"] == typed.get("backup")), None)
    if found is None:
        raise not_there("backup")
    return found


PAGES = (
    Page(
        "backups",
        "Backups",
        show,
        group="Operate",
        rank=3,
        icon="backups",
        actions={
            "make": Action(make, "The backup was made."),
            "restore": Action(
                restore,
                "The backup was restored; the state before it is the newest backup.",
                confirm_restore,
            ),
            "delete": Action(delete, "The backup was deleted.", confirm_delete),
            "schedule": Action(change_schedule, "The schedule is in force."),
        },
    ),
)

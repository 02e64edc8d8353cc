"""Settings: each with its meaning and default, in groups, as the list in the store has them."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from fairlead.dashboard.form import Field, Group, Kind, changed_values, make_form, read_values
from fairlead.dashboard.page import Action, FormFields, Page, View, Visit
from fairlead.dashboard.record import REVISION, change_settings
from fairlead.store.operator_settings import SECURITY_SETTINGS, OperatorSettings

MANAGERS_SHOWN: Final = "To change it, you need your password."
PASSWORD: Final = "currentPassword"  # noqa: S105 - the name of a field
# Groups by the beginning of a setting's name.
TITLES: Final = {
    "usage": "How long usage is kept",
    "webhook": "History",
    "backup": "Backups",
    "audit": "History",
    "guardrail": "Guardrails",
    "scrape": "Scraping",
    "storage": "Storage",
    "file": "Storage",
    "semantic": "Response cache",
    "vector": "Response cache",
    "compression": "Shorter conversations",
    "thinking": "Text and reasoning for models",
    "system": "Text and reasoning for models",
    "context": "Text and reasoning for models",
    "account": "Accounts",
    "unpriced": "Accounts",
    "capture": "Bodies of requests",
    "credential": "Scheduled checks of providers",
    "provider": "Scheduled checks of providers",
}
# Labels of settings whose name reads badly in its group.
LABELS: Final = {
    "usage_retention_days": "Requests",
    "usage_minute_retention_days": "Sums by the minute",
    "usage_hour_retention_days": "Sums by the hour",
    "usage_day_retention_days": "Sums by the day",
    "capture_bodies": "For every key",
    "capture_body_kb": "Maximum per body",
    "capture_mb": "All together",
    "capture_days": "For at most",
    "webhook_history_days": "Deliveries of webhooks",
    "audit_retention_days": "Audit log",
    "backup_every_hours": "One every",
    "backup_keep_count": "Keep newest",
    "backup_keep_days": "For at most",
    "backup_upload_mb": "An upload at most",
    "credential_probe_minutes": "Credentials, every",
    "credential_probe_jitter_percent": "Sooner or later by",
    "provider_usage_minutes": "Usage and balance, every",
}
SECURITY: Final = "Sign-in and security"
UNITS: Final = {
    "days": "days",
    "hours": "hours",
    "minutes": "minutes",
    "ms": "ms",
    "mb": "MiB",
    "kb": "KiB",
    "bytes": "bytes",
    "tokens": "tokens",
    "percent": "%",
}


async def show(visit: Visit) -> View:
    """Every setting with its value in force."""
    values = await visit.api.get("/api/settings")
    revision = str(values[REVISION])
    shown = {**values, **dict.fromkeys(_secrets(), "")}
    form = make_form("change", GROUPS, shown, visit.failure, **{REVISION: revision})
    return View("settings.html", {"fields": form, "revision": revision})


async def change(visit: Visit, typed: FormFields) -> str:
    """Changes what differs, over the revision that was shown."""
    values = await visit.api.get("/api/settings")
    fields = [field for group in GROUPS for field in group.fields]
    sent = read_values(fields, typed)
    password = sent.pop(PASSWORD, None)
    secrets = {name: value for name in _secrets() if (value := sent.pop(name, None))}
    changed: dict[str, Any] = {**changed_values(sent, values), **secrets}
    if changed:
        if password:
            changed[PASSWORD] = password
        await change_settings(visit.api, changed, typed)
    return "/settings"


def _groups() -> tuple[Group, ...]:
    """The fields of the store's list by their group, in its order."""
    by_title: dict[str, list[Field]] = {}
    for name, info in OperatorSettings.model_fields.items():
        title = SECURITY if name in SECURITY_SETTINGS else TITLES.get(name.split("_")[0], "Others")
        by_title.setdefault(title, []).append(_field(name, info))
    password = Field(PASSWORD, "Your password", "secret", "Needed to change one of these.")
    by_title[SECURITY].append(password)
    return tuple(
        Group(title, tuple(fields), is_open=True, hint=MANAGERS_SHOWN if title == SECURITY else "")
        for title, fields in by_title.items()
    )


def _field(name: str, info: FieldInfo) -> Field:
    first, _, last = name.rpartition("_")
    unit = UNITS.get(last, "")
    # Words that repeat the unit are left out.
    words = LABELS.get(name) or (first if unit else name).replace("_", " ").capitalize()
    for known, spelled in (
        ("ttl", "lifetime"),
        ("pii", "PII"),
        ("Oidc", "Single sign-on:"),
        ("Cors", "CORS"),
    ):
        words = words.replace(known, spelled)
    kind, options = _kind(name, info)
    hint = (
        (info.description or "").replace("`", "").replace(" Security: needs currentPassword.", "")
    )
    return Field(
        info.alias or name,
        words,
        kind,
        f"{hint} Default: {_default(info.default)}.",
        unit,
        options,
        is_required=kind in ("whole", "decimal"),
        is_nullable=info.default is None,
    )


def _kind(name: str, info: FieldInfo) -> tuple[Kind, tuple[tuple[str, str], ...]]:
    default = info.default
    if get_origin(info.annotation) is Literal:
        return "choice", tuple((each, each) for each in get_args(info.annotation))
    if name.startswith("system_prompt"):
        return "prose", ()
    if name == "oidc_client_secret":
        return "secret", ()
    if isinstance(default, bool):
        return "switch", ()
    if isinstance(default, int):
        return "whole", ()
    if isinstance(default, float):
        return "decimal", ()
    if isinstance(default, dict):
        return "pairs", ()
    return ("lines", ()) if isinstance(default, list) else ("text", ())


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if value in (None, "", [], {}):
        return "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _secrets() -> tuple[str, ...]:
    return tuple(
        field.name
        for group in GROUPS
        for field in group.fields
        if field.kind == "secret" and field.name != PASSWORD
    )


GROUPS: Final = _groups()

PAGES = (
    Page(
        "settings",
        "Settings",
        show,
        group="Operate",
        rank=4,
        icon="settings",
        actions={
            "change": Action(change, "The settings are saved and in force."),
        },
    ),
)

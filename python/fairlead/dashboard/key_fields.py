"""The form of a key: its fields in groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from fairlead import _core
from fairlead.dashboard.form import Field, Group
from fairlead.dashboard.in_force import PAUSE

DAYS: Final = (
    ("1", "Monday"),
    ("2", "Tuesday"),
    ("3", "Wednesday"),
    ("4", "Thursday"),
    ("5", "Friday"),
    ("6", "Saturday"),
    ("0", "Sunday"),
)
ENDPOINTS: Final = (
    ("chat", "Chat"),
    ("embeddings", "Embeddings"),
    ("images", "Images"),
    ("audio", "Audio"),
    ("video", "Video"),
    ("rerank", "Rerank"),
    ("moderations", "Moderations"),
    ("ocr", "OCR"),
    ("search", "Search"),
    ("models", "Lists of models"),
    ("files", "Files"),
    ("batches", "Batches"),
    ("scraping", "Scraping"),
    ("management", "Management"),
)
GUARDRAILS: Final = (
    ("pii-masker", "Personal data"),
    ("prompt-injection", "Prompt injection"),
    ("credential-masker", "Credentials"),
)
FAULTS: Final = (
    ("error", "An error of the provider's (502)"),
    ("overload", "Overloaded (503)"),
    ("rate-limit", "A rate limit (429)"),
    ("timeout", "A timeout (504)"),
    ("latency", "A late answer"),
)
TAGS: Final = Field("tags", "Tags", "lines", "Usage is found by them. One in a line.")
SCOPES: Final = (
    ("manage", "manage: everything except administrator settings"),
    ("admin", "admin: all of it"),
    *((str(each["scope"]), f"{each['scope']}: {each['summary']}") for each in _core.key_scopes()),
)


@dataclass(frozen=True, slots=True)
class Choices:
    """Records that a key's form offers."""

    combos: list[Any]
    connections: list[Any]
    teams: list[Any]


def groups_of(choices: Choices, *, is_pausable: bool) -> tuple[Group, ...]:
    """The whole record in groups."""
    combos, connections, teams = choices.combos, choices.connections, choices.teams
    spending = (*_SPENDING, _PAUSE) if is_pausable else _SPENDING
    return (
        _identity(teams),
        Group("Spending limits", spending, is_open=True),
        _models(combos),
        connection_access(connections),
        Group("Rate limits and schedule", _RATES_AND_SCHEDULE),
        Group("Permissions", _RIGHTS),
        Group("Fault injection", _FAULTS),
    )


def _identity(teams: list[Any]) -> Group:
    return Group(
        "Identity",
        (
            Field("name", "Name", most=200, is_required=True, example="support assistant"),
            Field("isActive", "Active", "switch", "Inactive keys are rejected."),
            Field("isBanned", "Banned", "switch", "Always refused, whatever else is allowed."),
            Field("expiresAt", "Expires", "moment", "Empty: never.", "UTC"),
            Field(
                "groupId",
                "Group",
                "choice",
                "Its limits and rules apply, too.",
                options=(("", "none"), *_team_options(teams)),
            ),
            TAGS,
        ),
        is_open=True,
    )


def _models(combos: list[Any]) -> Group:
    return Group(
        "Which models",
        (
            *model_access(combos),
            Field("forcedModel", "Always this model", hint="Whatever callers ask for."),
            Field("allowAutoCombos", "May use automatic combos", "switch"),
            Field("disableNonPublicModels", "Only models that are listed", "switch"),
            Field(
                "catalogScope",
                "Lists show",
                "choice",
                options=(
                    ("all", "models and combos"),
                    ("combos", "combos"),
                    ("models", "models"),
                ),
            ),
        ),
    )


def model_access(combos: list[Any]) -> tuple[Field, ...]:
    """The models and combos that the keys of a form may use."""
    return (
        Field(
            "modelAccessMode",
            "Models",
            "choice",
            options=(("all", "all but the blocked ones"), ("restricted", "only these")),
        ),
        Field("allowedModels", "Only these", "lines", "One in a line; * stands for any."),
        Field("blockedModels", "Never these", "lines", "One in a line; * stands for any."),
        Field(
            "allowedCombos",
            "Only these combos",
            "choices",
            options=tuple((each["name"], each["name"]) for each in combos),
        ),
    )


def connection_access(connections: list[Any]) -> Group:
    """Which connections the keys of a form may use."""
    return Group(
        "Which connections",
        (
            Field(
                "connectionAccessMode",
                "Connections",
                "choice",
                options=(("all", "all"), ("restricted", "only these")),
            ),
            Field(
                "allowedConnections",
                "Only these",
                "choices",
                options=tuple((each["id"], each["name"]) for each in connections),
            ),
        ),
    )


def spending_limits(time_zone: str) -> tuple[Field, ...]:
    """The limits of a key or a group; `time_zone` is the label of their time zone."""
    return (
        Field("dailyUsageLimitUsd", "Daily limit", "decimal", "Empty: no limit.", "USD"),
        Field("weeklyUsageLimitUsd", "Weekly limit", "decimal", "Empty: no limit.", "USD"),
        Field("monthlyUsageLimitUsd", "Monthly limit", "decimal", "Empty: no limit.", "USD"),
        Field("usageLimitTz", time_zone, example="Europe/Vienna"),
        Field(
            "usageAlertPercents",
            "Alert at",
            "lines",
            "One per line: 80 means 80 % of a limit. Empty: never.",
            "%",
        ),
    )


def inexpressible(otherwise: str, name: str = "inexpressible") -> Field:
    """The choice for members that a provider does not accept; `otherwise` is the label of no choice."""
    return Field(
        name,
        "Members that a provider does not accept",
        "choice",
        "Hints about sampling are always left out.",
        options=(("", otherwise), ("refuse", "refuse"), ("drop", "leave out")),
    )


_SPENDING: Final = spending_limits("Time zone of these")
_PAUSE: Final = Field(
    PAUSE, "Pause these limits", "switch", "They stay stored and are not enforced meanwhile."
)
RATE_LIMITS: Final = Field(
    "rateLimits", "Requests in a time", "lines", "One in a line: 100 / 60 is 100 in 60 seconds."
)
_RATES_AND_SCHEDULE: Final = (
    RATE_LIMITS,
    Field("maxSessions", "Sessions at once", "whole", "0 sets no limit."),
    Field("throttleDelayMs", "Each request waits", "whole", unit="ms"),
    Field("accessSchedule.enabled", "Only at certain times", "switch"),
    Field("accessSchedule.from", "From", example="08:00"),
    Field("accessSchedule.until", "Until", example="18:00"),
    Field("accessSchedule.tz", "Time zone", example="Europe/Vienna"),
    Field("accessSchedule.days", "On", "choices", options=DAYS),
)
_RIGHTS: Final = (
    Field("allowedEndpoints", "Kinds of call", "choices", "No selection: all.", options=ENDPOINTS),
    Field(
        "allowedProviderObjects",
        "Objects in the account at the provider",
        "lines",
        "Ids of vector stores, containers, prompts or files. One in a line; * stands for any.",
    ),
    Field(
        "scopes",
        "Parts of the management API",
        "choices",
        "No selection: no access.",
        options=SCOPES,
    ),
    Field("disabledGuardrails", "Guardrails that are not run", "choices", options=GUARDRAILS),
    Field("compressionEnabled", "Compress conversations, if compression is on", "switch"),
    Field("noLog", "Do not log requests", "switch", "They are still counted."),
    Field(
        "captureBodies",
        "Store requests and responses",
        "switch",
        "Masked and sealed, for some days; not for keys without a log.",
    ),
    Field("allowUsageCommand", "May query its own usage", "switch"),
    Field(
        "cacheDefaultMode",
        "Response cache",
        "choice",
        options=(("legacy", "used"), ("bypass", "passed by")),
    ),
    Field(
        "toolServiceMode",
        "Service tier of its conversations",
        "choice",
        options=(
            ("inherit", "as callers say"),
            ("default", "the usual one"),
            ("priority", "priority"),
            ("flex", "flex"),
        ),
    ),
    inexpressible("as its group or the connection says"),
)
_FAULTS: Final = (
    Field(
        "chaosModeEnabled",
        "Some calls are given faults in place of answers",
        "switch",
        "For trying how a program fares when a provider fails.",
    ),
    Field("chaosRate", "Share of calls", "decimal", "0.1 is one in ten."),
    Field("chaosFaults", "Which", "choices", options=FAULTS),
    Field("chaosLatencyMs", "Delay of faults with a delay", "whole", unit="ms"),
)


def _team_options(teams: list[Any]) -> tuple[tuple[str, str], ...]:
    """Groups by their ids, with the names of those above them."""
    return tuple(
        (team["id"], " / ".join([*(each["name"] for each in team["path"]), team["name"]]))
        for team in teams
    )

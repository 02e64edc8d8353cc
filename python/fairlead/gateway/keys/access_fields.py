"""Fields that keys and groups of keys share: access and limits."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, StrictInt
from pydantic_core import PydanticCustomError

from fairlead.errors import InvalidRequest
from fairlead.gateway.fields import ModelId, Spelled, Text
from fairlead.wire import Wire

# Files among the zones whose meaning depends on the machine.
_NO_ZONES = frozenset({"localtime", "posixrules", "Factory"})


def _canonical_uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise PydanticCustomError("uuid", "must be a UUID") from None


def _known_zone(name: str) -> str:
    try:
        if name in _NO_ZONES:
            raise ValueError
        ZoneInfo(name)
    except (ValueError, KeyError, OSError):
        raise PydanticCustomError(
            "zone", "must be a time zone's name, such as Europe/Vienna or UTC"
        ) from None
    return name


def _distinct_tags(tags: list[str]) -> list[str]:
    if len(set(tags)) != len(tags):
        raise PydanticCustomError("tags", "must name each tag once")
    return tags


def _distinct_percents(percents: list[int]) -> list[int]:
    if len(set(percents)) != len(percents):
        raise PydanticCustomError("percents", "must name each percent once")
    return percents


NO_CONTROLS = Spelled(r"[^\x00-\x1f\x7f]+", "must be without control characters")
ComboName = Annotated[Text, Field(min_length=1, max_length=200), NO_CONTROLS]
ConnectionId = Annotated[Text, AfterValidator(_canonical_uuid)]
GroupId = Annotated[Text, AfterValidator(_canonical_uuid)]
Tag = Annotated[
    Text,
    Field(min_length=1, max_length=64),
    Spelled(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*", "must be letters, digits and ._:/@- after the first"),
]
Zone = Annotated[Text, Field(min_length=1, max_length=64), AfterValidator(_known_zone)]
PositiveInt = Annotated[StrictInt, Field(ge=1, le=2**53 - 1)]


# Stored as integer micro-dollars, so six decimals count.
def _not_below_a_micro(usd: float) -> float:
    if 0 < usd < 1e-6:
        raise PydanticCustomError("usd", "must be 0 or at least 0.000001")
    return usd


Usd = Annotated[
    float,
    Field(strict=True, ge=0, le=1e9, allow_inf_nan=False),
    AfterValidator(_not_below_a_micro),
]


Tags = Annotated[list[Tag], AfterValidator(_distinct_tags)]
AlertPercents = Annotated[
    list[Annotated[StrictInt, Field(ge=1, le=100)]], AfterValidator(_distinct_percents)
]


class RateLimit(Wire):
    """At most `limit` requests in each `window` seconds."""

    limit: PositiveInt
    window: PositiveInt


class AccessFields(Wire):
    """The access and limits of a key, or of all keys of a group together."""

    model_access_mode: Literal["all", "restricted"] = "all"
    allowed_models: list[ModelId] = Field([], max_length=1000)
    blocked_models: list[ModelId] = Field([], max_length=1000)
    allowed_combos: list[ComboName] = Field([], max_length=500)
    connection_access_mode: Literal["all", "restricted"] = "all"
    allowed_connections: list[ConnectionId] = Field([], max_length=100)
    rate_limits: Annotated[list[RateLimit], Field(max_length=50)] | None = None
    daily_usage_limit_usd: Usd | None = None
    weekly_usage_limit_usd: Usd | None = None
    monthly_usage_limit_usd: Usd | None = None
    usage_limit_tz: Zone = Field(
        "UTC",
        description="The time zone (IANA name) whose days, weeks and months the limits in USD count.",
    )
    usage_alert_percents: AlertPercents = Field(
        [50, 80, 100],
        max_length=10,
        description="The percentages of each limit in USD at which the event `budget.reached` is sent, "
        "once in each window; empty: no alerts.",
    )
    tags: Tags = Field(
        [],
        max_length=20,
        description="Labels for finding usage. A key has those of its groups as well.",
    )


def check_access(record: AccessFields) -> None:
    """Checks the rules between the shared fields; `InvalidRequest` names the field to change."""
    if record.model_access_mode == "all" and record.allowed_models:
        raise InvalidRequest(
            "allowedModels must be empty while modelAccessMode is `all`; "
            "send modelAccessMode `restricted` with it.",
            param="allowedModels",
        )
    if record.connection_access_mode == "all" and record.allowed_connections:
        raise InvalidRequest(
            "allowedConnections must be empty while connectionAccessMode is `all`; "
            "send connectionAccessMode `restricted` with it.",
            param="allowedConnections",
        )
    if record.connection_access_mode == "restricted" and not record.allowed_connections:
        raise InvalidRequest(
            "allowedConnections must name at least one connection "
            "while connectionAccessMode is `restricted`.",
            param="allowedConnections",
        )

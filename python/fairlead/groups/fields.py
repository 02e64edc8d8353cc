"""The fields of a group that a caller may set: types, bounds, defaults, and the rules between them."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool

from fairlead.errors import InvalidRequest
from fairlead.gateway.fields import ModelId, Name
from fairlead.gateway.keys.fields import (
    AlertPercents,
    ComboName,
    ConnectionId,
    GroupId,
    PositiveInt,
    RateLimit,
    Tags,
    Usd,
    Zone,
)
from fairlead.wire import ChangeWire, Wire

RequestAction = Literal["off", "warn", "redact", "block"]


class TokenBudget(Wire):
    """At most `limit` tokens in each day, week or month, of the group's time zone."""

    limit: PositiveInt
    interval: Literal["daily", "weekly", "monthly"]


class RequestGuardrails(Wire):
    """The least that is done about what a request holds."""

    pii_masker: RequestAction = "off"
    prompt_injection: Literal["off", "warn", "block"] = "off"
    credential_masker: RequestAction = "off"


class AnswerGuardrails(Wire):
    """The least that is done about what an answer holds."""

    pii_masker: RequestAction = "off"
    credential_masker: RequestAction = "off"


class GroupGuardrails(Wire):
    """The least that guardrails do, on requests and on answers: of the settings, the group and the groups above it the
    strictest word holds. No key and no call opts out of what a group asks for.
    """

    request: RequestGuardrails = RequestGuardrails()
    answer: AnswerGuardrails = AnswerGuardrails()


class GroupFields(Wire):
    """Everything but the name."""

    parent_id: GroupId | None = Field(
        None, description="The group above it; three levels at most. Null: it is a topmost one."
    )
    is_active: StrictBool = Field(
        True, description="While it is off, its keys and those of the groups below are refused."
    )
    tags: Tags = Field(
        [],
        max_length=20,
        description="Labels for finding usage of its keys, in addition to the keys' tags.",
    )
    model_access_mode: Literal["all", "restricted"] = "all"
    allowed_models: list[ModelId] = Field([], max_length=1000)
    blocked_models: list[ModelId] = Field([], max_length=1000)
    allowed_combos: list[ComboName] = Field([], max_length=500)
    connection_access_mode: Literal["all", "restricted"] = "all"
    allowed_connections: list[ConnectionId] = Field([], max_length=100)
    guardrails: GroupGuardrails = GroupGuardrails()
    inexpressible: Literal["refuse", "drop"] | None = Field(
        None,
        description="How requests of its keys with members that the provider does not accept are handled, if "
        "leaving them out changes the answer: `refuse` answers 400, `drop` leaves them out. Null: as the group "
        "above says, else the connection. A key's own `inexpressible` takes precedence.",
    )
    rate_limits: Annotated[list[RateLimit], Field(max_length=50)] | None = Field(
        None, description="Requests of all its keys together."
    )
    token_limits: Annotated[list[TokenBudget], Field(max_length=3)] | None = Field(
        None, description="Tokens of all its keys together, input and output."
    )
    daily_usage_limit_usd: Usd | None = Field(None, description="All its keys together.")
    weekly_usage_limit_usd: Usd | None = Field(None, description="All its keys together.")
    monthly_usage_limit_usd: Usd | None = Field(None, description="All its keys together.")
    usage_limit_tz: Zone = Field(
        "UTC",
        description="The time zone (IANA name) whose days, weeks and months its limits count.",
    )
    usage_alert_percents: AlertPercents = Field(
        [50, 80, 100],
        max_length=10,
        description="The percentages of each limit in USD at which the event `budget.reached` is sent, "
        "once in each window; empty: no alerts.",
    )


class NewGroup(GroupFields):
    """The body that makes a group, and the settable part of a stored one."""

    name: Name

    def changed(self, change: GroupChange) -> Self:
        """This record with the fields that `change` contains."""
        return self.model_copy(update=change.sent())


class GroupChange(GroupFields, ChangeWire):
    """The body that changes a group: any of the fields, at least one."""

    name: Name = ""


def check_rules(group: GroupFields) -> None:
    """Checks the rules between fields on the whole record; `InvalidRequest` names the field to change."""
    if group.model_access_mode == "all" and group.allowed_models:
        raise InvalidRequest(
            "allowedModels must be empty while modelAccessMode is `all`; "
            "send modelAccessMode `restricted` with it.",
            param="allowedModels",
        )
    if group.connection_access_mode == "all" and group.allowed_connections:
        raise InvalidRequest(
            "allowedConnections must be empty while connectionAccessMode is `all`; "
            "send connectionAccessMode `restricted` with it.",
            param="allowedConnections",
        )
    if group.connection_access_mode == "restricted" and not group.allowed_connections:
        raise InvalidRequest(
            "allowedConnections must name at least one connection "
            "while connectionAccessMode is `restricted`.",
            param="allowedConnections",
        )
    intervals = [each.interval for each in group.token_limits or ()]
    if len(set(intervals)) < len(intervals):
        raise InvalidRequest(
            "tokenLimits must name each interval once; send the lower limit alone.",
            param="tokenLimits",
        )

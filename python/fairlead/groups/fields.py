"""The fields of a group that a caller may set: types, bounds, defaults, and the rules between them."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool

from fairlead.errors import InvalidRequest
from fairlead.gateway.fields import Name
from fairlead.gateway.keys.access_fields import AccessFields, GroupId, PositiveInt, check_access
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


class GroupFields(AccessFields):
    """Everything but the name."""

    parent_id: GroupId | None = Field(
        None, description="The group above it; three levels at most. Null: it is a topmost one."
    )
    is_active: StrictBool = Field(
        True, description="While it is off, its keys and those of the groups below are refused."
    )
    guardrails: GroupGuardrails = GroupGuardrails()
    inexpressible: Literal["refuse", "drop"] | None = Field(
        None,
        description="How requests of its keys with members that the provider does not accept are handled, if "
        "leaving them out changes the answer: `refuse` answers 400, `drop` leaves them out. Null: as the group "
        "above says, else the connection. A key's own `inexpressible` takes precedence.",
    )
    token_limits: Annotated[list[TokenBudget], Field(max_length=3)] | None = Field(
        None, description="Tokens of all its keys together, input and output."
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
    check_access(group)
    intervals = [each.interval for each in group.token_limits or ()]
    if len(set(intervals)) < len(intervals):
        raise InvalidRequest(
            "tokenLimits must name each interval once; send the lower limit alone.",
            param="tokenLimits",
        )

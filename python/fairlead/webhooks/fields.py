"""Bodies of `/api/webhooks`, and their rules."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import (
    BeforeValidator,
    Field,
    StrictBool,
    StrictInt,
    model_validator,
)
from pydantic_core import PydanticCustomError

from fairlead import _core
from fairlead.events import CATALOGUE, EVERY
from fairlead.moment import EPOCH, LATEST
from fairlead.wire import ChangeWire, Wire

EVENTS_MAX: Final = 100
KEEP_HOURS_MAX: Final = 168


def _check_events(value: object) -> object:
    if not isinstance(value, list) or not value or len(value) > EVENTS_MAX:
        raise PydanticCustomError(
            "events", "must be a list of 1 to {most} events", {"most": EVENTS_MAX}
        )
    known = CATALOGUE["gateway"]
    for name in value:
        if not isinstance(name, str) or (name != EVERY and name not in known):
            raise PydanticCustomError(
                "event",
                "must name events of this list: {names}, or * for all",
                {"names": ", ".join(known)},
            )
    if len(set(value)) != len(value):
        raise PydanticCustomError("events", "must name each event once")
    return value


def _check_secret(value: object) -> object:
    try:
        if isinstance(value, str):
            _core.sign_webhook([value], "check", 0, b"")
            return value
    except ValueError:
        pass
    # The value is not in the error: it may be a secret of something else.
    raise PydanticCustomError(
        "secret",
        "must be `whsec_` and the base64 of 24 to 64 bytes; leave it out to have one made",
    )


def _check_name(value: object) -> object:
    if isinstance(value, str) and value.strip() and value.isprintable() and len(value) <= 200:
        return value
    raise PydanticCustomError("name", "must be 1 to 200 printable characters")


def _check_moment(value: object) -> object:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not EPOCH <= moment <= LATEST:
        raise PydanticCustomError(
            "moment",
            "must be an ISO 8601 date and time with a time zone, such as 2027-01-31T12:00:00Z",
        )
    return moment


Url = Annotated[str, Field(strict=True, min_length=1, max_length=2048)]
Events = Annotated[list[str], BeforeValidator(_check_events)]
Secret = Annotated[str, BeforeValidator(_check_secret)]
Name = Annotated[str, BeforeValidator(_check_name)]
Moment = Annotated[datetime, BeforeValidator(_check_moment)]


class NewWebhook(Wire):
    """The body that makes a subscription."""

    url: Url = Field(description="The listener: http or https.")
    events: Events = Field(description="Names of events, or `*`.")
    secret: Secret | None = Field(None, description="Left out, one is made.")
    active: StrictBool = True
    name: Name | None = None


class WebhookChange(ChangeWire):
    """The body that changes a subscription: any of the fields, at least one. `active` true enables
    it again, whatever disabled it.
    """

    url: Url = ""
    events: Events = Field([], description="Names of events, or `*`.")
    secret: Secret = Field("", description="Replaces all others at once.")
    active: StrictBool = True
    name: Name | None = None


class Rotation(Wire):
    """How a secret is replaced: deliveries are signed with the old ones too for a while."""

    secret: Secret | None = Field(None, description="Left out, one is made.")
    keep_previous_hours: StrictInt = Field(24, ge=0, le=KEEP_HOURS_MAX)


class Redelivery(Wire):
    """Which deliveries go out again: one by its id, or those that were queued in a range."""

    delivery_id: Annotated[str, Field(strict=True, min_length=1, max_length=64)] | None = None
    from_: Moment | None = Field(None, alias="from", description="Inclusive.")
    to: Moment | None = Field(None, description="Exclusive; now, if left out.")
    state: Literal["failed", "delivered", "any"] = "failed"

    @model_validator(mode="after")
    def _names_something(self) -> Redelivery:
        if (self.delivery_id is None) == (self.from_ is None):
            raise PydanticCustomError(
                "redelivery", "must have either deliveryId, or from and perhaps to"
            )
        return self

"""Webhooks of the generative service in the form of Google's clients: snake_case."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr
from pydantic_core import PydanticCustomError

from fairlead.errors import InvalidRequest
from fairlead.events import EVERY, SERVICE_EVENTS
from fairlead.moment import iso, moment_of
from fairlead.records.webhook_endpoints import Endpoint, SecretPreview
from fairlead.webhooks.fields import Name, Url
from fairlead.webhooks.history import Attempt, Delivery

PAGE: Final = 50
PAGE_MAX: Final = 1000
DAY_MS: Final = 86_400_000

MUTABLE: Final = ("name", "uri", "subscribed_events", "state")
# Fields that an answer shows and that cannot be changed: clients send them back.
SHOWN_ONLY: Final = frozenset(
    {"id", "create_time", "update_time", "signing_secrets", "new_signing_secret"}
)


def _check_events(value: object) -> object:
    if not isinstance(value, list) or not value:
        raise PydanticCustomError("events", "must be a list of at least one event")
    for name in value:
        if not isinstance(name, str) or (name != EVERY and name not in SERVICE_EVENTS):
            raise PydanticCustomError(
                "event",
                "must name events of this list: {names}, or * for all",
                {"names": ", ".join(SERVICE_EVENTS)},
            )
    if len(set(value)) != len(value):
        raise PydanticCustomError("events", "must name each event once")
    return value


def _without_shown(body: object) -> object:
    if not isinstance(body, dict):
        return body
    return {name: value for name, value in body.items() if name not in SHOWN_ONLY}


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


Events = Annotated[list[StrictStr], BeforeValidator(_check_events)]


class NewServiceWebhook(BaseModel):
    """The body that makes a webhook."""

    model_config = ConfigDict(extra="forbid")

    uri: Url = Field(description="The listener: http or https.")
    subscribed_events: Events
    name: Name | None = None


class ServiceWebhookChange(BaseModel):
    """The body that changes a webhook. Members that are shown and cannot be changed are ignored."""

    model_config = ConfigDict(extra="forbid")

    uri: Url = ""
    subscribed_events: Events = []
    name: Name | None = None
    state: Annotated[Literal["enabled", "disabled"], BeforeValidator(_lower)] = "enabled"


ServiceWebhookUpdate = Annotated[ServiceWebhookChange, BeforeValidator(_without_shown)]


class ServiceRotation(BaseModel):
    """The treatment of earlier secrets at a rotation."""

    model_config = ConfigDict(extra="forbid")

    revocation_behavior: Annotated[
        Literal["revoke_previous_secrets_after_h24", "revoke_previous_secrets_immediately"],
        BeforeValidator(_lower),
    ] = "revoke_previous_secrets_after_h24"

    @property
    def keep_ms(self) -> int:
        """Milliseconds for which the earlier secrets stay in force."""
        return DAY_MS if self.revocation_behavior.endswith("h24") else 0


def fields_to_change(mask: str | None, change: ServiceWebhookChange) -> set[str]:
    """The names of an update mask; without one, the fields that were sent. `InvalidRequest` for a
    name that cannot be changed, or one that must have a value and has none.
    """
    sent = change.model_fields_set
    if mask is None or not mask.strip():
        named = set(sent)
    elif mask.strip() == "*":
        named = set(MUTABLE) & sent
    else:
        named = {_snake(each.strip()) for each in mask.split(",")}
        if unknown := sorted(named - set(MUTABLE)):
            raise InvalidRequest(
                f"update_mask names {unknown[0][:64]}, which cannot be changed: name, uri, "
                "subscribed_events and state can.",
                param="update_mask",
            )
        if missing := sorted(named - sent - {"name"}):
            raise InvalidRequest(
                f"update_mask names {missing[0]}, and the body does not have it: add it.",
                param=missing[0],
            )
    if not named:
        raise InvalidRequest(
            "There is nothing to change: send name, uri, subscribed_events or state."
        )
    return named


def _snake(name: str) -> str:
    return "subscribed_events" if name == "subscribedEvents" else name


def show_service_webhook(
    endpoint: Endpoint, secrets: Sequence[SecretPreview], new_secret: str | None = None
) -> dict[str, Any]:
    """A webhook in the API's form; `new_secret` only when it is made."""
    shown: dict[str, Any] = {
        "id": endpoint.id,
        "uri": endpoint.url,
        "subscribed_events": endpoint.events,
        "state": endpoint.state,
        "signing_secrets": [_show_secret(each) for each in secrets],
        "create_time": iso(moment_of(endpoint.created_at_ms)),
        "update_time": iso(moment_of(endpoint.updated_at_ms)),
    }
    if endpoint.name is not None:
        shown["name"] = endpoint.name
    if new_secret is not None:
        shown["new_signing_secret"] = new_secret
    return shown


def _show_secret(secret: SecretPreview) -> dict[str, str]:
    shown = {"truncated_secret": f"whsec_...{secret.tail}"}
    if secret.expires_at_ms is not None:
        shown["expire_time"] = iso(moment_of(secret.expires_at_ms))
    return shown


def show_service_delivery(delivery: Delivery, attempts: Sequence[Attempt]) -> dict[str, Any]:
    """A delivery with its attempts, in the API's form."""
    finished_at_ms = delivery.finished_at_ms
    return {
        "id": delivery.id,
        "webhook_id": delivery.message_id,
        "type": delivery.event,
        "state": delivery.state,
        "create_time": iso(moment_of(delivery.created_at_ms)),
        "finish_time": None if finished_at_ms is None else iso(moment_of(finished_at_ms)),
        "attempts": [
            {
                "number": each.number,
                "time": iso(moment_of(each.at_ms)),
                "status": each.status,
                "error": each.error,
                "latency_ms": each.latency_ms,
            }
            for each in attempts
        ],
    }


def make_page_token(endpoint: Endpoint) -> str:
    """The token from which a list continues; opaque to clients."""
    text = f"{endpoint.created_at_ms}:{endpoint.id}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_page_token(token: str | None) -> tuple[int, str] | None:
    """The webhook after which a list continues; `InvalidRequest` for a token that is not ours."""
    if not token:
        return None
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("ascii")
        at_ms, _, endpoint_id = text.partition(":")
        if len(token) <= 200 and at_ms.isdigit() and int(at_ms) < 2**62 and endpoint_id:
            return int(at_ms), endpoint_id
    except (binascii.Error, ValueError):
        pass
    raise InvalidRequest(
        "page_token must be the next_page_token of the page before.", param="page_token"
    )

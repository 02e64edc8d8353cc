"""Webhooks in the API's form: of secrets only the last characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field, StrictBool

from fairlead.events import CATALOGUE
from fairlead.moment import Time, moment_of
from fairlead.records.webhook_endpoints import Endpoint, SecretPreview
from fairlead.webhooks.history import Attempt, Delivery
from fairlead.wire import Wire


class SecretView(Wire):
    preview: str
    created_at: Time
    expires_at: Time | None = Field(description="Until when deliveries are signed with it too.")


class WebhookView(Wire):
    id: str
    name: str | None
    url: str
    events: list[str]
    active: bool
    state: str = Field(description="`enabled`, `disabled`, or `disabled_due_to_failed_deliveries`.")
    disabled_reason: str | None
    failing_since: Time | None = Field(description="First failure after the last success.")
    secrets: list[SecretView]
    created_at: Time
    updated_at: Time


class OneWebhook(Wire):
    webhook: WebhookView


class NewSecret(Wire):
    """A webhook with its secret, which is shown this once."""

    webhook: WebhookView
    secret: str


class WebhookList(Wire):
    webhooks: list[WebhookView]
    total: int
    limit: int
    offset: int


class EventView(Wire):
    name: str
    summary: str
    data: dict[str, str] = Field(description="Members of `data` in the body, and what they are.")


class EventList(Wire):
    events: list[EventView]


class AttemptView(Wire):
    number: int
    at: Time
    latency_ms: float
    status: int | None
    error_kind: str | None


class DeliveryView(Wire):
    """`status`, `errorKind` and `latencyMs` are of the last attempt."""

    id: str
    message_id: str = Field(description="The `webhook-id` of the delivery.")
    event: str
    state: str = Field(description="`pending`, `delivered` or `failed`.")
    status: int | None
    error_kind: str | None
    latency_ms: float | None
    created_at: Time
    next_attempt_at: Time | None
    finished_at: Time | None
    attempts: list[AttemptView]
    body: str | None = Field(
        description="The body as it was sent; only if `deliveryId` names one delivery."
    )


class DeliveryList(Wire):
    deliveries: list[DeliveryView]
    total: int
    limit: int
    offset: int
    next: str | None = Field(
        description="What `after` takes for the page that follows; null at the end."
    )


class TestView(Wire):
    delivered: StrictBool
    status: int | None
    error_kind: str | None
    error: str | None = Field(
        None,
        description="The failure, with the receiver's scheme, host and port; null if delivered.",
    )
    latency_ms: float
    delivery_id: str
    message_id: str


class Requeued(Wire):
    requeued: int = Field(description="How many deliveries are on their way again.")


def show_events() -> EventList:
    """The catalogue of gateway subscriptions."""
    return EventList.model_construct(
        events=[
            EventView.model_construct(name=each.name, summary=each.summary, data=dict(each.data))
            for each in CATALOGUE["gateway"].values()
        ]
    )


def show_webhook(endpoint: Endpoint, secrets: Sequence[SecretPreview]) -> WebhookView:
    """A subscription in the API's form."""
    since_ms = endpoint.failing_since_ms
    return WebhookView.model_construct(
        id=endpoint.id,
        name=endpoint.name,
        url=endpoint.url,
        events=endpoint.events,
        active=endpoint.state == "enabled",
        state=endpoint.state,
        disabled_reason=endpoint.reason,
        failing_since=None if since_ms is None else moment_of(since_ms),
        secrets=[
            SecretView.model_construct(
                preview=f"whsec_...{each.tail}",
                created_at=moment_of(each.created_at_ms),
                expires_at=_moment(each.expires_at_ms),
            )
            for each in secrets
        ],
        created_at=moment_of(endpoint.created_at_ms),
        updated_at=moment_of(endpoint.updated_at_ms),
    )


def show_delivery(
    delivery: Delivery, attempts: Sequence[Attempt], body: str | None = None
) -> DeliveryView:
    """A delivery in the API's form."""
    is_pending = delivery.state == "pending"
    return DeliveryView.model_construct(
        id=delivery.id,
        message_id=delivery.message_id,
        event=delivery.event,
        state=delivery.state,
        status=delivery.status,
        error_kind=delivery.error,
        latency_ms=delivery.latency_ms,
        created_at=moment_of(delivery.created_at_ms),
        next_attempt_at=moment_of(delivery.next_attempt_at_ms) if is_pending else None,
        finished_at=_moment(delivery.finished_at_ms),
        attempts=[
            AttemptView.model_construct(
                number=each.number,
                at=moment_of(each.at_ms),
                latency_ms=each.latency_ms,
                status=each.status,
                error_kind=each.error,
            )
            for each in attempts
        ],
        body=body,
    )


def _moment(at_ms: int | None) -> Any:
    return None if at_ms is None else moment_of(at_ms)

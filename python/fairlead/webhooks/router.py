"""`/api/webhooks`: subscriptions to the gateway's events, their deliveries, tests and secrets."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query

from fairlead import _core
from fairlead.errors import Conflict, InvalidRequest, NotFound
from fairlead.moment import now_ms
from fairlead.net.egress import Egress
from fairlead.net.host import AddressRefused
from fairlead.records.webhook_endpoints import (
    Endpoint,
    SecretChange,
    count_endpoints,
    delete_endpoint,
    find_endpoint,
    insert_endpoint,
    list_endpoints,
    new_endpoint,
    rotate_secret,
    secret_previews,
    update_endpoint,
)
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.webhooks.delivery_page import DeliveryPage, next_of
from fairlead.webhooks.fields import NewWebhook, Redelivery, Rotation, WebhookChange
from fairlead.webhooks.history import (
    attempts_of,
    body_of,
    find_delivery,
    list_deliveries,
)
from fairlead.webhooks.ping import ping
from fairlead.webhooks.redelivery import redeliver as again
from fairlead.webhooks.views import (
    DeliveryList,
    EventList,
    NewSecret,
    OneWebhook,
    Requeued,
    TestView,
    WebhookList,
    WebhookView,
    show_delivery,
    show_events,
    show_webhook,
)
from fairlead.wire import Limit, Offset, Success

router = APIRouter(prefix="/api/webhooks", tags=["webhooks"])

ENDPOINTS_MAX: Final = 500
HOUR_MS: Final = 3_600_000


@router.get("", summary="List webhook subscriptions")
async def list_all(services: ServicesDep, limit: Limit = 50, offset: Offset = 0) -> WebhookList:
    """A page of subscriptions, oldest first."""

    def read_page(con: Connection) -> tuple[list[WebhookView], int]:
        found = list_endpoints(con, "gateway", limit, offset)
        secrets = secret_previews(con, [each.id for each in found], now_ms())
        views = [show_webhook(each, secrets.get(each.id, ())) for each in found]
        return views, count_endpoints(con, "gateway")

    webhooks, total = await services.state.read(read_page)
    return WebhookList.model_construct(webhooks=webhooks, total=total, limit=limit, offset=offset)


@router.post(
    "",
    status_code=201,
    summary="Make a webhook subscription; its secret is shown only in this answer",
)
async def create(new: NewWebhook, services: ServicesDep) -> NewSecret:
    """Makes a subscription; its secret is sealed."""
    url = await _checked_url(services.egress, new.url)
    secret = new.secret or _core.new_webhook_secret()
    endpoint = new_endpoint("gateway", url, new.events, now_ms(), name=new.name, enabled=new.active)

    def insert(con: Connection) -> WebhookView:
        if count_endpoints(con, "gateway") >= ENDPOINTS_MAX:
            raise Conflict(f"There are {ENDPOINTS_MAX} webhooks, the most: delete one first.")
        insert_endpoint(con, services.state.sealer, endpoint, secret)
        return _view(con, endpoint)

    return NewSecret.model_construct(webhook=await services.state.record(insert), secret=secret)


@router.get("/events", summary="The events that can be subscribed to, with their payloads")
async def events() -> EventList:
    """The catalogue."""
    return show_events()


@router.get("/{webhook_id}", summary="One webhook subscription")
async def read(webhook_id: str, services: ServicesDep) -> OneWebhook:
    """The subscription's record."""
    view = await services.state.read(lambda con: _view(con, _found(con, webhook_id)))
    return OneWebhook.model_construct(webhook=view)


@router.put("/{webhook_id}", summary="Change a webhook; other fields keep their value")
async def change(webhook_id: str, change: WebhookChange, services: ServicesDep) -> OneWebhook:
    """Changes the sent fields. If you disable it, waiting deliveries are kept, and sent if you enable it within a
    day.
    """
    sent = change.model_fields_set
    columns: dict[str, Any] = {name: getattr(change, name) for name in sent & {"events", "name"}}
    if "url" in sent:
        columns["url"] = await _checked_url(services.egress, change.url)

    def update(con: Connection) -> WebhookView:
        before = _found(con, webhook_id)
        at_ms = max(now_ms(), before.updated_at_ms + 1)
        after = replace(before, **columns, updated_at_ms=at_ms)
        if "active" in sent:
            after = _switched(after, enabled=change.active)
        elif "url" in sent:
            # Failures of the old listener say nothing of the new one.
            after = replace(after, failing_since_ms=None, not_before_ms=0)
        update_endpoint(con, after)
        if "secret" in sent:
            sealer = services.state.sealer
            rotate_secret(con, sealer, after.id, SecretChange(change.secret, 0, at_ms))
        return _view(con, after)

    return OneWebhook.model_construct(webhook=await services.state.record(update))


@router.delete("/{webhook_id}", summary="Delete a webhook, what waits for it, and its history")
async def delete(webhook_id: str, services: ServicesDep) -> Success:
    """Deletes the subscription. After this returns, only deliveries in progress are still sent."""

    def delete_row(con: Connection) -> None:
        delete_endpoint(con, _found(con, webhook_id).id)

    await services.state.record(delete_row)
    return Success()


@router.get("/{webhook_id}/deliveries", summary="Deliveries with their attempts, newest first")
async def deliveries(
    webhook_id: str,
    services: ServicesDep,
    state: Annotated[Literal["pending", "delivered", "failed"] | None, Query()] = None,
    delivery_id: Annotated[str | None, Query(alias="deliveryId", max_length=64)] = None,
    *,
    page: DeliveryPage,
) -> DeliveryList:
    """A page of the history, or the one delivery that `deliveryId` names, with its body."""

    def read_page(con: Connection) -> DeliveryList:
        if delivery_id is not None:
            return _one_delivery(con, _found(con, webhook_id).id, delivery_id)
        found, total = list_deliveries(con, _found(con, webhook_id).id, state, page)
        attempts = attempts_of(con, [each.id for each in found])
        return DeliveryList.model_construct(
            deliveries=[show_delivery(each, attempts.get(each.id, ())) for each in found],
            total=total,
            limit=page.limit,
            offset=page.offset,
            next=next_of(page, found),
        )

    return await services.state.read(read_page)


@router.post("/{webhook_id}/test", summary="Send `test.ping` now, once, and say how it went")
async def test(webhook_id: str, services: ServicesDep) -> TestView:
    """Sends a test, also to a webhook that is switched off. It is in the history, and is not
    repeated.
    """
    tested = await ping(services, lambda con: _found(con, webhook_id))
    return TestView.model_construct(
        delivered=tested.answer.error is None,
        status=tested.answer.status,
        error_kind=tested.answer.error,
        error=tested.failure,
        latency_ms=tested.answer.latency_ms,
        delivery_id=tested.delivery_id,
        message_id=tested.message_id,
    )


@router.post("/{webhook_id}/rotate-secret", summary="Make a new secret; the old ones fade out")
async def rotate(webhook_id: str, rotation: Rotation, services: ServicesDep) -> NewSecret:
    """Deliveries carry a signature of each secret that counts; `keepPreviousHours` 0 ends the old
    ones at once.
    """
    secret = rotation.secret or _core.new_webhook_secret()
    sealer = services.state.sealer

    def store_secret(con: Connection) -> WebhookView:
        endpoint = _found(con, webhook_id)
        at_ms = max(now_ms(), endpoint.updated_at_ms + 1)
        keep_ms = rotation.keep_previous_hours * HOUR_MS
        rotate_secret(con, sealer, endpoint.id, SecretChange(secret, keep_ms, at_ms))
        after = replace(endpoint, updated_at_ms=at_ms)
        update_endpoint(con, after)
        return _view(con, after)

    return NewSecret.model_construct(
        webhook=await services.state.record(store_secret), secret=secret
    )


@router.post("/{webhook_id}/redeliver", summary="Send one delivery, or a range of them, again")
async def redeliver(webhook_id: str, redelivery: Redelivery, services: ServicesDep) -> Requeued:
    """Messages, ids and bodies stay, signatures are new, and the tries last another day."""

    def requeue(con: Connection) -> int:
        return again(con, _found(con, webhook_id), redelivery)

    return Requeued(requeued=await services.state.record(requeue))


def _one_delivery(con: Connection, endpoint_id: str, delivery_id: str) -> DeliveryList:
    delivery = find_delivery(con, endpoint_id, delivery_id)
    if delivery is None:
        raise NotFound("The webhook has no delivery with this id.", param="deliveryId")
    attempts = attempts_of(con, [delivery.id]).get(delivery.id, [])
    view = show_delivery(delivery, attempts, body_of(con, delivery.message_id))
    return DeliveryList.model_construct(deliveries=[view], total=1, limit=1, offset=0, next=None)


async def _checked_url(egress: Egress, url: str) -> str:
    try:
        return await egress.check_target(url)
    except AddressRefused as error:
        raise InvalidRequest(f"url {error}.", param="url") from None


def _switched(endpoint: Endpoint, *, enabled: bool) -> Endpoint:
    if not enabled:
        return replace(endpoint, state="disabled", reason=None)
    return replace(endpoint, state="enabled", reason=None, failing_since_ms=None, not_before_ms=0)


def _found(con: Connection, webhook_id: str) -> Endpoint:
    endpoint = find_endpoint(con, "gateway", webhook_id)
    if endpoint is None:
        raise NotFound("There is no webhook with this id.", param="id")
    return endpoint


def _view(con: Connection, endpoint: Endpoint) -> WebhookView:
    secrets = secret_previews(con, [endpoint.id], now_ms())
    return show_webhook(endpoint, secrets.get(endpoint.id, ()))

"""`/v1/webhooks`: webhooks of the generative service, in the words of Google's clients.

A webhook belongs to the key that made it, and gets events of that key's jobs; other keys get 404. Bodies are in
snake_case, errors in Google's format.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Body, Depends, Query
from starlette.responses import JSONResponse

from fairlead import _core
from fairlead.calls.caller import CallerDep
from fairlead.errors import Conflict, InvalidRequest, NotFound, Unauthenticated
from fairlead.moment import now_ms
from fairlead.net.egress import Egress
from fairlead.net.host import AddressRefused
from fairlead.records.signing_keys import public_keys
from fairlead.records.webhook_endpoints import (
    Endpoint,
    SecretChange,
    count_endpoints,
    delete_endpoint,
    find_endpoint,
    insert_endpoint,
    list_endpoints_after,
    new_endpoint,
    rotate_secret,
    secret_previews,
    update_endpoint,
)
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.webhooks.delivery_page import DeliveryPage, next_of
from fairlead.webhooks.fields import Redelivery
from fairlead.webhooks.history import attempts_of, list_deliveries
from fairlead.webhooks.ping import ping
from fairlead.webhooks.redelivery import redeliver
from fairlead.webhooks.service_wire import (
    PAGE,
    PAGE_MAX,
    NewServiceWebhook,
    ServiceRotation,
    ServiceWebhookUpdate,
    fields_to_change,
    make_page_token,
    read_page_token,
    show_service_delivery,
    show_service_webhook,
)

WEBHOOKS_MAX: Final = 100
VERSION: Final = {"version": "v1"}
# The lifetime that verifiers usually cache keys for.
KEYS_MAX_AGE_S: Final = 3600

keys_router = APIRouter(tags=["webhooks"])


async def _owner(caller: CallerDep) -> str:
    principal = caller.principal
    if principal.kind != "key" or principal.id is None:
        raise Unauthenticated("These webhooks belong to an API key: send `x-goog-api-key`.")
    return principal.id


OwnerDep = Annotated[str, Depends(_owner)]


async def create(new: NewServiceWebhook, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """Makes a webhook. `new_signing_secret` is in this answer only."""
    url = await _checked_uri(services.egress, new.uri)
    secret = _core.new_webhook_secret()
    endpoint = new_endpoint(
        "service", url, new.subscribed_events, now_ms(), owner=owner, name=new.name
    )

    def insert(con: Connection) -> dict[str, Any]:
        if count_endpoints(con, "service", owner) >= WEBHOOKS_MAX:
            raise Conflict(f"This key has {WEBHOOKS_MAX} webhooks, the most: delete one first.")
        insert_endpoint(con, services.state.sealer, endpoint, secret)
        return _shown(con, endpoint, secret)

    return await services.state.record(insert)


async def list_all(
    services: ServicesDep,
    owner: OwnerDep,
    page_size: Annotated[int, Query(ge=0, le=2**31)] = 0,
    page_token: Annotated[str | None, Query(max_length=400)] = None,
) -> dict[str, Any]:
    """A page of webhooks, oldest first; of a larger page than there may be, as much as may."""
    after = read_page_token(page_token)
    size = min(page_size or PAGE, PAGE_MAX)

    def read_page(con: Connection) -> dict[str, Any]:
        found = list_endpoints_after(con, "service", owner, after, size + 1)
        shown = found[:size]
        secrets = secret_previews(con, [each.id for each in shown], now_ms())
        return {
            "webhooks": [show_service_webhook(each, secrets.get(each.id, ())) for each in shown],
            "next_page_token": make_page_token(shown[-1]) if len(found) > size else "",
        }

    return await services.state.read(read_page)


async def read(webhook_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """The webhook's record."""
    return await services.state.read(lambda con: _shown(con, _found(con, owner, webhook_id)))


async def change(
    webhook_id: str,
    change: ServiceWebhookUpdate,
    services: ServicesDep,
    owner: OwnerDep,
    update_mask: Annotated[str | None, Query(max_length=400)] = None,
    camel_mask: Annotated[str | None, Query(alias="updateMask", max_length=400)] = None,
) -> dict[str, Any]:
    """Changes what the mask names, or what was sent where there is none. Enabled again, what waits
    goes out.
    """
    named = fields_to_change(update_mask or camel_mask, change)
    columns: dict[str, Any] = {}
    if "name" in named:
        columns["name"] = change.name
    if "subscribed_events" in named:
        columns["events"] = change.subscribed_events
    if "uri" in named:
        columns["url"] = await _checked_uri(services.egress, change.uri)
    if "state" in named:
        columns |= {"state": change.state, "reason": None}
    if "uri" in named or columns.get("state") == "enabled":
        # Failures of the old listener say nothing of the new one.
        columns |= {"failing_since_ms": None, "not_before_ms": 0}

    def update(con: Connection) -> dict[str, Any]:
        before = _found(con, owner, webhook_id)
        after = replace(before, **columns, updated_at_ms=_later(before))
        update_endpoint(con, after)
        return _shown(con, after)

    return await services.state.record(update)


async def delete(webhook_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """Deletes the webhook, what waits for it and its history."""

    def delete_row(con: Connection) -> None:
        delete_endpoint(con, _found(con, owner, webhook_id).id)

    await services.state.record(delete_row)
    return {}


async def send_test(
    webhook_id: str,
    services: ServicesDep,
    owner: OwnerDep,
    _body: Annotated[dict[str, Any] | None, Body()] = None,
) -> dict[str, Any]:
    """Sends `test.ping` now, once, also to a webhook that is disabled. How it went is in the
    history.
    """
    await ping(services, lambda con: _found(con, owner, webhook_id), VERSION)
    return {}


async def rotate(
    webhook_id: str,
    services: ServicesDep,
    owner: OwnerDep,
    rotation: Annotated[ServiceRotation | None, Body()] = None,
) -> dict[str, Any]:
    """Makes a secret, which is shown only in this answer. Deliveries carry a signature of each that
    counts.
    """
    secret = _core.new_webhook_secret()
    keep_ms = (rotation or ServiceRotation()).keep_ms
    sealer = services.state.sealer

    def store_secret(con: Connection) -> None:
        endpoint = _found(con, owner, webhook_id)
        at_ms = _later(endpoint)
        rotate_secret(con, sealer, endpoint.id, SecretChange(secret, keep_ms, at_ms))
        update_endpoint(con, replace(endpoint, updated_at_ms=at_ms))

    await services.state.record(store_secret)
    return {"secret": secret}


async def deliveries(
    webhook_id: str,
    services: ServicesDep,
    owner: OwnerDep,
    state: Annotated[Literal["pending", "delivered", "failed"] | None, Query()] = None,
    *,
    page: DeliveryPage,
) -> dict[str, Any]:
    """A page of the history with its attempts, newest first. `next` is null at its end."""

    def read_page(con: Connection) -> dict[str, Any]:
        endpoint = _found(con, owner, webhook_id)
        found, total = list_deliveries(con, endpoint.id, state, page)
        attempts = attempts_of(con, [each.id for each in found])
        return {
            "deliveries": [
                show_service_delivery(each, attempts.get(each.id, ())) for each in found
            ],
            "total": total,
            "next": next_of(page, found),
        }

    return await services.state.read(read_page)


async def send_again(
    webhook_id: str, redelivery: Redelivery, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """Sends one delivery, or a range of them, again: the same messages with the same ids."""

    def requeue(con: Connection) -> int:
        return redeliver(con, _found(con, owner, webhook_id), redelivery)

    return {"requeued": await services.state.record(requeue)}


@keys_router.get("/.well-known/jwks.json", summary="The keys that tokens of webhooks verify with")
async def jwks(services: ServicesDep) -> JSONResponse:
    """A JWK set; empty until a job has named its own webhook."""
    keys = await services.state.read(lambda con: public_keys(con, now_ms()))
    headers = {"cache-control": f"public, max-age={KEYS_MAX_AGE_S}"}
    return JSONResponse({"keys": keys}, headers=headers)


def _router(prefix: str) -> APIRouter:
    router = APIRouter(prefix=prefix, tags=["webhooks"])
    add = router.add_api_route
    version = prefix.strip("/").replace("/", "_")
    for method, path, act, summary in (
        ("POST", "", create, "Make a webhook for the key's jobs"),
        ("GET", "", list_all, "List the key's webhooks"),
        ("POST", "/{webhook_id}:ping", send_test, "Send a test event now"),
        ("POST", "/{webhook_id}:rotateSigningSecret", rotate, "Make a new signing secret"),
        ("POST", "/{webhook_id}/rotate_secret", rotate, "Make a new signing secret"),
        ("POST", "/{webhook_id}:redeliver", send_again, "Send one or a range again"),
        ("GET", "/{webhook_id}/deliveries", deliveries, "Deliveries, newest first"),
        ("GET", "/{webhook_id}", read, "One webhook"),
        ("PATCH", "/{webhook_id}", change, "Change a webhook"),
        ("DELETE", "/{webhook_id}", delete, "Delete a webhook with its history"),
    ):
        spelled = "_alias" if path.endswith("rotate_secret") else ""
        name = f"{version}_{act.__name__}{spelled}"
        add(path, act, methods=[method], name=name, operation_id=name, summary=summary)
    return router


ROUTERS: tuple[APIRouter, ...] = (_router("/v1/webhooks"), _router("/v1beta/webhooks"), keys_router)


async def _checked_uri(egress: Egress, uri: str) -> str:
    try:
        return await egress.check_target(uri)
    except AddressRefused as error:
        raise InvalidRequest(f"uri {error}.", param="uri") from None


def _later(endpoint: Endpoint) -> int:
    return max(now_ms(), endpoint.updated_at_ms + 1)


def _found(con: Connection, owner: str, webhook_id: str) -> Endpoint:
    endpoint = find_endpoint(con, "service", webhook_id, owner)
    if endpoint is None:
        raise NotFound("There is no webhook with this id.", param="id")
    return endpoint


def _shown(con: Connection, endpoint: Endpoint, new_secret: str | None = None) -> dict[str, Any]:
    secrets = secret_previews(con, [endpoint.id], now_ms())
    return show_service_webhook(endpoint, secrets.get(endpoint.id, ()), new_secret)

"""Videos in Google's words: `predictLongRunning` and its operation. One belongs to the key that began it."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Response

from fairlead.bill import bill
from fairlead.gateway.files.contents import new_id
from fairlead.gateway.google import named_model
from fairlead.gateway.owner import OwnerDep
from fairlead.gateway.videos.fields import VideoAsk
from fairlead.gateway.videos.lanes import Lane, lanes_for
from fairlead.gateway.videos.provider import begin
from fairlead.gateway.videos.runner import VideoRunner
from fairlead.gateway.videos.table import (
    Operation,
    check_room,
    find_operation,
    insert_operation,
)
from fairlead.gateway.videos.view import operation_view
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.service_jobs import WebhookConfig, checked_uris, insert_job
from fairlead.store.services import ServicesDep
from fairlead.store.signing_keys import ensure_signing_key

WINDOW_MS: Final = 6 * 3_600_000
"""How long a provider has; the slowest take minutes."""


async def predict(
    model: str, ask: VideoAsk, services: ServicesDep, owner: OwnerDep, head: Response
) -> dict[str, Any]:
    """By a connection in Gemini's dialect that serves the model. `webhookConfig` says who is told of
    its end in place of the key's webhooks (`/v1/webhooks`).
    """
    model, sealer = named_model(model), services.state.sealer
    hooks = ask.webhook_config or WebhookConfig()
    uris = await checked_uris(services.egress, hooks, "webhookConfig")
    if uris:
        await ensure_signing_key(services.state)

    def look(con: Connection) -> list[Lane]:
        check_room(con, owner)
        return lanes_for(con, sealer, owner, model)

    lane, name = await begin(await services.state.read(look), ask.for_provider())
    at_ms = now_ms()
    operation = Operation(
        new_id(""), owner, model, lane.connection_id, name, None, None, at_ms, at_ms + WINDOW_MS,
        None,
    )  # fmt: skip

    def work(con: Connection) -> None:
        insert_operation(con, operation)
        if ask.webhook_config is not None:
            insert_job(con, owner, operation.id, uris, hooks.user_metadata, at_ms)

    await services.state.record(work)
    VideoRunner.of(services).wake()
    head.headers.update(bill(lane.provider, lane.usd_micros_per_second * ask.seconds()))
    return operation_view(operation)


async def read(
    model: str, operation_id: str, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """How far it is, and once it has ended where its videos are read, with the key."""
    model = named_model(model)
    return operation_view(
        await services.state.read(lambda con: find_operation(con, operation_id, owner, model))
    )


router = APIRouter(tags=["video"])
for _version in ("v1", "v1beta"):
    router.add_api_route(
        f"/{_version}/models/{{model:path}}:predictLongRunning",
        predict,
        methods=["POST"],
        name=f"{_version}_predict",
        operation_id=f"{_version}_predict",
        summary="Begin a video",
    )
    router.add_api_route(
        f"/{_version}/models/{{model:path}}/operations/{{operation_id}}",
        read,
        methods=["GET"],
        name=f"{_version}_video_operation",
        operation_id=f"{_version}_video_operation",
        summary="How far a video is",
    )

"""Videos in Google's words: `predictLongRunning` and its operation. One belongs to the key that began it."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response

from fairlead.calls.cost_header import lane_cost_header
from fairlead.calls.origin import public_base
from fairlead.gateway.files.contents import new_id
from fairlead.gateway.google import google_router, named_model
from fairlead.gateway.owner import OwnerDep
from fairlead.gateway.videos.creation import NewVideo, start_video
from fairlead.gateway.videos.fields import GoogleVideoRequest
from fairlead.gateway.videos.provider import google_request
from fairlead.gateway.videos.table import find_operation
from fairlead.gateway.videos.targets import CHOICE_HEADER, read_choice, targets_of
from fairlead.gateway.videos.view import operation_view
from fairlead.records.service_jobs import Subscribers, WebhookConfig, checked_uris
from fairlead.records.signing_keys import ensure_signing_key
from fairlead.store.services import ServicesDep


async def predict(
    model: str,
    body: GoogleVideoRequest,
    request: Request,
    services: ServicesDep,
    owner: OwnerDep,
    head: Response,
) -> dict[str, Any]:
    """Uses a connection in Gemini's dialect that serves the model. `webhookConfig` names webhooks that replace the
    key's webhooks (`/v1/webhooks`).
    """
    model, sealer = named_model(model), services.state.sealer
    choice = read_choice(request.headers.get(CHOICE_HEADER, ""))
    hooks = body.webhook_config or WebhookConfig()
    uris = await checked_uris(services.egress, hooks, "webhookConfig")
    if uris:
        await ensure_signing_key(services.state)

    targets = await services.state.read(lambda con: targets_of(con, sealer, choice))
    subscribers = None if body.webhook_config is None else Subscribers(uris, hooks.user_metadata)
    video = NewVideo(new_id(""), owner, model, google_request(body.for_provider()))
    operation, index = await start_video(services, targets, video, subscribers)
    head.headers.update(lane_cost_header(index))
    return operation_view(operation, public_base(services.config, request))


async def read(
    model: str, operation_id: str, request: Request, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """How far it is, and once it has ended where its videos are read, with the key."""
    model = named_model(model)
    operation = await services.state.read(
        lambda con: find_operation(con, operation_id, owner, model)
    )
    return operation_view(operation, public_base(services.config, request))


_MODEL = "/models/{model:path}"
router = google_router(
    "video",
    (
        ("POST", f"{_MODEL}:predictLongRunning", predict, "predict", "Start a video"),
        (
            "GET",
            f"{_MODEL}/operations/{{operation_id}}",
            read,
            "video_operation",
            "The progress of a video",
        ),
    ),
)

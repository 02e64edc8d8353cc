"""`/v1beta/interactions`: background responses in Google's API, with their webhooks."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Any, Final

from fastapi import Body, Header, Query
from starlette.responses import Response

from fairlead.calls.own_relay import COUNTED
from fairlead.errors import InvalidRequest
from fairlead.gateway.google import google_router
from fairlead.gateway.interactions.fields import InteractionRequest
from fairlead.gateway.interactions.stream import live_frames, number_of, stored_frames
from fairlead.gateway.interactions.translation import as_response
from fairlead.gateway.interactions.view import interaction_view
from fairlead.gateway.owner import OwnerDep
from fairlead.gateway.responses.background import background_responses
from fairlead.gateway.responses.background_request import background_request
from fairlead.gateway.responses.creation import event_stream
from fairlead.gateway.responses.events import stored_events
from fairlead.gateway.responses.ownership import (
    cancel_response,
    delete_owned_response,
    read_response,
    read_with_events,
)
from fairlead.gateway.responses.relay_call import headers_for
from fairlead.moment import now_ms
from fairlead.records.service_jobs import Subscribers, WebhookConfig, checked_uris, insert_job
from fairlead.records.signing_keys import ensure_signing_key
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep

ANSWER_WITHIN_S: Final = 50.0
"""How long an interaction that is not in the background is waited for: less than the relay waits for control."""


async def create(
    interaction: InteractionRequest,
    services: ServicesDep,
    owner: OwnerDep,
    counted: Annotated[str | None, Header(alias=COUNTED, include_in_schema=False)] = None,
) -> Any:
    """With `background` it is answered at once, and read later. Without, it is answered when it has ended, or
    after 50 s as it is then: read it until it has ended. With `stream` the answer is its events as they arrive,
    with `background` or without. `webhook_config` names webhooks that replace the key's webhooks
    (`/v1/webhooks`).
    """
    hooks = interaction.webhook_config or WebhookConfig()
    body = as_response(interaction)
    uris = await checked_uris(services.egress, hooks, "webhook_config")
    if uris:
        await ensure_signing_key(services.state)
    subscribers = Subscribers(uris, hooks.user_metadata)

    def note(con: Connection, response_id: str) -> None:
        insert_job(con, owner, response_id, subscribers, now_ms())

    headers = headers_for(services, owner, {} if counted is None else {COUNTED: counted})
    job_request = await asyncio.to_thread(background_request, body)
    job = await background_responses(services).begin(f"key:{owner}", job_request, headers, note)
    if interaction.stream:
        return event_stream(live_frames(job, -1))
    if not interaction.background:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_WITHIN_S):
                await job.wait_until_finished()
    return interaction_view(job.response, body["model"])


async def read(
    interaction_id: str,
    services: ServicesDep,
    owner: OwnerDep,
    stream: Annotated[bool, Query()] = False,
    last_event_id: Annotated[str | None, Query(max_length=300)] = None,
) -> Any:
    """The interaction as it is now. With `stream` its events, as they come, after the one of `last_event_id`."""
    if last_event_id is not None and not stream:
        raise InvalidRequest("last_event_id needs stream=true.", param="last_event_id")
    key_owner = f"key:{owner}"
    if not stream:
        return interaction_view(*await read_response(services, key_owner, interaction_id))
    after = number_of(last_event_id)
    if (job := await background_responses(services).find(interaction_id, key_owner)) is not None:
        return event_stream(live_frames(job, after))
    stored, events = await read_with_events(services, key_owner, interaction_id)

    def frames() -> bytes:
        return stored_frames(stored_events(stored.response, events), stored.model, after)

    # Serialising many events would block the event loop.
    return Response(await asyncio.to_thread(frames), media_type="text/event-stream")


async def cancel(
    interaction_id: str,
    services: ServicesDep,
    owner: OwnerDep,
    _body: Annotated[dict[str, Any] | None, Body()] = None,
) -> dict[str, Any]:
    """The interaction as it is then; one that has ended stays as it is."""
    return interaction_view(*await cancel_response(services, f"key:{owner}", interaction_id))


async def delete(interaction_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """One that is worked on is cancelled first."""
    await delete_owned_response(services, f"key:{owner}", interaction_id)
    return {}


_ONE = "/interactions/{interaction_id}"
router = google_router(
    "interactions",
    (
        ("POST", "/interactions", create, "interaction_create", "Start an interaction"),
        ("GET", _ONE, read, "interaction_read", "One interaction"),
        ("POST", f"{_ONE}/cancel", cancel, "interaction_cancel", "Stop an interaction"),
        ("POST", f"{_ONE}:cancel", cancel, "interaction_cancel_short", "Stop an interaction"),
        ("DELETE", _ONE, delete, "interaction_delete", "Delete an interaction"),
    ),
)

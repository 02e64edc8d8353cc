"""`/v1/responses/{id}`: responses that were kept for the caller."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from fairlead.errors import InvalidRequest
from fairlead.gateway.list_ends import list_ends
from fairlead.gateway.responses.background import background_responses
from fairlead.gateway.responses.creation import event_stream
from fairlead.gateway.responses.events import frame, stored_events
from fairlead.gateway.responses.intake import read_stored
from fairlead.gateway.responses.items import input_items
from fairlead.gateway.responses.owner import OwnerDep
from fairlead.gateway.responses.ownership import (
    cancel_response,
    delete_owned_response,
    read_with_events,
)
from fairlead.gateway.responses.table import find_response
from fairlead.moment import now_ms
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/v1/responses", tags=["responses"])

ResponseId = Annotated[str, Path(min_length=1, max_length=300)]


@router.get("/{response_id}", summary="One stored response")
async def read(
    response_id: ResponseId,
    owner: OwnerDep,
    services: ServicesDep,
    stream: bool = False,
    starting_after: Annotated[int | None, Query(ge=0)] = None,
) -> Response:
    """The response, or its current state while it is in progress; 404 if it belongs to another caller, was
    deleted, has expired or was not stored. With `stream` its events, as they come, after the one of the number
    `starting_after`.
    """
    if starting_after is not None and not stream:
        raise InvalidRequest("starting_after needs stream=true.", param="starting_after")
    after = -1 if starting_after is None else starting_after
    if (job := await background_responses(services).find(response_id, owner)) is not None:
        if stream:
            return event_stream(job.frames(after))
        return Response(orjson.dumps(job.response), media_type="application/json")

    if not stream:
        stored = await read_stored(
            services, lambda con: find_response(con, response_id, owner, now_ms())
        )
        return Response(stored.response, media_type="application/json")
    stored, events = await read_with_events(services, owner, response_id)
    # Serialising many events would block the event loop.
    frames = await asyncio.to_thread(_frames, stored.response, events, after)
    return Response(frames, media_type="text/event-stream")


def _frames(response: str, events: str | None, after: int) -> bytes:
    found = stored_events(response, events)
    return b"".join(frame(event) for event in found if event["sequence_number"] > after)


@router.delete("/{response_id}", summary="Delete a stored response")
async def delete(response_id: ResponseId, owner: OwnerDep, services: ServicesDep) -> dict[str, Any]:
    """Deletes the response. Conversations that continue it cannot be continued any more."""
    await delete_owned_response(services, owner, response_id)
    return {"id": response_id, "object": "response", "deleted": True}


@router.post("/{response_id}/cancel", summary="Cancel a response that works in the background")
async def cancel(response_id: ResponseId, owner: OwnerDep, services: ServicesDep) -> Response:
    """The response in its current state. A response that has ended does not change; a response that does not run
    in the background is refused.
    """
    response, _ = await cancel_response(services, owner, response_id)
    return Response(orjson.dumps(response), media_type="application/json")


@router.get("/{response_id}/input_items", summary="List the input of a stored response")
async def list_input_items(
    response_id: ResponseId,
    owner: OwnerDep,
    services: ServicesDep,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    after: Annotated[str | None, Query(max_length=300)] = None,
) -> dict[str, Any]:
    """The items of that request alone, the last one first unless asked otherwise."""
    stored = await read_stored(
        services, lambda con: find_response(con, response_id, owner, now_ms())
    )
    items = await asyncio.to_thread(input_items, stored)
    if order == "desc":
        items.reverse()
    if after is not None:
        places = [at for at, item in enumerate(items) if item["id"] == after]
        if not places:
            raise InvalidRequest("`after` is not the id of an item.", param="after")
        items = items[places[0] + 1 :]
    page = items[:limit]
    ends = list_ends([item["id"] for item in page])
    return {"object": "list", "data": page, **ends, "has_more": len(items) > limit}

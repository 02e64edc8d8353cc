"""`/v1/responses/{id}`: responses that were kept for the caller."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from fairlead.caller import CallerDep
from fairlead.errors import InvalidRequest
from fairlead.gateway.responses.items import input_items
from fairlead.gateway.responses.table import find, forget
from fairlead.moment import now_ms
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/v1/responses", tags=["responses"])

ResponseId = Annotated[str, Path(min_length=1, max_length=300)]


def _owner(caller: CallerDep) -> str:
    return f"{caller.principal.kind}:{caller.principal.id or ''}"


@router.get("/{response_id}", summary="One response that was kept")
async def read(response_id: ResponseId, caller: CallerDep, services: ServicesDep) -> Response:
    """The response as it was told; 404 for one that is another's, deleted, expired or was never kept."""
    owner = _owner(caller)
    kept = await services.state.read(lambda con: find(con, response_id, owner, now_ms()))
    return Response(kept.response, media_type="application/json")


@router.delete("/{response_id}", summary="Delete a response that was kept")
async def delete(
    response_id: ResponseId, caller: CallerDep, services: ServicesDep
) -> dict[str, Any]:
    """The response is gone, and so is what went on from it for whoever would go on further."""
    owner = _owner(caller)
    await services.state.record(lambda con: forget(con, response_id, owner, now_ms()))
    return {"id": response_id, "object": "response", "deleted": True}


@router.post("/{response_id}/cancel", summary="Cancel a response that works in the background")
async def cancel(response_id: ResponseId, caller: CallerDep, services: ServicesDep) -> Response:
    """Always refused: a response is kept once it has ended, for none works in the background."""
    owner = _owner(caller)
    kept = await services.state.read(lambda con: find(con, response_id, owner, now_ms()))
    status = orjson.loads(kept.response).get("status", "completed")
    raise InvalidRequest(
        f"The response is {status}: only one that works in the background can be cancelled."
    )


@router.get("/{response_id}/input_items", summary="What the request of a kept response said")
async def list_input_items(
    response_id: ResponseId,
    caller: CallerDep,
    services: ServicesDep,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    after: Annotated[str | None, Query(max_length=300)] = None,
) -> dict[str, Any]:
    """The items of that request alone, the last one first unless asked otherwise."""
    owner = _owner(caller)
    kept = await services.state.read(lambda con: find(con, response_id, owner, now_ms()))
    items = input_items(kept)
    if order == "desc":
        items.reverse()
    if after is not None:
        places = [at for at, item in enumerate(items) if item["id"] == after]
        if not places:
            raise InvalidRequest("`after` is not the id of an item.", param="after")
        items = items[places[0] + 1 :]
    page = items[:limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(items) > limit,
    }

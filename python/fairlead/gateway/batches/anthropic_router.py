"""`/v1/messages/batches`, in Anthropic's API. The requests of a batch run as every other batch's do."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Header, Query
from starlette.requests import Request
from starlette.responses import Response

from fairlead.calls.origin import public_base
from fairlead.errors import InvalidRequest, NotFound
from fairlead.gateway.batches.anthropic_fields import BODY_SCHEMA, ENDPOINT, input_of
from fairlead.gateway.batches.anthropic_view import anthropic_view
from fairlead.gateway.batches.inline import delete_ended, store_inline
from fairlead.gateway.batches.runner import BatchRunner
from fairlead.gateway.batches.table import (
    Batch,
    BatchPage,
    begin_cancel,
    find_batch_in,
    list_batches,
    new_batch,
)
from fairlead.gateway.files.content_answer import content_answer
from fairlead.gateway.files.contents import contents_of, new_id
from fairlead.gateway.list_ends import list_ends
from fairlead.gateway.owner import OwnerDep
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep

router = APIRouter(prefix="/v1/messages/batches", tags=["batches"])

DIALECT: Final = "anthropic"
BETAS_MAX_CHARS: Final = 1024

BatchId = Annotated[str | None, Query(max_length=64)]


@router.post(
    "",
    summary="Run many messages requests within a day",
    openapi_extra={"requestBody": BODY_SCHEMA},
)
async def create(
    request: Request,
    services: ServicesDep,
    owner: OwnerDep,
    betas: Annotated[str | None, Header(alias="anthropic-beta", max_length=BETAS_MAX_CHARS)] = None,
) -> dict[str, Any]:
    """`requests` has `{"custom_id", "params"}` for each request; `params` is the body of `POST /v1/messages`.
    The beta features of `anthropic-beta` apply to each of them.
    """
    # Parsing a long body would block the event loop.
    content, total = await asyncio.to_thread(input_of, await request.body())
    batch = new_batch(
        now_ms(),
        id=new_id("msgbatch_"),
        owner=owner,
        endpoint=ENDPOINT,
        input_file_id=new_id("file-"),
        dialect=DIALECT,
        is_inline=True,
        total=total,
        betas=betas or None,
    )
    await store_inline(services, batch, content)
    BatchRunner.of(services).wake()
    return _view(services, request, batch)


@router.get("", summary="The caller's message batches")
async def batches(
    request: Request,
    services: ServicesDep,
    owner: OwnerDep,
    before_id: BatchId = None,
    after_id: BatchId = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> dict[str, Any]:
    """Newest first. `after_id` asks for those that follow a batch in the list, `before_id` for those in front of it."""
    if before_id is not None and after_id is not None:
        raise InvalidRequest("before_id and after_id exclude each other.", param="before_id")
    page = BatchPage(DIALECT, after_id or before_id, limit, is_backwards=before_id is not None)
    try:
        found, has_more = await services.state.read(lambda con: list_batches(con, owner, page))
    except InvalidRequest:
        name = "before_id" if before_id is not None else "after_id"
        raise InvalidRequest(f"{name} must be the id of a batch of yours.", param=name) from None
    return {
        "data": [_view(services, request, batch) for batch in found],
        "has_more": has_more,
        **list_ends([batch.id for batch in found]),
    }


@router.get("/{batch_id}", summary="One message batch")
async def batch(
    batch_id: str, request: Request, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """The batch's status and counts, and once it has ended the address of its results."""
    return _view(services, request, await _find(services, batch_id, owner))


@router.post("/{batch_id}/cancel", summary="Cancel a message batch")
async def cancel(
    batch_id: str,
    request: Request,
    services: ServicesDep,
    owner: OwnerDep,
    _body: Annotated[dict[str, Any] | None, Body()] = None,
) -> dict[str, Any]:
    """No further request is sent. Requests that were sent already have half a minute to be answered."""

    def mark(con: Connection) -> Batch:
        found = find_batch_in(con, batch_id, owner, DIALECT)
        if found.status == "finalizing":
            # All requests are answered: the batch ends as it would without this call.
            return found
        return begin_cancel(con, batch_id, owner, now_ms())

    marked = await services.state.record(mark)
    BatchRunner.of(services).cancel(batch_id)
    return _view(services, request, marked)


@router.get("/{batch_id}/results", summary="The results of a message batch")
async def results(
    batch_id: str, request: Request, services: ServicesDep, owner: OwnerDep
) -> Response:
    """One JSON object a line: `custom_id`, and a `result` that is `succeeded`, `errored`, `canceled` or `expired`.
    They are stored for 30 days.
    """
    found = await _find(services, batch_id, owner)
    if found.ended_at_ms is None:
        raise NotFound(
            "The batch has no results yet: wait until its processing_status is `ended`.", param="id"
        )
    shown = anthropic_view(found, "", now_ms())
    if found.output_file_id is None or shown["results_url"] is None:
        raise NotFound(f"The results of {batch_id} are not stored any more.", param="id")
    headers = {
        "content-disposition": f"attachment; filename={found.id}_results.jsonl",
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-store",
        # The download may take as long as the caller needs to read it.
        "x-fairlead-lasting": "1",
    }
    contents = contents_of(services)
    return await content_answer(
        contents, found.output_file_id, headers, request.headers.get("range")
    )


@router.delete("/{batch_id}", summary="Delete a message batch")
async def delete(batch_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """Deletes the batch with its requests and results. One that has not ended is refused."""
    await delete_ended(services, batch_id, owner, DIALECT)
    return {"id": batch_id, "type": "message_batch_deleted"}


async def _find(services: Services, batch_id: str, owner: str) -> Batch:
    return await services.state.read(lambda con: find_batch_in(con, batch_id, owner, DIALECT))


def _view(services: Services, request: Request, batch: Batch) -> dict[str, Any]:
    return anthropic_view(batch, public_base(services.config, request), now_ms())

"""`/v1/batches`, in OpenAI's shapes. A batch belongs to the key that made it, and runs as that key."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import orjson
from fastapi import APIRouter, Body, Header, Query
from pydantic import BaseModel, ConfigDict, Field, StrictStr
from starlette.responses import Response

from fairlead.errors import InvalidRequest, NotFound
from fairlead.gateway.batches.google_router import (
    PageSize,
    PageToken,
    list_google,
    operation,
)
from fairlead.gateway.batches.runner import BatchRunner
from fairlead.gateway.batches.table import (
    Batch,
    BatchPage,
    batch_view,
    begin_cancel,
    delete_completed,
    find_batch_in,
    insert_batch,
    list_batches,
    new_batch,
)
from fairlead.gateway.files.contents import new_id
from fairlead.gateway.files.expiry import ExpiresAfter
from fairlead.gateway.files.router import page_of
from fairlead.gateway.files.table import find_file
from fairlead.gateway.metadata import Metadata
from fairlead.gateway.owner import OwnerDep
from fairlead.moment import now_ms
from fairlead.records.service_jobs import Subscribers, WebhookConfig, checked_uris, insert_job
from fairlead.records.signing_keys import ensure_signing_key
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/v1/batches", tags=["batches"])

DELETED_AT_ONCE: Final = 1_000
# Version 1 of Google's API shares these addresses.
_SHOWN: Final = ("openai", "gemini")

Endpoint = Literal[
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/completions",
    "/v1/moderations",
    "/v1/images/generations",
]


class EmptyBody(BaseModel):
    """A body that says nothing."""

    model_config = ConfigDict(extra="forbid")


class CreateBatchRequest(BaseModel):
    """A batch to be made."""

    model_config = ConfigDict(extra="forbid")

    input_file_id: Annotated[StrictStr, Field(min_length=1, max_length=64)]
    endpoint: Endpoint
    completion_window: Literal["24h"]
    metadata: Metadata | None = None
    output_expires_after: ExpiresAfter | None = None
    webhook_config: WebhookConfig | None = None


@router.post("", summary="Run every line of a file")
async def create(
    body: CreateBatchRequest, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """`input_file_id` is an uploaded file of the purpose `batch`, with one request a line: `{"custom_id",
    "method": "POST", "url", "body"}`, where `url` is the batch's `endpoint`. `webhook_config` names webhooks
    that replace the key's webhooks (`/v1/webhooks`).
    """
    created_at_ms = now_ms()
    expiry = body.output_expires_after
    hooks = body.webhook_config or WebhookConfig()
    uris = await checked_uris(services.egress, hooks, "webhook_config")
    if uris:
        await ensure_signing_key(services.state)
    batch = new_batch(
        created_at_ms,
        id=new_id("batch_"),
        owner=owner,
        endpoint=body.endpoint,
        input_file_id=body.input_file_id,
        metadata=orjson.dumps(body.metadata).decode() if body.metadata is not None else None,
        output_expires_after_s=expiry.seconds if expiry else None,
    )

    def insert(con: Connection) -> None:
        try:
            file = find_file(con, body.input_file_id, owner, created_at_ms)
        except NotFound as missing:
            raise InvalidRequest(missing.message, param="input_file_id") from None
        if file.purpose != "batch":
            raise InvalidRequest(
                f"input_file_id names a file of the purpose `{file.purpose}`: upload it as `batch`.",
                param="input_file_id",
            )
        insert_batch(con, batch)
        if body.webhook_config is not None:
            subscribers = Subscribers(uris, hooks.user_metadata)
            insert_job(con, owner, batch.id, subscribers, created_at_ms)

    await services.state.record(insert)
    BatchRunner.of(services).wake()
    return batch_view(batch)


@router.get("", summary="The caller's batches")
async def batches(
    services: ServicesDep,
    owner: OwnerDep,
    after: Annotated[str | None, Query(max_length=64)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    page_size: PageSize = None,
    page_token: PageToken = None,
    google_client: Annotated[
        str | None, Header(alias="x-goog-api-client", include_in_schema=False)
    ] = None,
) -> dict[str, Any]:
    """Newest first; `after` is the id of the last one seen. Version 1 of Google's API uses the same path: its
    clients, and callers with its paging parameters, get its list (`GET /v1beta/batches`).
    """
    if page_size is not None or page_token is not None or google_client is not None:
        return await list_google(services, owner, page_size, page_token)
    found, has_more = await services.state.read(
        lambda con: list_batches(con, owner, BatchPage("openai", after, limit))
    )
    return page_of([batch_view(batch) for batch in found], has_more)


@router.post("/delete-completed", summary="Delete the caller's batches that are completed")
async def delete_done(
    services: ServicesDep,
    owner: OwnerDep,
    _nothing: Annotated[EmptyBody | None, Body()] = None,
) -> dict[str, Any]:
    """Deletes 1,000 of them at most, oldest first; `has_more` says whether others are left. Files that they read
    and wrote stay, and so do batches that failed, expired or were cancelled.
    """
    ids, has_more = await services.state.record(
        lambda con: delete_completed(con, owner, DELETED_AT_ONCE)
    )
    data = [{"id": batch_id, "object": "batch", "deleted": True} for batch_id in ids]
    return {"object": "list", "data": data, "has_more": has_more}


@router.get("/{batch_id}", summary="One batch")
async def batch(batch_id: str, services: ServicesDep, owner: OwnerDep) -> Response:
    """The batch's status, its counts and, after its end, its files. A batch of Google's API is returned in
    Google's format: version 1 of that API uses the same path.
    """
    found = await services.state.read(lambda con: find_batch_in(con, batch_id, owner, *_SHOWN))
    if found.dialect == "gemini":
        return await operation(services, found)
    return Response(orjson.dumps(batch_view(found)), media_type="application/json")


@router.post("/{batch_id}/cancel", summary="Stop a batch")
async def cancel(batch_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """No further line runs; lines in progress have half a minute. Finished answers are kept."""

    def mark(con: Connection) -> Batch:
        find_batch_in(con, batch_id, owner, *_SHOWN)
        return begin_cancel(con, batch_id, owner, now_ms())

    marked = await services.state.record(mark)
    BatchRunner.of(services).cancel(batch_id)
    return batch_view(marked)

"""Batches in Google's dialect: `batchGenerateContent` and its operations. They run as every other
batch does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Annotated, Any, Final
from urllib.parse import quote

import orjson
from fastapi import APIRouter, Body, Query
from starlette.responses import Response

from fairlead.errors import InvalidRequest, NotFound
from fairlead.gateway.batches.google_fields import BatchFields, GoogleBatchRequest, InlineRequest
from fairlead.gateway.batches.google_output import output_lines
from fairlead.gateway.batches.google_view import google_view
from fairlead.gateway.batches.inline import delete_ended, store_inline
from fairlead.gateway.batches.lines import LINE_MAX_BYTES, wrong_request
from fairlead.gateway.batches.runner import BatchRunner
from fairlead.gateway.batches.table import (
    Batch,
    BatchPage,
    begin_cancel,
    find_batch_in,
    insert_batch,
    list_batches,
    new_batch,
)
from fairlead.gateway.files.contents import Contents, contents_of, new_id
from fairlead.gateway.files.table import find_file
from fairlead.gateway.google import named_model
from fairlead.gateway.owner import OwnerDep
from fairlead.moment import now_ms
from fairlead.records.service_jobs import Subscribers, WebhookConfig, checked_uris, insert_job
from fairlead.records.signing_keys import ensure_signing_key
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep

INLINE_MAX_BYTES: Final = 16 * 1024 * 1024
"""The largest answers, in bytes, that an operation shows itself; larger ones become a file."""
DIALECT: Final = "gemini"
PAGE: Final = 50
PAGE_MAX: Final = 100

PageSize = Annotated[int | None, Query(alias="pageSize", ge=1)]
PageToken = Annotated[str | None, Query(alias="pageToken", max_length=64)]

_CALL: Final = "batch.inputConfig.requests.requests"


async def generate(
    model: str, body: GoogleBatchRequest, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """`batch.inputConfig` has the requests, or names a file of them (`files/file-...`, of the purpose `batch`,
    with `{"key", "request"}` a line). `batch.webhookConfig` names webhooks that replace the key's webhooks
    (`/v1/webhooks`).
    """
    fields = body.batch
    model = named_model(model)
    if fields.model is not None and named_model(fields.model) != model:
        raise InvalidRequest(
            "batch.model must be the model of the address, or left out.", param="batch.model"
        )
    hooks = fields.webhook_config or WebhookConfig()
    uris = await checked_uris(services.egress, hooks, "batch.webhookConfig")
    inline = fields.input_config.requests
    content = b""
    if inline is not None:
        content = await asyncio.to_thread(_written, inline.requests, model)
    batch = _new_batch(fields, model, owner, now_ms())
    subscribers = None
    if fields.webhook_config is not None:
        subscribers = Subscribers(uris, hooks.user_metadata)
    if uris:
        await ensure_signing_key(services.state)
    if inline is not None:
        await store_inline(services, batch, content, subscribers)
    else:
        await _store_with_file(services, batch, subscribers)
    BatchRunner.of(services).wake()
    return google_view(batch)


def _new_batch(fields: BatchFields, model: str, owner: str, at_ms: int) -> Batch:
    """The batch that was asked for, with the file of its input: a new one where the requests came inline."""
    inline = fields.input_config.requests
    file_id = new_id("file-") if inline else (fields.input_config.file_name or "")
    return new_batch(
        at_ms,
        id=new_id("batch_"),
        owner=owner,
        endpoint=_endpoint(model),
        input_file_id=file_id.removeprefix("files/"),
        model=model,
        dialect=DIALECT,
        display_name=fields.display_name,
        priority=fields.priority,
        is_inline=inline is not None,
    )


async def _store_with_file(
    services: Services, batch: Batch, subscribers: Subscribers | None
) -> None:
    """Stores the batch, whose requests are in a file of the owner's, with its webhooks."""

    def insert(con: Connection) -> None:
        _check_file(con, batch, batch.created_at_ms)
        insert_batch(con, batch)
        if subscribers is not None:
            insert_job(con, batch.owner, batch.id, subscribers, batch.created_at_ms)

    await services.state.record(insert)


async def read(batch_id: str, services: ServicesDep, owner: OwnerDep) -> Response:
    """The batch, and once it has ended its results: answers in the order of their requests,
    or the name of their file.
    """
    batch = await services.state.read(lambda con: find_batch_in(con, batch_id, owner, DIALECT))
    return await operation(services, batch)


async def list_google(
    services: ServicesDep, owner: OwnerDep, page_size: PageSize = None, page_token: PageToken = None
) -> dict[str, Any]:
    """Newest first, without the answers in the operations: read a batch to get them."""
    most = min(page_size or PAGE, PAGE_MAX)
    try:
        found, has_more = await services.state.read(
            lambda con: list_batches(con, owner, BatchPage(DIALECT, page_token or None, most))
        )
    except InvalidRequest:
        raise InvalidRequest(
            "pageToken must be the nextPageToken of the page before.", param="pageToken"
        ) from None
    shown: dict[str, Any] = {"operations": [google_view(batch) for batch in found]}
    return shown | ({"nextPageToken": found[-1].id} if has_more else {})


async def cancel(
    batch_id: str,
    services: ServicesDep,
    owner: OwnerDep,
    _body: Annotated[dict[str, Any] | None, Body()] = None,
) -> dict[str, Any]:
    """No further request runs; requests in progress have half a minute."""

    def mark(con: Connection) -> None:
        find_batch_in(con, batch_id, owner, DIALECT)
        begin_cancel(con, batch_id, owner, now_ms())

    await services.state.record(mark)
    BatchRunner.of(services).cancel(batch_id)
    return {}


async def delete(batch_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """Also deletes the answers in its operation. A batch that has not ended is refused."""
    await delete_ended(services, batch_id, owner, DIALECT)
    return {}


async def operation(services: Services, batch: Batch) -> Response:
    """The operation, with the answers of an inline batch in it."""
    answers, as_file = None, False
    if batch.is_inline and batch.ended_at_ms is not None and batch.output_file_id is not None:
        contents = contents_of(services)
        # None: the file has expired, or its owner deleted it.
        size = await contents.size(batch.output_file_id)
        as_file = size is not None and size > INLINE_MAX_BYTES
        if size is not None and not as_file:
            answers = await _answers(contents, batch.output_file_id)
    body = await asyncio.to_thread(
        lambda: orjson.dumps(google_view(batch, answers, as_file=as_file))
    )
    return Response(body, media_type="application/json")


async def _answers(contents: Contents, file_id: str) -> list[orjson.Fragment] | None:
    try:
        output = b"".join([chunk async for chunk in contents.read(file_id)])
    except FileNotFoundError:
        # Deleted since it was looked at.
        return None
    return output_lines(output)


def _written(requests: list[InlineRequest], model: str) -> bytes:
    lines = []
    for place, one in enumerate(requests):
        if (fault := wrong_request(one.request, model)) is not None:
            rule, member = fault
            param = f"{_CALL}[{place}].{member}"
            raise InvalidRequest(f"{param} {rule}.", param=param)
        line = json.dumps(one.model_dump(exclude_none=True), separators=(",", ":")).encode()
        if len(line) > LINE_MAX_BYTES:
            param = f"{_CALL}[{place}]"
            raise InvalidRequest(f"{param} must have at most {LINE_MAX_BYTES} bytes.", param=param)
        lines.append(line + b"\n")
    return b"".join(lines)


def _check_file(con: Connection, batch: Batch, at_ms: int) -> None:
    param = "batch.inputConfig.fileName"
    try:
        file = find_file(con, batch.input_file_id, batch.owner, at_ms)
    except NotFound:
        raise InvalidRequest(
            f"{param} names no file of yours: upload it at POST /v1/files with the purpose `batch`, "
            "and name it `files/<its id>`.",
            param=param,
        ) from None
    if file.purpose != "batch":
        raise InvalidRequest(
            f"{param} names a file of the purpose `{file.purpose}`: upload it as `batch`.",
            param=param,
        )


def _endpoint(model: str) -> str:
    # The endpoint is stored as the route table spells its path.
    return f"/v1beta/models/{quote(model, safe='/-._~:@!$&()*+,=')}:generateContent"


_CREATE = "Run many generateContent requests within a day"
_ROUTES: Final[tuple[tuple[str, str, Callable[..., Any], str], ...]] = (
    ("POST", "/v1beta/models/{model:path}:batchGenerateContent", generate, _CREATE),
    ("GET", "/v1beta/batches", list_google, "The caller's batches of Google's kind"),
    ("GET", "/v1beta/batches/{batch_id}", read, "One batch as an operation"),
    ("POST", "/v1beta/batches/{batch_id}:cancel", cancel, "Stop a batch of Google's kind"),
    ("DELETE", "/v1beta/batches/{batch_id}", delete, "Delete a batch of Google's kind"),
    ("POST", "/v1/models/{model:path}:batchGenerateContent", generate, _CREATE),
    ("POST", "/v1/batches/{batch_id}:cancel", cancel, "Stop a batch of Google's kind"),
    ("DELETE", "/v1/batches/{batch_id}", delete, "Delete a batch of Google's kind"),
)

router = APIRouter(tags=["batches"])
for _method, _path, _act, _summary in _ROUTES:
    _name = f"{_path.split('/')[1]}_batch_{_act.__name__}"
    router.add_api_route(
        _path, _act, methods=[_method], name=_name, operation_id=_name, summary=_summary
    )

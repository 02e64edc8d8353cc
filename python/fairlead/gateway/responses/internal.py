"""The relay's requests about stored responses, over control's socket alone
(docs/explanation/contracts.md).

`POST /internal/responses` stores a response that does not come by the spool (`intake`).
`POST /internal/responses/context` returns the conversation that a request with a
`previous_response_id` continues.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from fairlead.errors import FairleadError, InvalidRequest, TooLarge
from fairlead.gateway.responses.intake import read_stored
from fairlead.gateway.responses.items import context
from fairlead.gateway.responses.table import StoredResponse, conversation, insert_response
from fairlead.json_values import VALUES_MAX, has_too_many_values
from fairlead.moment import now_ms
from fairlead.store.connection import Connection
from fairlead.store.owner_bytes import DATABASE, free_bytes
from fairlead.store.services import Services

KEEP_PATH = "/internal/responses"
CONTEXT_PATH = "/internal/responses/context"
MAX_BYTES = 24 * 1024 * 1024
# Answered by `creation`, which is imported when it is asked for first.
BEGIN_PATH = "/internal/responses/background"
BEGIN_MAX_BYTES = 24 * 1024 * 1024
# What a relay worker may append to its spool for an owner before it asks again. It is a small part of what is free, so
# that all workers and owners together exceed the limits by little.
GRANT_MAX_BYTES = 16 * 1024 * 1024
GRANT_OF_OWNER = 16
GRANT_OF_ALL = 256

_Id = Field(min_length=1, max_length=300)


class ContextQuery(BaseModel):
    """A response by id. `owner` is the caller's kind and id, as the relay resolved them."""

    model_config = ConfigDict(extra="forbid")

    id: str = _Id
    owner: str = _Id


class FinishedResponse(ContextQuery):
    """A finished response to be stored, with the input that it answers."""

    previous: str | None = None
    model: str
    input: list[dict[str, Any]]
    response: dict[str, Any]


class Responses:
    """The handlers of the two paths."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def store(self, request: Request) -> Response:
        """Stores a response: 200 with the owner's next grant, or 400 for a body that cannot be read."""
        try:
            stored = await asyncio.to_thread(_parse_stored, await _read(request))
            grant_bytes = await self._services.state.record(lambda con: _store(con, stored))
        except FairleadError as error:
            return _refusal(error)
        except (ValidationError, ValueError):
            return _refusal(InvalidRequest("The response cannot be read."))
        return Response(orjson.dumps({"grant_bytes": grant_bytes}), media_type="application/json")

    async def context(self, request: Request) -> Response:
        """`{"items": [...]}`; 404 when there is no such response of this owner."""
        try:
            query = ContextQuery.model_validate(orjson.loads(await _read(request)))
            turns = await read_stored(
                self._services, lambda con: conversation(con, query.id, query.owner, now_ms())
            )
        except FairleadError as error:
            return _refusal(error)
        except (ValidationError, ValueError):
            return _refusal(InvalidRequest("The question cannot be read."))
        items = await asyncio.to_thread(lambda: orjson.dumps({"items": context(turns)}))
        return Response(items, media_type="application/json")


def _store(con: Connection, response: StoredResponse) -> int:
    insert_response(con, response, now_ms())
    own, everybody = free_bytes(con, DATABASE, response.owner)
    return min(GRANT_MAX_BYTES, own // GRANT_OF_OWNER, everybody // GRANT_OF_ALL)


def _parse_stored(raw: bytes) -> StoredResponse:
    """The row for a finished response. Slow for a long one: not to be called on the event loop."""
    if has_too_many_values(raw):
        raise TooLarge(f"The response holds more than {VALUES_MAX} values.")
    finished = FinishedResponse.model_validate(orjson.loads(raw))
    input_json = orjson.dumps(finished.input).decode()
    whole = orjson.dumps(finished.response).decode()
    return StoredResponse(
        finished.id, finished.owner, finished.previous, finished.model, input_json, whole
    )


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BYTES:
            raise InvalidRequest(f"The response is larger than {MAX_BYTES} bytes.")
    return bytes(body)


def _refusal(error: FairleadError) -> Response:
    body = orjson.dumps({"kind": error.kind, "message": error.message})
    return Response(body, error.status, media_type="application/json")

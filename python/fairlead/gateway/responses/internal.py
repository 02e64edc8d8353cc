"""The relay's requests about stored responses, over control's socket alone
(docs/explanation/contracts.md).

`POST /internal/responses` stores one; `POST /internal/responses/context` returns the conversation
that a request with a `previous_response_id` continues.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from fairlead.errors import FairleadError, InvalidRequest, TooLarge
from fairlead.gateway.responses.items import context
from fairlead.gateway.responses.table import StoredResponse, conversation, insert_response
from fairlead.json_values import VALUES_MAX, has_too_many_values
from fairlead.moment import now_ms
from fairlead.store.state import State

KEEP_PATH = "/internal/responses"
CONTEXT_PATH = "/internal/responses/context"
MAX_BYTES = 24 * 1024 * 1024
# Answered by `creation`, which is imported when it is asked for first.
BEGIN_PATH = "/internal/responses/background"
BEGIN_MAX_BYTES = 24 * 1024 * 1024

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

    def __init__(self, state: State) -> None:
        self._state = state

    async def store(self, request: Request) -> Response:
        """Stores a response: 204, or 400 for a body that cannot be read."""
        try:
            stored = await asyncio.to_thread(_parse_stored, await _read(request))
            await self._state.record(lambda con: insert_response(con, stored, now_ms()))
        except FairleadError as error:
            return _refusal(error)
        except (ValidationError, ValueError):
            return _refusal(InvalidRequest("The response cannot be read."))
        return Response(status_code=204)

    async def context(self, request: Request) -> Response:
        """`{"items": [...]}`; 404 when there is no such response of this owner."""
        try:
            query = ContextQuery.model_validate(orjson.loads(await _read(request)))
            turns = await self._state.read(
                lambda con: conversation(con, query.id, query.owner, now_ms())
            )
        except FairleadError as error:
            return _refusal(error)
        except (ValidationError, ValueError):
            return _refusal(InvalidRequest("The question cannot be read."))
        items = await asyncio.to_thread(lambda: orjson.dumps({"items": context(turns)}))
        return Response(items, media_type="application/json")


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

"""The relay's requests about stored responses, over control's socket alone
(docs/explanation/contracts.md).

`POST /internal/responses` stores a response that does not come by the spool (`intake`), and adds it to its
conversation. `POST /internal/responses/context` returns what a request with a `previous_response_id` or a
`conversation` continues.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from fairlead.errors import FairleadError, InvalidRequest, TooLarge
from fairlead.gateway.conversations.items import request_item, stored_item
from fairlead.gateway.conversations.table import append_items, items_of
from fairlead.gateway.responses.intake import read_stored
from fairlead.gateway.responses.items import context
from fairlead.gateway.responses.table import StoredResponse, conversation, insert_response
from fairlead.moment import now_ms
from fairlead.store.connection import Connection
from fairlead.store.owner_bytes import DATABASE, free_bytes
from fairlead.store.services import Services
from fairlead.text.json_values import VALUES_MAX, has_too_many_values

KEEP_PATH = "/internal/responses"
CONTEXT_PATH = "/internal/responses/context"
MAX_BYTES = 24 * 1024 * 1024
# Answered by `creation`, which is imported with the first request.
BEGIN_PATH = "/internal/responses/background"
BEGIN_MAX_BYTES = 24 * 1024 * 1024
# The bytes that a relay worker may append to its spool for an owner before it asks again. It is a small part of the
# free bytes, so that all workers and owners together exceed the limits by little.
GRANT_MAX_BYTES = 16 * 1024 * 1024
GRANT_OF_OWNER = 16
GRANT_OF_ALL = 256

_Id = Field(min_length=1, max_length=300)


class ContextQuery(BaseModel):
    """A response or a conversation by id. `owner` is the caller's kind and id, as the relay resolved them."""

    model_config = ConfigDict(extra="forbid")

    id: str | None = Field(None, min_length=1, max_length=300)
    conversation: str | None = Field(None, min_length=1, max_length=300)
    owner: str = _Id


class ConversationOfResponse(BaseModel):
    """The conversation that a response is added to, and whether the response is stored for itself as well."""

    model_config = ConfigDict(extra="forbid")

    id: str = _Id
    stores: bool


class FinishedResponse(BaseModel):
    """A finished response to be stored, with the input that it answers."""

    model_config = ConfigDict(extra="forbid")

    id: str = _Id
    owner: str = _Id
    conversation: ConversationOfResponse | None = None
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
            stored, addition = await asyncio.to_thread(_parse_stored, await _read(request))
            grant_bytes = await self._services.state.record(
                lambda con: _store(con, stored, addition)
            )
        except FairleadError as error:
            return _refusal(error)
        except (ValidationError, ValueError):
            return _refusal(InvalidRequest("The response cannot be read."))
        return Response(orjson.dumps({"grant_bytes": grant_bytes}), media_type="application/json")

    async def context(self, request: Request) -> Response:
        """`{"items": [...]}`; 404 when there is no such response of this owner."""
        try:
            query = ContextQuery.model_validate(orjson.loads(await _read(request)))
            items = await self._items(query)
        except FairleadError as error:
            return _refusal(error)
        except (ValidationError, ValueError):
            return _refusal(InvalidRequest("The question cannot be read."))
        return Response(items, media_type="application/json")

    async def _items(self, query: ContextQuery) -> bytes:
        if (conversation_id := query.conversation) is not None:
            stored = await self._services.state.read(
                lambda con: items_of(con, conversation_id, query.owner)
            )
            return await asyncio.to_thread(_items_of_conversation, stored)
        if (response_id := query.id) is None:
            raise InvalidRequest("The question names neither a response nor a conversation.")
        turns = await read_stored(
            self._services, lambda con: conversation(con, response_id, query.owner, now_ms())
        )
        return await asyncio.to_thread(lambda: orjson.dumps({"items": context(turns)}))


def _store(con: Connection, response: StoredResponse, addition: _Addition | None) -> int:
    if addition is not None:
        append_items(con, addition.conversation_id, response.owner, addition.items)
    if addition is None or addition.stores:
        insert_response(con, response, now_ms())
    own, everybody = free_bytes(con, DATABASE, response.owner)
    return min(GRANT_MAX_BYTES, own // GRANT_OF_OWNER, everybody // GRANT_OF_ALL)


@dataclass(frozen=True, slots=True)
class _Addition:
    """The items that a response adds to a conversation."""

    conversation_id: str
    items: list[dict[str, Any]]
    stores: bool


def _items_of_conversation(stored: list[str]) -> bytes:
    return orjson.dumps({"items": [request_item(orjson.loads(item)) for item in stored]})


def _parse_stored(raw: bytes) -> tuple[StoredResponse, _Addition | None]:
    """The row for a finished response, and what it adds to its conversation. Slow for a long one: not to be called
    on the event loop.
    """
    if has_too_many_values(raw):
        raise TooLarge(f"The response holds more than {VALUES_MAX} values.")
    finished = FinishedResponse.model_validate(orjson.loads(raw))
    input_json = orjson.dumps(finished.input).decode()
    whole = orjson.dumps(finished.response).decode()
    stored = StoredResponse(
        finished.id, finished.owner, finished.previous, finished.model, input_json, whole
    )
    if finished.conversation is None:
        return stored, None
    output = finished.response.get("output")
    both = [*finished.input, *(output if isinstance(output, list) else [])]
    items = [stored_item(item, f"items[{at}]") for at, item in enumerate(both)]
    return stored, _Addition(finished.conversation.id, items, finished.conversation.stores)


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

"""What the relay asks of kept responses, over control's socket alone (docs/explanation/contracts.md).

`POST /internal/responses` keeps one; `POST /internal/responses/context` gives what a request that
names a `previous_response_id` goes on from.
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
from fairlead.gateway.responses.table import Kept, conversation, keep
from fairlead.json_values import VALUES_MAX, has_too_many_values
from fairlead.moment import now_ms
from fairlead.store.state import State

KEEP_PATH = "/internal/responses"
CONTEXT_PATH = "/internal/responses/context"
MAX_BYTES = 24 * 1024 * 1024

_Id = Field(min_length=1, max_length=300)


class Asked(BaseModel):
    """`owner` is the caller's kind and id, as the relay resolved them."""

    model_config = ConfigDict(extra="forbid")

    id: str = _Id
    owner: str = _Id


class Told(Asked):
    previous: str | None = None
    model: str
    input: list[dict[str, Any]]
    response: dict[str, Any]


class Responses:
    """The two endpoints."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def keep(self, request: Request) -> Response:
        """204; what cannot be read is 400."""
        try:
            kept = await asyncio.to_thread(_kept, await _read(request))
            await self._state.record(lambda con: keep(con, kept, now_ms()))
        except FairleadError as error:
            return _refusal(error)
        except (ValidationError, ValueError):
            return _refusal(InvalidRequest("The response cannot be read."))
        return Response(status_code=204)

    async def context(self, request: Request) -> Response:
        """`{"items": [...]}`; 404 whether the response is another's or nobody's."""
        try:
            asked = Asked.model_validate(orjson.loads(await _read(request)))
            turns = await self._state.read(
                lambda con: conversation(con, asked.id, asked.owner, now_ms())
            )
        except FairleadError as error:
            return _refusal(error)
        except (ValidationError, ValueError):
            return _refusal(InvalidRequest("The question cannot be read."))
        items = await asyncio.to_thread(lambda: orjson.dumps({"items": context(turns)}))
        return Response(items, media_type="application/json")


def _kept(raw: bytes) -> Kept:
    """What is to be kept; not for the event loop, as long as it may be."""
    if has_too_many_values(raw):
        raise TooLarge(f"The response holds more than {VALUES_MAX} values.")
    told = Told.model_validate(orjson.loads(raw))
    said = orjson.dumps(told.input).decode()
    whole = orjson.dumps(told.response).decode()
    return Kept(told.id, told.owner, told.previous, told.model, said, whole)


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

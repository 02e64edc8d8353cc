"""Creation of a background response, from a request that the relay forwards as its caller sent it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from fairlead.calls.caller import caller_of
from fairlead.calls.own_relay import COUNTED
from fairlead.errors import InvalidRequest, TooLarge
from fairlead.gateway.responses.background import background_responses
from fairlead.gateway.responses.background_request import BackgroundRequest, background_request
from fairlead.gateway.responses.internal import BEGIN_PATH
from fairlead.gateway.responses.relay_call import headers_for
from fairlead.store.services import Services
from fairlead.text.json_values import VALUES_MAX, has_too_many_values

router = APIRouter()
# Headers of the caller that are sent along with the call to the relay.
_HEADERS: Final = (
    "x-gateway-connection",
    "x-gateway-session-id",
    "x-session-id",
    "x_session_id",
    "x-codex-session-id",
    "x-claude-code-session-id",
    "x-qwen-code-session-id",
    "session_id",
    "session-id",
    "conversation_id",
    "thread_id",
    "thread-id",
    "x-route-model",
    "x-gateway-disabled-guardrails",
    "x-gateway-compression",
    "x-gateway-no-cache",
    "x-gateway-cache-mode",
    "x-gateway-cache-threshold",
    "x-gateway-no-memory",
    "x-gateway-mode",
    "x-gateway-budget",
    "x-gateway-budget-fallback",
    "x-gateway-inexpressible",
    COUNTED,
)


@router.route(BEGIN_PATH, methods=["POST"], include_in_schema=False)
async def begin(request: Request) -> Response:
    """The queued response, or its events."""
    services: Services = request.app.state.services
    principal = caller_of(request).principal
    if principal.kind not in ("key", "anonymous"):
        raise InvalidRequest("`background` needs an API key.", param="background")
    raw = await request.body()
    # Parsing a long body would block the event loop.
    job_request = await asyncio.to_thread(_parse, raw)
    sent = {name: value for name in _HEADERS if (value := request.headers.get(name))}
    key_id = principal.id if principal.kind == "key" else None
    owner = f"{principal.kind}:{principal.id or ''}"
    job = await background_responses(services).begin(
        owner, job_request, headers_for(services, key_id, sent)
    )
    if job_request.streams:
        return event_stream(job.frames(-1))
    return Response(orjson.dumps(job.response), media_type="application/json")


def event_stream(frames: AsyncIterator[bytes]) -> StreamingResponse:
    """An answer of server-sent events."""
    headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
    return StreamingResponse(frames, media_type="text/event-stream", headers=headers)


def _parse(raw: bytes) -> BackgroundRequest:
    """The request in a body. `InvalidRequest`, `TooLarge`."""
    if has_too_many_values(raw):
        raise TooLarge(f"The body holds more than {VALUES_MAX} values.")
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise InvalidRequest("The body is not JSON.") from None
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object.")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise InvalidRequest("`model` must be a string.", param="model")
    if not isinstance(body.get("input"), str | list):
        raise InvalidRequest("`input` must be a string or an array.", param="input")
    if body.get("store") is False:
        raise InvalidRequest("`background` needs `store`: leave it out or true.", param="store")
    if not isinstance(body.get("stream") or False, bool):
        raise InvalidRequest("`stream` must be a boolean.", param="stream")
    previous = body.get("previous_response_id")
    if previous is not None and not isinstance(previous, str):
        raise InvalidRequest(
            "`previous_response_id` must be a string.", param="previous_response_id"
        )
    conversation = body.get("conversation")
    if conversation is not None and not isinstance(conversation, str | dict):
        raise InvalidRequest("`conversation` must be an id or an object.", param="conversation")
    return background_request(body, raw)

"""The call of a background response: the request sent to this instance's own relay, as its owner's key, and the
events of the stream that answers it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Final

import httpx
import orjson

from fairlead.calls.own_relay import on_behalf_of
from fairlead.gateway.responses.background_request import relay_body
from fairlead.gateway.responses.background_response import BackgroundResponse
from fairlead.gateway.responses.events import Event
from fairlead.store.services import Services

ENDS: Final = frozenset({"completed", "incomplete", "failed", "cancelled"})


def headers_for(services: Services, key_id: str | None, sent: dict[str, str]) -> dict[str, str]:
    """The headers of the call: the key that it is for, and those that the caller sent."""
    own = {} if key_id is None else on_behalf_of(services.config, key_id)
    return {**sent, **own, "content-type": "application/json"}


async def call_relay(job: BackgroundResponse, client: httpx.AsyncClient) -> Event:
    """Sends the request, appends the events as they come and returns the last state of the response.
    `httpx.HTTPError` where the relay does not answer, `OverflowError` where the answer is too long.
    """
    content = await asyncio.to_thread(relay_body, job.body)
    job.response = job.changed(status="in_progress")
    async with client.stream(
        "POST", "/v1/responses", content=content, headers=job.headers
    ) as answer:
        if answer.status_code != 200:
            return job.failed(*_error_of(await answer.aread()))
        async for event in _events(answer):
            kind = event.get("type")
            if kind == "response.created":
                continue
            if kind == "error":
                message = str(event.get("message") or "The stream reported an error.")
                return job.failed(str(event.get("code") or "server_error"), message)
            if isinstance(event.get("response"), dict):
                event["response"] = _with_own_fields(job, event["response"])
                job.response = event["response"]
                if job.response.get("status") in ENDS:
                    return job.response
            job.append(event)
    return job.failed("server_error", "The stream ended before the response was complete.")


def _with_own_fields(job: BackgroundResponse, response: Event) -> Event:
    """The relay's object with the id and the other fields that the caller was given at the start."""
    names = ["id", "created_at", "background", "store", "previous_response_id"]
    if "conversation" in job.response:
        names.append("conversation")
    return {**response, **{name: job.response.get(name) for name in names}}


def _error_of(body: bytes) -> tuple[str, str]:
    with contextlib.suppress(orjson.JSONDecodeError, AttributeError, TypeError):
        error = orjson.loads(body)["error"]
        return str(error.get("code") or "server_error"), str(error.get("message") or "")
    return "server_error", "The request failed."


async def _events(answer: httpx.Response) -> AsyncIterator[Event]:
    data: list[str] = []
    async for line in answer.aiter_lines():
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            for event in _parsed("\n".join(data)):
                yield event
            data = []


def _parsed(text: str) -> Iterator[Event]:
    with contextlib.suppress(orjson.JSONDecodeError):
        event = orjson.loads(text)
        if isinstance(event, dict):
            yield event

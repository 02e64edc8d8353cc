"""A model's whole answer, asked for through the relay as the visitor of a page.

Their session's cookie goes along, so the relay decides as it would for a request of their browser.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Final

import httpx
import orjson
from starlette.requests import Request

from fairlead.calls.caller import caller_of
from fairlead.calls.own_relay import as_operator, relay_client
from fairlead.dashboard.dialect_request import AnswerTokens, DialectRequest, text_of, tokens_of
from fairlead.settings import ControlConfig

# Within the deadline of the page's own request.
DEADLINE_S: Final = 50.0
ANSWER_MAX_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's text and its figures: `error` in place of `text` where the call failed. Cost in micro-dollars, which
    is not known while `is_unpriced`.
    """

    text: str
    error: str | None
    status: int | None
    request_id: str | None
    latency_ms: int
    cost_usd_micros: int | None
    tokens: AnswerTokens
    is_unpriced: bool = False
    served_by: str | None = None
    """The provider and model that answered, and how many attempts failed before."""


async def call_model(visit_request: Request, request: DialectRequest) -> ModelReply:
    """The reply to a request that asks for a whole answer. Failures are replies too."""
    config: ControlConfig = visit_request.app.state.services.config
    started = time.monotonic()
    try:
        headers = await asyncio.to_thread(_credential, visit_request, config)
        async with asyncio.timeout(DEADLINE_S), relay_client(config, connections=1) as client:
            answer = await client.post(request.path, headers=headers, json=request.body)
    except (TimeoutError, httpx.TimeoutException):
        return _failure(f"The model did not answer within {DEADLINE_S:g} s.", started)
    except (httpx.HTTPError, OSError) as error:
        return _failure(f"The gateway did not answer ({type(error).__name__}).", started)
    return _reply(request, answer, started)


def _credential(request: Request, config: ControlConfig) -> dict[str, str]:
    if caller_of(request).principal.kind == "local":
        return as_operator(config)
    # The relay has judged where the page's own request came from.
    return {"cookie": request.headers.get("cookie", ""), "sec-fetch-site": "same-origin"}


def _reply(request: DialectRequest, answer: httpx.Response, started: float) -> ModelReply:
    if len(answer.content) > ANSWER_MAX_BYTES:
        return _failure("The answer is too long to be shown here.", started)
    try:
        document = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        return _failure(f"The answer ({answer.status_code}) was no JSON.", started)
    is_good = answer.status_code == 200
    return ModelReply(
        text_of(request.dialect, document) if is_good else "",
        None if is_good else _message(document, answer.status_code),
        answer.status_code,
        answer.headers.get("x-gateway-request-id"),
        _elapsed_ms(started),
        _micros(answer.headers.get("x-gateway-response-cost")),
        tokens_of(request.dialect, document),
        "x-gateway-unpriced" in answer.headers,
        _served_by(answer.headers),
    )


def _served_by(headers: httpx.Headers) -> str | None:
    parts = (headers.get("x-gateway-provider"), headers.get("x-gateway-model"))
    served = " / ".join(part for part in parts if part)
    failed = headers.get("x-gateway-fallback-attempts", "0")
    if not served:
        return None
    return served if failed == "0" else f"{served}, after {failed} failed"


def _failure(message: str, started: float) -> ModelReply:
    return ModelReply("", message, None, None, _elapsed_ms(started), None, AnswerTokens(None, None))


def _message(document: Any, status: int) -> str:
    error = document.get("error") if isinstance(document, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return str(message) if message else f"The gateway answered {status}."


def _elapsed_ms(started: float) -> int:
    return round((time.monotonic() - started) * 1000)


def _micros(usd: str | None) -> int | None:
    try:
        return None if usd is None else round(float(usd) * 1_000_000)
    except ValueError:
        return None

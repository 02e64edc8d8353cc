"""The opening that every endpoint shares: read the request, wait, fail where a directive says so, then answer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

import orjson

from fairlead.standin import gemini, messages, openai
from fairlead.standin.directives import Directives, parse_directives, split_model
from fairlead.standin.failure import FAULT_MESSAGE, InvalidRequest
from fairlead.standin.framework import Request
from fairlead.standin.reply import Reply, json_reply, stream_reply, unary_reply
from fairlead.standin.stream import Frames

HEADER: Final = "x-standin"

Handler = Callable[[Request], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Call:
    """One request to an endpoint."""

    request: Request
    body: dict[str, Any]
    """The JSON body, or the fields of the form."""
    model: str
    """The model's name without directives."""
    directives: Directives

    def file(self, field: str) -> tuple[str, bytes]:
        """Name and content of the form's first file; raises `InvalidRequest` about `field` without one.

        Robyn hands files over by their own names, not by those of their fields.
        """
        for name, content in dict(self.request.files or {}).items():
            return name, bytes(content)
        raise InvalidRequest(f"'{field}' is required.", field)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the requests of one provider's API are read, and the shape of its errors."""

    read: Callable[[Request], tuple[dict[str, Any], str]]
    """Body and model, directives included. Raises `InvalidRequest`."""
    error: Callable[[int, str, str | None, str | None], dict[str, Any]]
    """The error body for a status, a message, the field's name and a code."""


def endpoint(
    dialect: Dialect, answer: Callable[[Call], dict[str, Any] | Frames | Reply]
) -> Handler:
    """A handler whose answer is a document in one piece, a stream's frames, or a finished reply."""

    async def handle(request: Request) -> Reply:
        try:
            body, named = dialect.read(request)
            model, directives = split_model(
                named, parse_directives(request.headers.get(HEADER) or "")
            )
            if "model" in body:
                # The directives are no part of the question: in the header or in the name, the answer is one.
                body["model"] = model
            if directives.latency_ms:
                await asyncio.sleep(directives.latency_ms / 1000)
            if directives.status >= 400:
                fault = dialect.error(directives.status, FAULT_MESSAGE, None, None)
                return json_reply(fault, directives)
            answered = answer(Call(request, body, model, directives))
            if isinstance(answered, dict):
                return await unary_reply(answered, directives)
            return stream_reply(answered, directives) if isinstance(answered, Frames) else answered
        except InvalidRequest as error:
            refusal = dialect.error(400, str(error), error.param, error.code)
            return json_reply(refusal, Directives(status=400))

    return handle


def _read_json(request: Request) -> tuple[dict[str, Any], str]:
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        raise InvalidRequest("We could not parse the JSON body of your request.") from None
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object.")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise InvalidRequest("you must provide a model parameter", "model")
    return body, body["model"]


def _read_form(request: Request) -> tuple[dict[str, Any], str]:
    fields = dict(request.form_data or {})
    if not fields.get("model"):
        raise InvalidRequest("you must provide a model parameter", "model")
    return fields, fields["model"]


def _read_gemini(request: Request) -> tuple[dict[str, Any], str]:
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        raise InvalidRequest("Invalid JSON payload received.") from None
    return body, gemini_call(request)[0]


def gemini_call(request: Request) -> tuple[str, str]:
    """Model, directives included, and method of a path such as `/v1beta/models/standin:generateContent`."""
    name, _, method = unquote(request.path_params.get("call", "")).rpartition(":")
    return name, method


OPENAI: Final = Dialect(_read_json, openai.error)
OPENAI_FORM: Final = Dialect(_read_form, openai.error)
ANTHROPIC: Final = Dialect(_read_json, lambda status, text, *_: messages.error(status, text))
GEMINI: Final = Dialect(_read_gemini, lambda status, text, *_: gemini.error(status, text))

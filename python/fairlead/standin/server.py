"""The stand-in's HTTP server on Robyn.

Robyn reads the command line, takes its address from the environment before its arguments, asks on
standard input for another port when the one it was given is busy, serves `/docs` unasked, limits
bodies to 1 MB and goes on running after SIGTERM. `serve` answers each of these; one process serves
one stand-in, once.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote

import orjson

from fairlead.standin import (
    chat,
    completions,
    embeddings,
    gemini,
    judgements,
    messages,
    pictures,
    responses,
    sound,
    videos,
)
from fairlead.standin.answer import CREATED_S, InvalidAsk, answer_chat, answer_completion
from fairlead.standin.form import Form
from fairlead.standin.knobs import Knobs, UnknownKnob, parse_knobs, split_model
from fairlead.standin.stream import STALL_S, Frames, paced

# Robyn parses the command line at import already; ours is not for it.
_arguments, sys.argv = sys.argv, sys.argv[:1]
try:
    from robyn import Headers, Request, Response, Robyn, StreamingResponse
    from robyn.argument_parser import Config
finally:
    sys.argv = _arguments

HEADER: Final = "x-standin"
MODELS: Final = ("standin", "echo", "standin-embedding")
_MOST_BODY_BYTES: Final = 64 * 1024 * 1024
_MOST_CHOICES: Final = 8

Reply = Response | StreamingResponse


def serve(host: str, port: int) -> None:
    """Serves until SIGTERM or SIGINT, then leaves with 0.

    Raises `OSError` where the address cannot be bound.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
    for name in [name for name in os.environ if name.startswith("ROBYN_")]:
        del os.environ[name]
    os.environ["ROBYN_MAX_PAYLOAD_SIZE"] = str(_MOST_BODY_BYTES)
    _application().start(host=host, port=port, _check_port=False)


def _application() -> Robyn:
    arguments, sys.argv = sys.argv, sys.argv[:1]
    config = Config()
    sys.argv = arguments
    config.disable_openapi, config.log_level = True, "WARNING"
    app = Robyn(__file__, config)
    app.startup_handler(_leave_on_signals)
    app.get("/health")(_health)
    app.get("/v1/models")(_models)
    app.get("/v1/models/:id")(_model)
    app.post("/v1/chat/completions")(_chat)
    app.post("/v1/completions")(_completions)
    app.post("/v1/embeddings")(_embeddings)
    app.post("/v1/responses")(_responses)
    app.get("/v1beta/models")(_gemini_models)
    app.post("/v1beta/models/:call")(_gemini)
    app.get("/v1beta/models/:model/operations/:operation")(_video)
    app.get("/v1beta/files/:file")(_video_file)
    app.post("/v1/images/generations")(_images)
    app.post("/v1/images/edits")(_image_edits)
    app.post("/v1/moderations")(_moderations)
    app.post("/v1/rerank")(_rerank)
    app.post("/v1/ocr")(_ocr)
    app.post("/v1/audio/speech")(_speech)
    app.post("/v1/audio/transcriptions")(_transcriptions)
    app.post("/v1/audio/translations")(_translations)
    app.get("/search")(_search)
    app.post("/v1/messages")(_messages)
    app.post("/v1/messages/count_tokens")(_count_tokens)
    return app


async def _leave_on_signals() -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Robyn's own way out waits for open streams without end; there is nothing here to save.
        loop.add_signal_handler(number, os._exit, 0)


async def _health() -> Reply:
    return _json({"status": "ok"})


async def _models() -> Reply:
    return _json({"object": "list", "data": [_described(name) for name in MODELS]})


async def _model(request: Request) -> Reply:
    name = request.path_params.get("id", "")
    if name not in MODELS:
        return _error(
            404, f"The model '{name}' does not exist.", code="model_not_found", param="model"
        )
    return _json(_described(name))


async def _chat(request: Request) -> Reply:
    return await _answered(request, "chat")


async def _completions(request: Request) -> Reply:
    return await _answered(request, "completions")


async def _embeddings(request: Request) -> Reply:
    return await _answered(request, "embeddings")


async def _images(request: Request) -> Reply:
    return await _answered(request, "images")


async def _moderations(request: Request) -> Reply:
    return await _answered(request, "moderations")


async def _rerank(request: Request) -> Reply:
    return await _answered(request, "rerank")


async def _ocr(request: Request) -> Reply:
    return await _answered(request, "ocr")


async def _speech(request: Request) -> Reply:
    return await _answered(request, "speech")


async def _search(request: Request) -> Reply:
    return _json(judgements.found(request.query_params.get("q", "") or ""))


async def _image_edits(request: Request) -> Reply:
    async def edited(form: Form, _: str, knobs: Knobs) -> Reply:
        _, picture = form.file("image")
        if form.fields.get("stream") == "true":
            return _streamed(pictures.frames(form.fields, knobs, "image_edit", picture), knobs)
        return await _unary(pictures.pictures(form.fields, knobs, picture), knobs)

    return await _answered_form(request, edited)


async def _transcriptions(request: Request) -> Reply:
    return await _answered_form(request, _transcript)


async def _translations(request: Request) -> Reply:
    return await _answered_form(request, _translation)


async def _translation(form: Form, model: str, knobs: Knobs) -> Reply:
    return await _transcript(form, model, knobs, "translate")


async def _transcript(form: Form, _: str, knobs: Knobs, task: str = "transcribe") -> Reply:
    name, recording = form.file("file")
    text = sound.hear(recording, name)
    if form.fields.get("stream") == "true":
        return _streamed(sound.transcript_frames(text, knobs), knobs)
    wanted = str(form.fields.get("response_format", "json"))
    content_type, body = sound.transcript(text, wanted, task, knobs)
    if isinstance(body, dict):
        return await _unary(body, knobs)
    return Response(knobs.status, Headers({"content-type": content_type}), body)


async def _answered_form(
    request: Request, answer: Callable[[Form, str, Knobs], Awaitable[Reply]]
) -> Reply:
    try:
        form = Form(dict(request.form_data or {}), dict(request.files or {}))
        named = form.fields.get("model")
        if not named:
            raise InvalidAsk("you must provide a model parameter", "model")
        model, knobs = split_model(named, parse_knobs(request.headers.get(HEADER) or ""))
        if knobs.latency_ms:
            await asyncio.sleep(knobs.latency_ms / 1000)
        if knobs.status >= 400:
            return _fault(knobs)
        return await answer(form, model, knobs)
    except InvalidAsk as error:
        return _error(400, str(error), param=error.param)
    except UnknownKnob as error:
        return _error(400, str(error), param="model", code="unknown_knob")


async def _messages(request: Request) -> Reply:
    return await _answered_messages(request, counts=False)


async def _count_tokens(request: Request) -> Reply:
    return await _answered_messages(request, counts=True)


async def _responses(request: Request) -> Reply:
    try:
        body = _body(request)
        model, knobs = split_model(body["model"], parse_knobs(request.headers.get(HEADER) or ""))
        body["model"] = model
        if knobs.latency_ms:
            await asyncio.sleep(knobs.latency_ms / 1000)
        if knobs.status >= 400:
            return _fault(knobs)
        answer = answer_chat(responses.as_chat(body), model, knobs)
        if body.get("stream") is True:
            return _streamed(responses.events(answer, body), knobs)
        return await _unary(responses.response(answer, body), knobs)
    except InvalidAsk as error:
        return _error(400, str(error), param=error.param)
    except UnknownKnob as error:
        return _error(400, str(error), param="model", code="unknown_knob")


async def _gemini_models() -> Reply:
    return _json({"models": [{"name": f"models/{name}", "displayName": name} for name in MODELS]})


async def _gemini(request: Request) -> Reply:
    name, _, action = unquote(request.path_params.get("call", "")).rpartition(":")
    try:
        body = orjson.loads(request.body)
        model, knobs = split_model(name, parse_knobs(request.headers.get(HEADER) or ""))
        if knobs.latency_ms:
            await asyncio.sleep(knobs.latency_ms / 1000)
        if knobs.status >= 400:
            text = orjson.dumps(gemini.error(knobs.status, "The stand-in was asked to fail."))
            return _reply(knobs.status, text[: len(text) // 2] if knobs.malformed else text, knobs)
        if action in ("embedContent", "batchEmbedContents"):
            return await _unary(gemini.embed(body), knobs)
        if action == "predictLongRunning":
            return _json(videos.begin(body, model, knobs))
        answer = answer_chat(gemini.as_chat(body), model, knobs)
        match action:
            case "countTokens":
                return _json(gemini.count(answer))
            case "generateContent":
                return await _unary(gemini.whole(answer, gemini.thinks(body)), knobs)
            case "streamGenerateContent" if request.query_params.get("alt", "") == "sse":
                return _streamed(gemini.events(answer, gemini.thinks(body)), knobs)
        return _json(gemini.error(404, f"'{action}' is not served here."), 404)
    except orjson.JSONDecodeError:
        return _json(gemini.error(400, "Invalid JSON payload received."), 400)
    except (InvalidAsk, UnknownKnob) as error:
        return _json(gemini.error(400, str(error)), 400)


async def _video(request: Request) -> Reply:
    found = videos.operation(
        request.path_params.get("model", ""),
        request.path_params.get("operation", ""),
        f"http://{request.headers.get('host')}",
    )
    if found is None:
        return _json(gemini.error(404, "Operation not found."), 404)
    return _json(found)


async def _video_file(request: Request) -> Reply:
    name, _, action = unquote(request.path_params.get("file", "")).partition(":")
    if action != "download":
        return _json(gemini.error(404, "Not found."), 404)
    if not request.headers.get("x-goog-api-key"):
        return _json(gemini.error(403, "The caller does not have permission."), 403)
    return Response(200, Headers({"content-type": "video/mp4"}), videos.content(name))


async def _answered_messages(request: Request, *, counts: bool) -> Reply:
    try:
        body = _body(request)
        model, knobs = split_model(body["model"], parse_knobs(request.headers.get(HEADER) or ""))
        body["model"] = model
        if knobs.latency_ms:
            await asyncio.sleep(knobs.latency_ms / 1000)
        if knobs.status >= 400:
            text = orjson.dumps(messages.error(knobs.status, "The stand-in was asked to fail."))
            return _reply(knobs.status, text[: len(text) // 2] if knobs.malformed else text, knobs)
        if not request.headers.get("anthropic-version"):
            raise InvalidAsk("anthropic-version: header is required")
        if counts:
            asked = messages.as_chat({"max_tokens": 1, **body})
            answer = answer_chat(asked, model, knobs)
            return _json({"input_tokens": answer.usage["prompt_tokens"] if answer.usage else 0})
        answer = answer_chat(messages.as_chat(body), model, knobs)
        thinking = messages.thinks(body)
        if body.get("stream") is True:
            return _streamed(messages.events(answer, thinking), knobs)
        return await _unary(messages.message(answer, thinking), knobs)
    except (InvalidAsk, UnknownKnob) as error:
        return _json(messages.error(400, str(error)), 400)


async def _answered(request: Request, endpoint: str) -> Reply:
    try:
        body = _body(request)
        model, knobs = split_model(body["model"], parse_knobs(request.headers.get(HEADER) or ""))
        # The knobs are no part of the question: in the header or in the name, the answer is one.
        body["model"] = model
        if knobs.latency_ms:
            await asyncio.sleep(knobs.latency_ms / 1000)
        if knobs.status >= 400:
            return _fault(knobs)
        if endpoint == "embeddings":
            return await _unary(embeddings.embed(body, model, knobs), knobs)
        if endpoint == "images":
            if body.get("stream") is True:
                return _streamed(pictures.frames(body, knobs, "image_generation"), knobs)
            return await _unary(pictures.pictures(body, knobs), knobs)
        if endpoint == "moderations":
            return await _unary(judgements.moderate(body, model), knobs)
        if endpoint == "rerank":
            return await _unary(judgements.rerank(body, model, knobs), knobs)
        if endpoint == "ocr":
            return await _unary(judgements.ocr(body, model), knobs)
        if endpoint == "speech":
            content_type, pieces = sound.speak(body, knobs)
            return _streamed(
                Frames([], pieces, []),
                replace(knobs, content_type=knobs.content_type or content_type),
            )
        choices = _choices(body)
        wire = chat if endpoint == "chat" else completions
        answer = (answer_chat if endpoint == "chat" else answer_completion)(body, model, knobs)
        if body.get("stream") is True:
            asked = body.get("stream_options") or {}
            return _streamed(
                wire.chunks(answer, asked.get("include_usage") is True, choices), knobs
            )
        return await _unary(wire.completion(answer, choices), knobs)
    except InvalidAsk as error:
        return _error(400, str(error), param=error.param)
    except UnknownKnob as error:
        return _error(400, str(error), param="model", code="unknown_knob")


def _body(request: Request) -> dict[str, Any]:
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        raise InvalidAsk("We could not parse the JSON body of your request.") from None
    if not isinstance(body, dict):
        raise InvalidAsk("The body must be a JSON object.")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise InvalidAsk("you must provide a model parameter", "model")
    return body


def _choices(body: dict[str, Any]) -> int:
    choices = body.get("n")
    if choices is None:
        return 1
    if not isinstance(choices, int) or not 1 <= choices <= _MOST_CHOICES:
        raise InvalidAsk(f"'n' must be a whole number from 1 to {_MOST_CHOICES}.", "n")
    return choices


async def _unary(payload: dict[str, Any], knobs: Knobs) -> Reply:
    for name in ("cut_after", "error_after"):
        if getattr(knobs, name) is not None:
            raise InvalidAsk(f"the knob '{name}' needs \"stream\": true.", "stream")
    if knobs.stall_after is not None:
        await asyncio.sleep(STALL_S)
    text = orjson.dumps(payload)
    return _reply(knobs.status, text[: len(text) // 2] if knobs.malformed else text, knobs)


def _streamed(frames: Frames, knobs: Knobs) -> Reply:
    media_type = knobs.content_type or "text/event-stream"
    headers = Headers({"content-type": media_type})
    return StreamingResponse(paced(frames, knobs), knobs.status, headers, media_type)


def _fault(knobs: Knobs) -> Reply:
    kind, code = {
        401: ("invalid_request_error", "invalid_api_key"),
        404: ("invalid_request_error", "model_not_found"),
        429: ("rate_limit_error", "rate_limit_exceeded"),
    }.get(knobs.status, ("server_error" if knobs.status >= 500 else "invalid_request_error", None))
    error = {
        "message": "The stand-in was asked to fail.",
        "type": kind,
        "param": None,
        "code": code,
    }
    text = orjson.dumps({"error": error})
    return _reply(knobs.status, text[: len(text) // 2] if knobs.malformed else text, knobs)


def _described(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": CREATED_S, "owned_by": "fairlead"}


def _json(payload: dict[str, Any], status: int = 200) -> Reply:
    return _reply(status, orjson.dumps(payload), Knobs())


def _error(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> Reply:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return _json({"error": error}, status)


def _reply(status: int, text: bytes, knobs: Knobs) -> Reply:
    headers = {"content-type": knobs.content_type or "application/json"}
    if knobs.retry_after is not None:
        headers["retry-after"] = str(knobs.retry_after)
    return Response(status_code=status, headers=Headers(headers), description=text)

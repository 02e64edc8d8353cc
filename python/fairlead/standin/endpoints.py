"""The stand-in's endpoints: each path with the function that answers it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote

from fairlead.standin import (
    chat,
    completions,
    documents,
    embeddings,
    gemini,
    images,
    messages,
    moderations,
    openai,
    responses,
    sound,
    videos,
)
from fairlead.standin.answer import answer_chat, answer_completion
from fairlead.standin.call import (
    ANTHROPIC,
    GEMINI,
    OPENAI,
    OPENAI_FORM,
    Call,
    Handler,
    endpoint,
    gemini_call,
)
from fairlead.standin.directives import Directives
from fairlead.standin.failure import InvalidRequest
from fairlead.standin.framework import Headers, Request, Response
from fairlead.standin.reply import Reply, json_reply, stream_reply
from fairlead.standin.stream import Frames

MODELS: Final = ("standin", "echo", "standin-embedding")
_MOST_CHOICES: Final = 8


async def _health() -> Reply:
    return json_reply({"status": "ok"})


async def _models() -> Reply:
    return json_reply({"object": "list", "data": [openai.model(name) for name in MODELS]})


async def _model(request: Request) -> Reply:
    name = request.path_params.get("id", "")
    if name not in MODELS:
        error = openai.error(404, f"The model '{name}' does not exist.", "model")
        return json_reply(error, Directives(status=404))
    return json_reply(openai.model(name))


async def _gemini_models() -> Reply:
    models = [{"name": f"models/{name}", "displayName": name} for name in MODELS]
    return json_reply({"models": models})


async def _search(request: Request) -> Reply:
    return json_reply(documents.search_results(request.query_params.get("q", "") or ""))


async def _video(request: Request) -> Reply:
    operation = videos.operation(
        request.path_params.get("model", ""),
        request.path_params.get("operation", ""),
        f"http://{request.headers.get('host')}",
    )
    if operation is None:
        return _gemini_error(404, "Operation not found.")
    return json_reply(operation)


async def _video_file(request: Request) -> Reply:
    name, _, method = unquote(request.path_params.get("file", "")).partition(":")
    if method != "download":
        return _gemini_error(404, "Not found.")
    if not request.headers.get("x-goog-api-key"):
        return _gemini_error(403, "The caller does not have permission.")
    return Response(200, Headers({"content-type": "video/mp4"}), videos.content(name))


def _answer_chat(call: Call) -> dict[str, Any] | Frames:
    choices = _choices(call.body)
    answer = answer_chat(call.body, call.model, call.directives)
    if _streams(call):
        return chat.chunks(answer, _includes_usage(call), choices)
    return chat.completion(answer, choices)


def _answer_completion(call: Call) -> dict[str, Any] | Frames:
    choices = _choices(call.body)
    answer = answer_completion(call.body, call.model, call.directives)
    if _streams(call):
        return completions.chunks(answer, _includes_usage(call), choices)
    return completions.completion(answer, choices)


def _answer_response(call: Call) -> dict[str, Any] | Frames:
    answer = answer_chat(responses.as_chat(call.body), call.model, call.directives)
    if _streams(call):
        return responses.events(answer, call.body)
    return responses.response(answer, call.body)


def _count_response(call: Call) -> Reply:
    answer = answer_chat(responses.as_chat(call.body), call.model, call.directives)
    tokens = answer.usage["prompt_tokens"] if answer.usage else 0
    return json_reply({"object": "response.input_tokens", "input_tokens": tokens})


def _compact_response(call: Call) -> dict[str, Any]:
    answer = answer_chat(responses.as_chat(call.body), call.model, call.directives)
    return responses.compaction(answer, call.body)


def _generate_image(call: Call) -> dict[str, Any] | Frames:
    if _streams(call):
        return images.frames(call.body, call.directives, "image_generation")
    return images.images(call.body, call.directives)


def _edit_image(call: Call) -> dict[str, Any] | Frames:
    _, original = call.file("image")
    if _form_streams(call):
        return images.frames(call.body, call.directives, "image_edit", original)
    return images.images(call.body, call.directives, original)


def _synthesize(call: Call) -> Reply:
    content_type, pieces = sound.synthesize(call.body, call.directives)
    directives = replace(call.directives, content_type=call.directives.content_type or content_type)
    return stream_reply(Frames([], pieces, []), directives)


def _transcribe(call: Call, task: str = "transcribe") -> dict[str, Any] | Frames | Reply:
    name, recording = call.file("file")
    text = sound.transcribe(recording, name)
    if _form_streams(call):
        return sound.transcript_frames(text, call.directives)
    wanted = str(call.body.get("response_format", "json"))
    content_type, body = sound.transcript(text, wanted, task, call.directives)
    if isinstance(body, dict):
        return body
    return Response(call.directives.status, Headers({"content-type": content_type}), body)


def _answer_message(call: Call) -> dict[str, Any] | Frames:
    _check_version(call)
    answer = answer_chat(messages.as_chat(call.body), call.model, call.directives)
    thinking = messages.thinks(call.body)
    if _streams(call):
        return messages.events(answer, thinking)
    return messages.message(answer, thinking)


def _count_tokens(call: Call) -> Reply:
    _check_version(call)
    answer = answer_chat(
        messages.as_chat({"max_tokens": 1, **call.body}), call.model, call.directives
    )
    return json_reply({"input_tokens": answer.usage["prompt_tokens"] if answer.usage else 0})


def _answer_gemini(call: Call) -> dict[str, Any] | Frames | Reply:
    _, method = gemini_call(call.request)
    if method in ("embedContent", "batchEmbedContents"):
        return gemini.embed(call.body)
    if method == "predictLongRunning":
        return json_reply(videos.start(call.body, call.model, call.directives))
    answer = answer_chat(gemini.as_chat(call.body), call.model, call.directives)
    match method:
        case "countTokens":
            return json_reply(gemini.count(answer))
        case "generateContent":
            return gemini.whole(answer, gemini.thinks(call.body))
        case "streamGenerateContent" if call.request.query_params.get("alt", "") == "sse":
            return gemini.events(answer, gemini.thinks(call.body))
    return _gemini_error(404, f"'{method}' is not served here.")


def _gemini_error(status: int, text: str) -> Reply:
    return json_reply(gemini.error(status, text), Directives(status=status))


def _check_version(call: Call) -> None:
    if not call.request.headers.get("anthropic-version"):
        raise InvalidRequest("anthropic-version: header is required")


def _streams(call: Call) -> bool:
    return call.body.get("stream") is True


def _form_streams(call: Call) -> bool:
    return bool(call.body.get("stream") == "true")


def _includes_usage(call: Call) -> bool:
    return (call.body.get("stream_options") or {}).get("include_usage") is True


def _choices(body: dict[str, Any]) -> int:
    choices = body.get("n")
    if choices is None:
        return 1
    if not isinstance(choices, int) or not 1 <= choices <= _MOST_CHOICES:
        raise InvalidRequest(f"'n' must be a whole number from 1 to {_MOST_CHOICES}.", "n")
    return choices


PAGES: Final[dict[str, Callable[..., Any]]] = {
    "/health": _health,
    "/v1/models": _models,
    "/v1/models/:id": _model,
    "/v1beta/models": _gemini_models,
    "/v1beta/models/:model/operations/:operation": _video,
    "/v1beta/files/:file": _video_file,
    "/search": _search,
}
"""Handlers of GET by their paths."""

CALLS: Final[dict[str, Handler]] = {
    "/v1/chat/completions": endpoint(OPENAI, _answer_chat),
    "/v1/completions": endpoint(OPENAI, _answer_completion),
    "/v1/embeddings": endpoint(
        OPENAI, lambda call: embeddings.embed(call.body, call.model, call.directives)
    ),
    "/v1/responses": endpoint(OPENAI, _answer_response),
    "/v1/responses/input_tokens": endpoint(OPENAI, _count_response),
    "/v1/responses/compact": endpoint(OPENAI, _compact_response),
    "/v1/images/generations": endpoint(OPENAI, _generate_image),
    "/v1/images/edits": endpoint(OPENAI_FORM, _edit_image),
    "/v1/moderations": endpoint(OPENAI, lambda call: moderations.moderate(call.body, call.model)),
    "/v1/rerank": endpoint(
        OPENAI, lambda call: documents.rerank(call.body, call.model, call.directives)
    ),
    "/v1/ocr": endpoint(OPENAI, lambda call: documents.ocr(call.body, call.model)),
    "/v1/audio/speech": endpoint(OPENAI, _synthesize),
    "/v1/audio/transcriptions": endpoint(OPENAI_FORM, _transcribe),
    "/v1/audio/translations": endpoint(OPENAI_FORM, lambda call: _transcribe(call, "translate")),
    "/v1/messages": endpoint(ANTHROPIC, _answer_message),
    "/v1/messages/count_tokens": endpoint(ANTHROPIC, _count_tokens),
    "/v1beta/models/:call": endpoint(GEMINI, _answer_gemini),
}
"""Handlers of POST by their paths."""

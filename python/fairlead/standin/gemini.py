"""The wire shapes of Google's `/v1beta/models/{model}:...`: generate, stream, count and embed."""

import base64
from collections.abc import Iterator
from typing import Any, Final

import orjson

from fairlead.standin.answer import THOUGHT, Answer, identifier
from fairlead.standin.embeddings import DEFAULT_DIMENSIONS, vector_of
from fairlead.standin.failure import FAULT_MESSAGE, InvalidRequest
from fairlead.standin.stream import Frames, frame

_FINISH_REASONS: Final = {"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP"}
_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def as_chat(body: dict[str, Any]) -> dict[str, Any]:
    """The request as a chat completion's body, which `answer_chat` reads. Raises `InvalidRequest`."""
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        raise InvalidRequest("contents is not specified", "contents")
    for name in ("model", "messages", "stream"):
        if name in body:
            raise InvalidRequest(f'Invalid JSON payload received. Unknown name "{name}"', name)
    messages = [_message(content) for content in contents]
    if system := body.get("systemInstruction"):
        messages.insert(0, {"role": "system", "content": system.get("parts")})
    config = body.get("generationConfig") or {}
    chat: dict[str, Any] = {"messages": messages}
    if (most := config.get("maxOutputTokens")) is not None:
        chat["max_tokens"] = most
    functions = [
        {
            "name": function.get("name"),
            # The client of Python spells it as the protocol does, which counts as well.
            "parameters": function.get("parametersJsonSchema")
            or function.get("parameters_json_schema")
            or _json_schema(function.get("parameters")),
        }
        for tool in body.get("tools") or []
        for function in tool.get("functionDeclarations") or []
    ]
    if functions:
        chat["tools"] = [{"function": function} for function in functions]
    calling = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    if calling.get("mode") == "NONE":
        chat["tool_choice"] = "none"
    elif names := calling.get("allowedFunctionNames"):
        chat["tool_choice"] = {"function": {"name": names[0]}}
    if config.get("responseMimeType") == "application/json":
        schema = config.get("responseJsonSchema") or _json_schema(config.get("responseSchema"))
        chat["response_format"] = (
            {"type": "json_schema", "json_schema": {"schema": schema}}
            if schema
            else {"type": "json_object"}
        )
    return chat


def thinks(body: dict[str, Any]) -> bool:
    """Whether the request asks for reasoning."""
    config = body.get("generationConfig") or {}
    thinking = config.get("thinkingConfig") or config.get("thinking_config") or {}
    return True in (thinking.get("includeThoughts"), thinking.get("include_thoughts"))


def whole(answer: Answer, thinking: bool) -> dict[str, Any]:
    """The unary answer."""
    parts = _thoughts() if thinking else []
    parts += [_call(answer)] if answer.tool_call else [{"text": answer.text()}]
    if thinking and not answer.tool_call:
        parts[-1]["thoughtSignature"] = _signature(answer)
    return _chunk(answer, parts, _FINISH_REASONS[answer.finish_reason]) | _usage(answer)


def events(answer: Answer, thinking: bool) -> Frames:
    """The streamed answer; nothing marks its end but the reason in the last chunk."""

    def content() -> Iterator[bytes]:
        if answer.tool_call:
            yield frame(_chunk(answer, [_call(answer)]))
        for text in answer.pieces():
            yield frame(_chunk(answer, [{"text": text}]))

    head = [frame(_chunk(answer, _thoughts()))] if thinking else []
    last: dict[str, Any] = {"text": ""}
    if thinking and not answer.tool_call:
        last["thoughtSignature"] = _signature(answer)
    end = _chunk(answer, [last], _FINISH_REASONS[answer.finish_reason])
    failure = frame(error(500, FAULT_MESSAGE))
    return Frames(head, content(), [frame(end | _usage(answer))], failure)


def count(answer: Answer) -> dict[str, Any]:
    """How many tokens the request has."""
    return {"totalTokens": answer.usage["prompt_tokens"] if answer.usage else 0}


def embed(body: dict[str, Any]) -> dict[str, Any]:
    """One vector, or one for each entry of `requests`. Raises `InvalidRequest`."""
    if (requests := body.get("requests")) is not None:
        return {"embeddings": [_embedding(request) for request in requests]}
    return {"embedding": _embedding(body)}


def error(status: int, text: str) -> dict[str, Any]:
    """An error body."""
    name = _STATUSES.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")
    return {"error": {"code": status, "message": text, "status": name}}


def _json_schema(own: Any) -> Any:
    """Google's spelling of types as everybody else spells them."""
    if isinstance(own, list):
        return [_json_schema(one) for one in own]
    if not isinstance(own, dict):
        return own
    return {
        name: value.lower() if name == "type" and isinstance(value, str) else _json_schema(value)
        for name, value in own.items()
    }


def _embedding(request: dict[str, Any]) -> dict[str, Any]:
    parts = (request.get("content") or {}).get("parts")
    if not parts:
        raise InvalidRequest("content is not specified", "content")
    words = " ".join(str(part.get("text", "")) for part in parts).lower().split()
    return {"values": vector_of(words, request.get("outputDimensionality") or DEFAULT_DIMENSIONS)}


def _message(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict) or content.get("role", "user") not in ("user", "model"):
        raise InvalidRequest("Please use a valid role: user, model.", "contents")
    parts = content.get("parts") or []
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    if results:
        result = results[-1].get("response") or {}
        text = result.get("output") or orjson.dumps(result).decode()
        return {"role": "tool", "content": text}
    calls = [part for part in parts if "functionCall" in part]
    if calls and not calls[0].get("thoughtSignature"):
        raise InvalidRequest("Function call is missing a thought_signature in functionCall parts.")
    role = "assistant" if content.get("role") == "model" else "user"
    return {"role": role, "content": parts}


def _chunk(
    answer: Answer, parts: list[dict[str, Any]], finish_reason: str | None = None
) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish_reason:
        candidate["finishReason"] = finish_reason
    return {"candidates": [candidate], "modelVersion": answer.model, "responseId": answer.id}


def _thoughts() -> list[dict[str, Any]]:
    return [{"text": THOUGHT, "thought": True}]


def _call(answer: Answer) -> dict[str, Any]:
    call = answer.tool_call
    if call is None:
        return {"text": ""}
    part = {"functionCall": {"name": call.name, "args": orjson.loads(call.arguments)}}
    # A call is signed always, and taken back with its signature alone.
    return part | {"thoughtSignature": _signature(answer)}


def _signature(answer: Answer) -> str:
    return base64.b64encode(identifier("", answer.id.encode()).encode()).decode()


def _usage(answer: Answer) -> dict[str, Any]:
    if not answer.usage:
        return {}
    cached = answer.usage["prompt_tokens_details"]["cached_tokens"]
    thought = answer.usage["completion_tokens_details"]["reasoning_tokens"]
    usage = {
        "promptTokenCount": answer.usage["prompt_tokens"],
        "candidatesTokenCount": max(answer.usage["completion_tokens"] - thought, 0),
        "totalTokenCount": answer.usage["total_tokens"],
    }
    usage |= {"cachedContentTokenCount": cached} if cached else {}
    return {"usageMetadata": usage | ({"thoughtsTokenCount": thought} if thought else {})}

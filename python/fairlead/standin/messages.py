"""The wire shapes of Anthropic's `/v1/messages`: one object, or named events."""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from fairlead.standin.answer import THOUGHT, Answer, identifier
from fairlead.standin.failure import FAULT_MESSAGE, InvalidRequest
from fairlead.standin.stream import Frames, event

_STOP_REASONS: Final = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def as_chat(body: dict[str, Any]) -> dict[str, Any]:
    """The request as a chat completion's body, which `answer_chat` reads. Raises `InvalidRequest`."""
    most = body.get("max_tokens")
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise InvalidRequest("max_tokens: Field required", "max_tokens")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise InvalidRequest("messages: at least one message is required", "messages")
    if body.get("temperature") is not None and not 0 <= body["temperature"] <= 1:
        raise InvalidRequest("temperature: range: 0..1", "temperature")
    chat: dict[str, Any] = {"messages": [*_system(body), *map(_message, messages)]}
    chat["max_tokens"] = most
    if tools := [tool for tool in body.get("tools") or [] if isinstance(tool, dict)]:
        chat["tools"] = [
            {
                "function": {
                    "name": tool.get("name"),
                    "parameters": tool.get("input_schema"),
                }
            }
            for tool in tools
        ]
    match (body.get("tool_choice") or {}).get("type"):
        case "none":
            chat["tool_choice"] = "none"
        case "tool":
            chat["tool_choice"] = {"function": {"name": body["tool_choice"].get("name")}}
    wanted = (body.get("output_config") or {}).get("format")
    if wanted:
        chat["response_format"] = {"type": "json_schema", "json_schema": wanted}
    return chat


def thinks(body: dict[str, Any]) -> bool:
    """Whether the request asks for thinking."""
    return (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")


def message(answer: Answer, thinking: bool = False) -> dict[str, Any]:
    """The unary answer."""
    content: list[dict[str, Any]] = []
    if thinking:
        content.append({"type": "thinking", "thinking": THOUGHT, "signature": _signature(answer)})
    if call := answer.tool_call:
        content.append(
            {
                "type": "tool_use",
                "id": _tool_id(call.id),
                "name": call.name,
                "input": orjson.loads(call.arguments),
            }
        )
    else:
        content.append({"type": "text", "text": answer.text()})
    return _envelope(answer) | {
        "content": content,
        "stop_reason": _STOP_REASONS[answer.finish_reason],
        "usage": _usage(answer),
    }


def events(answer: Answer, thinking: bool = False) -> Frames:
    """The streamed answer."""
    opening = _envelope(answer) | {"content": [], "usage": _usage(answer) | {"output_tokens": 1}}
    head = [event("message_start", message=opening), event("ping")]
    index = 0
    if thinking:
        block = {"type": "thinking", "thinking": "", "signature": ""}
        head += [
            event("content_block_start", index=0, content_block=block),
            _delta(0, type="thinking_delta", thinking=THOUGHT),
            _delta(0, type="signature_delta", signature=_signature(answer)),
            event("content_block_stop", index=0),
        ]
        index = 1
    first: dict[str, Any] = {"type": "text", "text": ""}
    if call := answer.tool_call:
        first = {"type": "tool_use", "id": _tool_id(call.id), "name": call.name, "input": {}}
    head.append(event("content_block_start", index=index, content_block=first))

    def content() -> Iterator[bytes]:
        if call := answer.tool_call:
            for piece in call.pieces():
                yield _delta(index, type="input_json_delta", partial_json=piece)
        for text in answer.pieces():
            yield _delta(index, type="text_delta", text=text)

    last = {"stop_reason": _STOP_REASONS[answer.finish_reason], "stop_sequence": None}
    usage = {"output_tokens": _usage(answer)["output_tokens"]}
    if thinking:
        usage |= {"output_tokens_details": _usage(answer).get("output_tokens_details")}
    tail = [
        event("content_block_stop", index=index),
        event("message_delta", delta=last, usage=usage),
        event("message_stop"),
    ]
    return Frames(head, content(), tail, error_event())


def error_event() -> bytes:
    """The event that ends a stream which fails."""
    return event("error", error=_error("api_error", FAULT_MESSAGE))


def error(status: int, text: str) -> dict[str, Any]:
    """An error body."""
    kinds = {
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        429: "rate_limit_error",
        529: "overloaded_error",
    }
    kind = kinds.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": _error(kind, text), "request_id": "req_standin"}


def _error(kind: str, text: str) -> dict[str, str]:
    return {"type": kind, "message": text}


def _system(body: dict[str, Any]) -> list[dict[str, Any]]:
    system = body.get("system")
    return [{"role": "system", "content": system}] if system else []


def _message(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict) or given.get("role") not in ("user", "assistant"):
        raise InvalidRequest("messages: each must have the role user or assistant", "messages")
    content = given.get("content")
    blocks = content if isinstance(content, list) else []
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if not results:
        return {"role": given["role"], "content": content}
    result = results[-1].get("content")
    marked = "failed: " if results[-1].get("is_error") else ""
    text = result if isinstance(result, str) else " ".join(b.get("text", "") for b in result or [])
    return {"role": "tool", "content": marked + text}


def _envelope(answer: Answer) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "stop_reason": None,
        "stop_sequence": None,
    }


def _usage(answer: Answer) -> dict[str, Any]:
    if not answer.usage:
        return {"input_tokens": 0, "output_tokens": 0}
    cached = answer.usage["prompt_tokens_details"]["cached_tokens"]
    thought = answer.usage["completion_tokens_details"]["reasoning_tokens"]
    return {
        "input_tokens": max(answer.usage["prompt_tokens"] - cached, 0),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": answer.usage["completion_tokens"],
        "output_tokens_details": {"thinking_tokens": thought},
    }


def _signature(answer: Answer) -> str:
    return identifier("sig_", answer.id.encode())


def _tool_id(call_id: str) -> str:
    return call_id.replace("call_", "toolu_", 1)


def _delta(index: int, **delta: Any) -> bytes:
    return event("content_block_delta", index=index, delta=delta)

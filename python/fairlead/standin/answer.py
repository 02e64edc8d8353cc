"""The content of an answer, whatever the wire: pieces of text or one tool call, with the token counts to go with it."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, Final

import orjson

from fairlead.standin.directives import Directives
from fairlead.standin.example import example_of
from fairlead.standin.failure import InvalidRequest

CREATED_S: Final = 1_767_225_600
"""Time of every answer: 2026-01-01. A clock would make two equal requests differ."""
THOUGHT: Final = "The stand-in thinks before it speaks."
"""The text of all reasoning."""
_QUOTED_CHARS: Final = 400
_ARGUMENT_CHARS: Final = 24
_ORDERED_CALL: Final = re.compile(r"<call>(.*?)</call>", re.DOTALL)
_ORDERED_TEXT: Final = re.compile(r"<say>(.*?)</say>", re.DOTALL)
_PIECE: Final = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of the function that the request offers or names; `arguments` are JSON."""

    id: str
    name: str
    arguments: str

    def pieces(self) -> Iterator[str]:
        """The arguments in the pieces that a stream sends one by one."""
        for start in range(0, len(self.arguments), _ARGUMENT_CHARS):
            yield self.arguments[start : start + _ARGUMENT_CHARS]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. `words` are repeated or cut to `count` pieces; a tool call has no words."""

    id: str
    model: str
    words: tuple[str, ...]
    count: int
    chunk_bytes: int | None
    finish_reason: str
    tool_call: ToolCall | None
    usage: dict[str, Any] | None

    def pieces(self) -> Iterator[str]:
        """The text in the pieces that a stream sends one by one."""
        for word in islice(cycle(self.words), self.count):
            yield word if self.chunk_bytes is None else _fit(word, self.chunk_bytes)

    def text(self) -> str:
        return "".join(self.pieces())


def answer_chat(body: dict[str, Any], model: str, directives: Directives) -> Answer:
    """Answers a chat request. `model` is the name without directives. Raises `InvalidRequest`."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise InvalidRequest("'messages' must be a list with at least one message.", "messages")
    if not all(isinstance(message, dict) for message in messages):
        raise InvalidRequest("each entry of 'messages' must be an object.", "messages")
    last = messages[-1]
    last_text = _text_of(last)
    prompt_tokens = sum(count_tokens(_text_of(message)) + 4 for message in messages)
    if last.get("role") != "tool":
        call = _ordered_call(body, last_text) or _tool_call(body, last_text)
        if call and not _ordered_text(last_text):
            return _build_answer(body, model, directives, call, prompt_tokens)
    if (ordered := _ordered_text(last_text)) is not None:
        text = ordered
    elif (formatted := _formatted(body)) is not None:
        text = formatted
    elif model == "echo":
        text = last_text
    elif last.get("role") == "tool":
        text = f"The tool answered: {last_text[:_QUOTED_CHARS]}"
    else:
        text = f"Hello from the stand-in provider. You said: {last_text[:_QUOTED_CHARS]}"
    return _build_answer(body, model, directives, text, prompt_tokens)


def answer_completion(body: dict[str, Any], model: str, directives: Directives) -> Answer:
    """Answers a text completion. `model` is the name without directives. Raises `InvalidRequest`."""
    given = body.get("prompt", "")
    prompt = given if isinstance(given, str) else orjson.dumps(given).decode()
    text = (
        prompt
        if model == "echo"
        else f"Hello from the stand-in provider. You wrote: {prompt[:_QUOTED_CHARS]}"
    )
    return _build_answer(body, model, directives, text, count_tokens(prompt))


def count_tokens(text: str) -> int:
    """About what a tokeniser counts for English: four characters a token."""
    return -(-len(text) // 4)


def input_text(part: Any) -> str:
    """The text of an entry of a list of inputs or documents: a text, or an object with one."""
    return str(part.get("text", "")) if isinstance(part, dict) else str(part)


def identifier(prefix: str, *parts: bytes) -> str:
    """A name that is the same for the same request."""
    return f"{prefix}{hashlib.sha256(b'|'.join(parts)).hexdigest()[:24]}"


def _build_answer(
    body: dict[str, Any],
    model: str,
    directives: Directives,
    content: str | ToolCall,
    prompt_tokens: int,
) -> Answer:
    call = content if isinstance(content, ToolCall) else None
    words = tuple(_PIECE.findall(content)) if isinstance(content, str) else ()
    seed = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    count = len(words) if directives.chunks is None else directives.chunks
    most = body.get("max_completion_tokens", body.get("max_tokens"))
    finish_reason = "tool_calls" if call else "stop"
    if words and isinstance(most, int) and 0 <= most < count:
        count, finish_reason = most, "length"
    completion_tokens = count_tokens(call.arguments) if call else count
    return Answer(
        id=identifier("", seed, repr(directives).encode()),
        model=model,
        words=words,
        count=count if words else 0,
        chunk_bytes=directives.chunk_bytes,
        finish_reason=finish_reason,
        tool_call=call,
        usage=usage_of(directives, prompt_tokens, completion_tokens),
    )


def usage_of(
    directives: Directives, prompt_tokens: int, completion_tokens: int
) -> dict[str, Any] | None:
    """The usage object in OpenAI's shape, or `None` where the directives forbid it."""
    if not directives.usage:
        return None
    prompt = prompt_tokens if directives.tokens_in is None else directives.tokens_in
    completion = completion_tokens if directives.tokens_out is None else directives.tokens_out
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": directives.tokens_cached},
        "completion_tokens_details": {"reasoning_tokens": directives.tokens_reasoning},
    }


def _tool_call(body: dict[str, Any], last_text: str) -> ToolCall | None:
    tools = [
        tool["function"]
        for tool in body.get("tools") or []
        if isinstance(tool, dict) and tool.get("function")
    ]
    choice = body.get("tool_choice")
    if not tools or choice == "none":
        return None
    wanted = choice.get("function", {}).get("name") if isinstance(choice, dict) else None
    function = next((f for f in tools if f.get("name") == wanted), None) if wanted else tools[0]
    if function is None:
        raise InvalidRequest(
            f"'tool_choice' names '{wanted}', which is not among 'tools'.", "tool_choice"
        )
    name = str(function.get("name"))
    arguments = orjson.dumps(example_of(function.get("parameters") or {"type": "object"})).decode()
    return ToolCall(identifier("call_", name.encode(), last_text.encode()), name, arguments)


def _ordered_call(body: dict[str, Any], last_text: str) -> ToolCall | None:
    """The call that the last message orders between `<call>` and `</call>`: JSON with `name` and `arguments`."""
    ordered = _ORDERED_CALL.search(last_text)
    names = {(tool.get("function") or {}).get("name") for tool in body.get("tools") or []}
    try:
        wanted = orjson.loads(ordered[1]) if ordered else {}
    except orjson.JSONDecodeError:
        raise InvalidRequest("the text between <call> and </call> is not JSON.") from None
    if wanted.get("name") not in names - {None}:
        return None
    arguments = orjson.dumps(wanted.get("arguments", {})).decode()
    name = str(wanted["name"])
    return ToolCall(identifier("call_", name.encode(), last_text.encode()), name, arguments)


def _ordered_text(last_text: str) -> str | None:
    """The answer that the last message orders between `<say>` and `</say>`."""
    ordered = _ORDERED_TEXT.search(last_text)
    return ordered[1] if ordered else None


def _formatted(body: dict[str, Any]) -> str | None:
    wanted = body.get("response_format")
    match wanted.get("type") if isinstance(wanted, dict) else None:
        case "json_object":
            return '{"answer": "example"}'
        case "json_schema":
            schema = (wanted or {}).get("json_schema", {}).get("schema")
            if not isinstance(schema, dict):
                raise InvalidRequest(
                    "'response_format.json_schema.schema' must be an object.", "response_format"
                )
            return orjson.dumps(example_of(schema)).decode()
        case _:
            return None


def _text_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return " ".join(
        str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part
    )


def _fit(word: str, size_bytes: int) -> str:
    plain = word.encode("ascii", "replace").decode()
    return plain[:size_bytes].ljust(size_bytes, ".")

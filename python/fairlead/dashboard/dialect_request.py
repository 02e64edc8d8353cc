"""A conversation as a request in each dialect of the gateway, and the text and tokens of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args
from urllib.parse import quote

Dialect = Literal["openai", "responses", "anthropic", "gemini"]
DIALECTS: Final[tuple[Dialect, ...]] = get_args(Dialect)
DIALECT_NAMES: Final[Mapping[str, str]] = {
    "openai": "OpenAI chat completions",
    "responses": "OpenAI responses",
    "anthropic": "Anthropic messages",
    "gemini": "Gemini generateContent",
}
# Anthropic's API takes no request without a bound.
ANTHROPIC_TOKENS: Final = 1024


@dataclass(frozen=True, slots=True)
class Turn:
    """The words of one side of a conversation."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns and settings for a model; `max_tokens` bounds its answer, `temperature` is 0 to 2."""

    model: str
    turns: tuple[Turn, ...]
    system: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    is_streamed: bool = False


@dataclass(frozen=True, slots=True)
class DialectRequest:
    """A POST request: its path with the query, and its JSON body."""

    dialect: Dialect
    path: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AnswerTokens:
    """Tokens that a provider counted; None where the answer does not say."""

    input: int | None
    output: int | None


def make_request(dialect: Dialect, conversation: Conversation) -> DialectRequest:
    """The request of a conversation."""
    path, body = _MAKERS[dialect](conversation)
    return DialectRequest(
        dialect, path, {name: each for name, each in body.items() if each is not None}
    )


def text_of(dialect: Dialect, answer: Any) -> str:
    """The text of a whole answer; nothing for an answer of another shape."""
    try:
        return "".join(_TEXTS[dialect](answer))
    except (KeyError, IndexError, TypeError):
        return ""


def tokens_of(dialect: Dialect, answer: Any) -> AnswerTokens:
    """The tokens of a whole answer."""
    member, taken, given = _COUNTS[dialect]
    counts = answer.get(member) if isinstance(answer, Mapping) else None
    if not isinstance(counts, Mapping):
        return AnswerTokens(None, None)
    return AnswerTokens(_count(counts.get(taken)), _count(counts.get(given)))


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _openai(conversation: Conversation) -> tuple[str, dict[str, Any]]:
    messages = [{"role": turn.role, "content": turn.text} for turn in conversation.turns]
    if conversation.system:
        messages.insert(0, {"role": "system", "content": conversation.system})
    return "/v1/chat/completions", {
        "model": conversation.model,
        "messages": messages,
        "max_tokens": conversation.max_tokens,
        "temperature": conversation.temperature,
        "stream": conversation.is_streamed or None,
        "stream_options": {"include_usage": True} if conversation.is_streamed else None,
    }


def _responses(conversation: Conversation) -> tuple[str, dict[str, Any]]:
    return "/v1/responses", {
        "model": conversation.model,
        "input": [{"role": turn.role, "content": turn.text} for turn in conversation.turns],
        "instructions": conversation.system or None,
        "max_output_tokens": conversation.max_tokens,
        "temperature": conversation.temperature,
        "stream": conversation.is_streamed or None,
    }


def _anthropic(conversation: Conversation) -> tuple[str, dict[str, Any]]:
    return "/v1/messages", {
        "model": conversation.model,
        "max_tokens": conversation.max_tokens or ANTHROPIC_TOKENS,
        "system": conversation.system or None,
        "messages": [{"role": turn.role, "content": turn.text} for turn in conversation.turns],
        "temperature": conversation.temperature,
        "stream": conversation.is_streamed or None,
    }


def _gemini(conversation: Conversation) -> tuple[str, dict[str, Any]]:
    verb = "streamGenerateContent?alt=sse" if conversation.is_streamed else "generateContent"
    settings = {"maxOutputTokens": conversation.max_tokens, "temperature": conversation.temperature}
    return f"/v1beta/models/{quote(conversation.model, safe='/')}:{verb}", {
        "contents": [
            {
                "role": "model" if turn.role == "assistant" else "user",
                "parts": [{"text": turn.text}],
            }
            for turn in conversation.turns
        ],
        "systemInstruction": {"parts": [{"text": conversation.system}]}
        if conversation.system
        else None,
        "generationConfig": {name: each for name, each in settings.items() if each is not None}
        or None,
    }


def _responses_texts(answer: Any) -> list[str]:
    return [
        part["text"]
        for item in answer["output"]
        if item["type"] == "message"
        for part in item["content"]
        if part["type"] == "output_text"
    ]


def _gemini_texts(answer: Any) -> list[str]:
    parts = answer["candidates"][0]["content"]["parts"]
    return [part.get("text", "") for part in parts if not part.get("thought")]


_MAKERS: Final = {
    "openai": _openai,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
_TEXTS: Final[Mapping[str, Any]] = {
    "openai": lambda answer: [answer["choices"][0]["message"]["content"] or ""],
    "responses": _responses_texts,
    "anthropic": lambda answer: [
        part["text"] for part in answer["content"] if part["type"] == "text"
    ],
    "gemini": _gemini_texts,
}
_COUNTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "openai": ("usage", "prompt_tokens", "completion_tokens"),
    "responses": ("usage", "input_tokens", "output_tokens"),
    "anthropic": ("usage", "input_tokens", "output_tokens"),
    "gemini": ("usageMetadata", "promptTokenCount", "candidatesTokenCount"),
}

"""The answer that a caller gets of a tool's turn, in OpenAI's dialect.

The tool's text is the answer. Its reasoning, plans and actions are the reasoning before it, so that a caller
sees the actions and no client mistakes them for the answer.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson

_TITLE_CHARS: Final = 500
_FINISHES: Final = {
    "end_turn": "stop",
    "max_tokens": "length",
    "max_turn_requests": "length",
    "refusal": "content_filter",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of what the tool says."""

    kind: Literal["content", "reasoning_content"]
    text: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended; `usage` is OpenAI's, where the tool told it."""

    finish: str
    usage: dict[str, Any] | None = None


def piece_of(update: Any) -> Piece | None:
    """The part that an update of a session is; None for one that says nothing to a caller."""
    if not isinstance(update, dict):
        return None
    content = update.get("content")
    match update.get("sessionUpdate"):
        case "agent_message_chunk":
            return Piece("content", text) if (text := _text(content)) else None
        case "agent_thought_chunk":
            return Piece("reasoning_content", text) if (text := _text(content)) else None
        case "tool_call":
            return _line(f"{update.get('kind') or 'act'}: {update.get('title') or ''}")
        case "tool_call_update" if update.get("status") == "failed":
            return _line(f"failed: {update.get('title') or update.get('toolCallId') or ''}")
        case "plan":
            return _plan(update.get("entries"))
        case _:
            return None


def ending_of(result: dict[str, Any]) -> Ending:
    """The end of a turn, from the answer to its prompt."""
    finish = _FINISHES.get(str(result.get("stopReason")), "stop")
    return Ending(finish, _usage(result.get("usage")))


class Writer:
    """The chunks, or the whole, of one answer."""

    def __init__(self, model: str) -> None:
        self._head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
        }

    def first(self) -> bytes:
        """The chunk before all others."""
        return self._chunk([self._choice({"role": "assistant", "content": ""}, None)])

    def part(self, piece: Piece) -> bytes:
        """A chunk with a part of the answer."""
        return self._chunk([self._choice({piece.kind: piece.text}, None)])

    def last(self, ending: Ending, *, wants_usage: bool) -> bytes:
        """The chunks after all others."""
        chunks = self._chunk([self._choice({}, ending.finish)])
        if wants_usage and ending.usage is not None:
            chunks += self._chunk([], usage=ending.usage)
        return chunks + b"data: [DONE]\n\n"

    def whole(self, pieces: list[Piece], ending: Ending) -> bytes:
        """The body of a plain answer."""
        texts = {
            kind: "".join(each.text for each in pieces if each.kind == kind)
            for kind in ("content", "reasoning_content")
        }
        message = {"role": "assistant", **{kind: text for kind, text in texts.items() if text}}
        message.setdefault("content", "")
        choice = {"index": 0, "message": message, "finish_reason": ending.finish}
        usage = {} if ending.usage is None else {"usage": ending.usage}
        whole = {**self._head, "object": "chat.completion", "choices": [choice], **usage}
        return orjson.dumps(whole)

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        chunk = {**self._head, "object": "chat.completion.chunk", "choices": choices, **more}
        return b"data: " + orjson.dumps(chunk) + b"\n\n"

    def _choice(self, delta: dict[str, str], finish: str | None) -> dict[str, Any]:
        return {"index": 0, "delta": delta, "finish_reason": finish}


def _text(content: Any) -> str:
    if isinstance(content, dict) and content.get("type") == "text":
        text = content.get("text")
        return text if isinstance(text, str) else ""
    return ""


def _line(text: str) -> Piece:
    return Piece("reasoning_content", f"\n[{' '.join(text.split())[:_TITLE_CHARS]}]\n")


def _plan(entries: Any) -> Piece | None:
    steps = [
        f"{each.get('status') or 'pending'}: {each.get('content') or ''}"
        for each in (entries if isinstance(entries, list) else [])
        if isinstance(each, dict)
    ]
    return _line(f"plan; {'; '.join(steps)}") if steps else None


def _usage(counted: Any) -> dict[str, Any] | None:
    """OpenAI's usage. The protocol counts cached and reasoning tokens beside input and output, and their total."""
    if not isinstance(counted, dict):
        return None
    names = (
        "inputTokens",
        "outputTokens",
        "totalTokens",
        "cachedReadTokens",
        "cachedWriteTokens",
        "thoughtTokens",
    )
    counts = {name: counted.get(name) or 0 for name in names}
    if not all(isinstance(count, int) and 0 <= count < 2**53 for count in counts.values()):
        return None
    prompt = counts["inputTokens"] + counts["cachedReadTokens"] + counts["cachedWriteTokens"]
    completion = max(counts["outputTokens"], counts["totalTokens"] - prompt)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": counts["cachedReadTokens"]},
        "completion_tokens_details": {"reasoning_tokens": counts["thoughtTokens"]},
    }

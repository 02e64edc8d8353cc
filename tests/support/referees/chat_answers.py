"""Answers of Chat Completions in the form of each vendor, whole and streamed."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from tests.support.referees import plan as planned
from tests.support.referees.ledger import Ledger
from tests.support.referees.plan import Offer, Plan
from tests.support.upstream import DONE, event

# The member with the reasoning of an answer; Mistral has it in the content.
REASONING: Final = {
    "deepseek": "reasoning_content",
    "moonshot": "reasoning_content",
    "dashscope": "reasoning_content",
    "fireworks": "reasoning_content",
    "nvidia": "reasoning_content",
    "groq": "reasoning",
    "cerebras": "reasoning",
}


def offer_of(body: dict[str, Any]) -> Offer:
    choice = body.get("tool_choice")
    names = [tool["function"]["name"] for tool in body.get("tools") or [] if "function" in tool]
    if choice == "none":
        return Offer([])
    if isinstance(choice, dict) and "function" in choice:
        names = [choice["function"]["name"]]
    is_forced = choice in ("required", "any") or isinstance(choice, dict)
    return Offer(names, is_forced, body.get("parallel_tool_calls") is False)


class Speaker(NamedTuple):
    """The model that answers."""

    provider: str
    model: str
    thinks: bool


def whole(speaker: Speaker, body: dict[str, Any], plan: Plan, ledger: Ledger) -> dict[str, Any]:
    provider, model, thinks = speaker
    calls = plan.calls_of(offer_of(body))
    message: dict[str, Any] = {"role": "assistant", "content": plan.text_of(calls)}
    if thinks and plan.has_thought:
        if provider == "mistral":
            thought = {
                "type": "thinking",
                "thinking": [{"type": "text", "text": planned.THOUGHT}],
            }
            text = message["content"]
            message["content"] = [thought, *([{"type": "text", "text": text}] if text else [])]
        elif provider in REASONING:
            message[REASONING[provider]] = planned.THOUGHT
    if calls:
        message["tool_calls"] = [
            {
                "id": _call_id(provider, name, ledger.number()),
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for name, arguments in calls
        ]
    reason = "tool_calls" if calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {
        "id": f"chatcmpl-{ledger.number()}",
        "object": "chat.completion",
        "created": 1_767_225_600,
        "model": model,
        "choices": [choice],
        "usage": _usage(provider),
    }


def events(answer: dict[str, Any], body: dict[str, Any], provider: str) -> list[bytes]:
    """The answer as chunks. Mistral reports usage unasked, in the chunk with the reason."""
    head = {name: answer[name] for name in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    choice = answer["choices"][0]
    message = choice["message"]

    def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
        one = {"index": 0, "delta": delta, "finish_reason": reason}
        return event({**head, "choices": [one], **more})

    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    told = ("reasoning_content", "reasoning", "content")
    deltas += [{name: message[name]} for name in told if message.get(name)]
    for at, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        opening = {"name": function["name"], "arguments": ""}
        deltas.append({"tool_calls": [{**call, "index": at, "function": opening}]})
        rest = {"arguments": function["arguments"]}
        deltas.append({"tool_calls": [{"index": at, "function": rest}]})
    written = [chunk(delta) for delta in deltas]
    if provider == "mistral":
        return [*written, chunk({}, choice["finish_reason"], usage=answer["usage"]), DONE]
    written.append(chunk({}, choice["finish_reason"]))
    if (body.get("stream_options") or {}).get("include_usage"):
        written.append(event({**head, "choices": [], "usage": answer["usage"]}))
    return [*written, DONE]


def _call_id(provider: str, name: str, number: int) -> str:
    if provider == "moonshot":
        return f"functions.{name}:{number}"
    if provider == "mistral":
        return f"M{number:08d}"
    return f"call_{number:024d}"


def _usage(provider: str) -> dict[str, Any]:
    cached, tokens_in = planned.TOKENS_CACHED, planned.TOKENS_IN
    usage: dict[str, Any] = {
        "prompt_tokens": tokens_in,
        "completion_tokens": planned.TOKENS_OUT,
        "total_tokens": tokens_in + planned.TOKENS_OUT,
    }
    if provider == "deepseek":
        return usage | {
            "prompt_cache_hit_tokens": cached,
            "prompt_cache_miss_tokens": tokens_in - cached,
            "completion_tokens_details": {"reasoning_tokens": planned.TOKENS_THOUGHT},
        }
    if provider == "moonshot":
        return usage | {"cached_tokens": cached}
    return usage | {
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": planned.TOKENS_THOUGHT},
    }

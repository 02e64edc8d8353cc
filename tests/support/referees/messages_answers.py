"""Answers of Anthropic's Messages, whole and streamed. Thinking is signed for the conversation before it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.support.referees import anthropic_turns
from tests.support.referees import plan as planned
from tests.support.referees.ledger import Ledger
from tests.support.referees.plan import Offer, Plan


def offer_of(body: dict[str, Any]) -> Offer:
    choice = body.get("tool_choice") or {"type": "auto"}
    kind = choice["type"]
    names = [tool["name"] for tool in body.get("tools") or [] if "input_schema" in tool]
    if kind == "none":
        return Offer([])
    if kind == "tool":
        names = [choice["name"]]
    is_single = bool(choice.get("disable_parallel_tool_use"))
    return Offer(names, kind in ("any", "tool"), is_single)


def whole(
    model: str, body: dict[str, Any], plan: Plan, thinks: bool, ledger: Ledger
) -> dict[str, Any]:
    calls = plan.calls_of(offer_of(body))
    content: list[dict[str, Any]] = []
    if thinks and plan.has_thought:
        signature = ledger.sign(anthropic_turns.VENDOR, anthropic_turns.prefix_of_answer(body))
        content.append({"type": "thinking", "thinking": planned.THOUGHT, "signature": signature})
    if text := plan.text_of(calls):
        content.append({"type": "text", "text": text})
    for name, arguments in calls:
        own = f"toolu_{ledger.number():020d}"
        content.append({"type": "tool_use", "id": own, "name": name, "input": arguments})
    return {
        "id": f"msg_{ledger.number():020d}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": planned.TOKENS_IN - planned.TOKENS_CACHED,
            "cache_read_input_tokens": planned.TOKENS_CACHED,
            "cache_creation_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": planned.TOKENS_OUT,
            "service_tier": "standard",
        },
    }


def events(answer: dict[str, Any]) -> list[bytes]:
    return [_named(one) for one in _events(answer)]


def _named(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _events(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    opening = {**answer, "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": opening}
    yield {"type": "ping"}
    for index, block in enumerate(answer["content"]):
        match block["type"]:
            case "thinking":
                empty: dict[str, Any] = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [
                    {"type": "thinking_delta", "thinking": block["thinking"]},
                    {"type": "signature_delta", "signature": block["signature"]},
                ]
            case "text":
                empty = {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": block["text"]}]
            case _:
                empty = {**block, "input": {}}
                partial = json.dumps(block["input"])
                deltas = [{"type": "input_json_delta", "partial_json": partial}]
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    last = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": answer["usage"]["output_tokens"]}
    yield {"type": "message_delta", "delta": last, "usage": usage}
    yield {"type": "message_stop"}

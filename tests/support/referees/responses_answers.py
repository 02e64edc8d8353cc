"""Answers of the Responses API, whole and streamed. Reasoning is encrypted for the id of its item."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.support.referees import plan as planned
from tests.support.referees import responses
from tests.support.referees.ledger import Ledger
from tests.support.referees.plan import Offer, Plan


def offer_of(body: dict[str, Any]) -> Offer:
    choice = body.get("tool_choice")
    names = [tool["name"] for tool in body.get("tools") or [] if tool["type"] == "function"]
    if choice == "none":
        return Offer([])
    if isinstance(choice, dict) and choice.get("type") == "function":
        names = [choice["name"]]
    is_single = body.get("parallel_tool_calls") is False
    return Offer(names, choice == "required" or isinstance(choice, dict), is_single)


def whole(
    model: str, body: dict[str, Any], plan: Plan, thinks: bool, ledger: Ledger
) -> dict[str, Any]:
    calls = plan.calls_of(offer_of(body))
    output: list[dict[str, Any]] = []
    if thinks and plan.has_thought:
        own = f"rs_{ledger.number():020d}"
        item: dict[str, Any] = {"type": "reasoning", "id": own}
        item |= {"summary": [{"type": "summary_text", "text": planned.THOUGHT}]}
        if "reasoning.encrypted_content" in (body.get("include") or []):
            item["encrypted_content"] = ledger.sign(responses.VENDOR, own)
        output.append(item)
    if text := plan.text_of(calls):
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        output.append(
            {
                "type": "message",
                "id": f"msg_{ledger.number():020d}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    for name, arguments in calls:
        number = ledger.number()
        output.append(
            {
                "type": "function_call",
                "id": f"fc_{number:020d}",
                "call_id": f"call_{number:020d}",
                "name": name,
                "arguments": json.dumps(arguments),
                "status": "completed",
            }
        )
    return {
        "id": f"resp_{ledger.number():020d}",
        "object": "response",
        "created_at": 1_767_225_600,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "usage": {
            "input_tokens": planned.TOKENS_IN,
            "input_tokens_details": {"cached_tokens": planned.TOKENS_CACHED},
            "output_tokens": planned.TOKENS_OUT,
            "output_tokens_details": {"reasoning_tokens": planned.TOKENS_THOUGHT},
            "total_tokens": planned.TOKENS_IN + planned.TOKENS_OUT,
        },
    }


def events(answer: dict[str, Any]) -> list[bytes]:
    written = []
    for number, one in enumerate(_events(answer)):
        data = json.dumps({**one, "sequence_number": number})
        written.append(f"event: {one['type']}\ndata: {data}\n\n".encode())
    return written


def _events(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    opening = {**answer, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": opening}
    for index, item in enumerate(answer["output"]):
        yield from _item_events(index, item)
    yield {"type": "response.completed", "response": answer}


def _item_events(index: int, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    place = {"output_index": index, "item_id": item["id"]}
    empty: dict[str, Any] = {"status": "in_progress"}
    kind = item["type"]
    if kind == "message":
        empty["content"] = []
    if kind == "function_call":
        empty["arguments"] = ""
    if kind == "reasoning":
        empty = {"summary": []}
    yield {"type": "response.output_item.added", "output_index": index, "item": item | empty}
    if kind == "reasoning":
        at = place | {"summary_index": 0}
        text = item["summary"][0]["text"]
        start = {"type": "summary_text", "text": ""}
        yield {"type": "response.reasoning_summary_part.added", **at, "part": start}
        yield {"type": "response.reasoning_summary_text.delta", **at, "delta": text}
        yield {"type": "response.reasoning_summary_text.done", **at, "text": text}
        part = item["summary"][0]
        yield {"type": "response.reasoning_summary_part.done", **at, "part": part}
    elif kind == "message":
        at = place | {"content_index": 0}
        part = item["content"][0]
        yield {"type": "response.content_part.added", **at, "part": part | {"text": ""}}
        said = {"delta": part["text"], "logprobs": []}
        yield {"type": "response.output_text.delta", **at, **said}
        done = {"text": part["text"], "logprobs": []}
        yield {"type": "response.output_text.done", **at, **done}
        yield {"type": "response.content_part.done", **at, "part": part}
    else:
        text = item["arguments"]
        yield {"type": "response.function_call_arguments.delta", **place, "delta": text}
        done = {"arguments": text, "name": item["name"]}
        yield {"type": "response.function_call_arguments.done", **place, **done}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}

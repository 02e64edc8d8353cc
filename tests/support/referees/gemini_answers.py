"""Answers of generateContent, whole and streamed. The first call of an answer is signed."""

from __future__ import annotations

from typing import Any

from tests.support.referees import gemini_turns
from tests.support.referees import plan as planned
from tests.support.referees.families import family_of
from tests.support.referees.ledger import Ledger
from tests.support.referees.plan import Offer, Plan
from tests.support.upstream import event


def offer_of(body: dict[str, Any]) -> Offer:
    choice = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    mode = choice.get("mode", "AUTO")
    names = [
        function["name"]
        for tool in body.get("tools") or []
        for function in tool.get("functionDeclarations") or []
    ]
    if mode == "NONE":
        return Offer([])
    return Offer(choice.get("allowedFunctionNames") or names, mode == "ANY")


def whole(
    model: str, body: dict[str, Any], plan: Plan, thinks: bool, ledger: Ledger
) -> dict[str, Any]:
    family = family_of("gemini", model)
    config = (body.get("generationConfig") or {}).get("thinkingConfig") or {}
    calls = plan.calls_of(offer_of(body))
    parts: list[dict[str, Any]] = []
    if thinks and plan.has_thought and config.get("includeThoughts"):
        parts.append({"text": planned.THOUGHT, "thought": True})
    if text := plan.text_of(calls):
        parts.append({"text": text})
    for at, (name, arguments) in enumerate(calls):
        call: dict[str, Any] = {"name": name, "args": arguments}
        if family["call_ids"]:
            call["id"] = f"g{ledger.number():07d}"
        part: dict[str, Any] = {"functionCall": call}
        if at == 0 and thinks:
            part["thoughtSignature"] = ledger.sign(gemini_turns.VENDOR, body["contents"])
        parts.append(part)
    content = {"role": "model", "parts": parts}
    tokens_out, tokens_thought = planned.TOKENS_OUT, planned.TOKENS_THOUGHT if thinks else 0
    return {
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": planned.TOKENS_IN,
            "cachedContentTokenCount": planned.TOKENS_CACHED,
            "candidatesTokenCount": tokens_out,
            "thoughtsTokenCount": tokens_thought,
            "totalTokenCount": planned.TOKENS_IN + tokens_out + tokens_thought,
        },
        "modelVersion": model,
        "responseId": f"r{ledger.number()}",
    }


def events(answer: dict[str, Any]) -> list[bytes]:
    """A chunk for each part; the last one has the reason and the usage."""
    candidate = answer["candidates"][0]
    parts = candidate["content"]["parts"]
    rest = {name: answer[name] for name in ("modelVersion", "responseId")}
    written = []
    for at, part in enumerate(parts):
        one: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": [part]}}
        chunk: dict[str, Any] = {"candidates": [one], **rest}
        if at == len(parts) - 1:
            one["finishReason"] = candidate["finishReason"]
            chunk["usageMetadata"] = answer["usageMetadata"]
        written.append(event(chunk))
    return written

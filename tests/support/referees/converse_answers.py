"""Answers of Converse, whole and as Amazon's event stream."""

from __future__ import annotations

import json
from typing import Any

from tests.support.clouds import converse_event
from tests.support.referees import plan as planned
from tests.support.referees.ledger import Ledger
from tests.support.referees.plan import Offer, Plan


def offer_of(body: dict[str, Any]) -> Offer:
    config = body.get("toolConfig") or {}
    names = [tool["toolSpec"]["name"] for tool in config.get("tools") or [] if "toolSpec" in tool]
    choice = config.get("toolChoice") or {}
    if "tool" in choice:
        names = [choice["tool"]["name"]]
    return Offer(names, bool(choice.keys() & {"any", "tool"}))


def whole(model: str, body: dict[str, Any], plan: Plan, ledger: Ledger) -> dict[str, Any]:
    calls = plan.calls_of(offer_of(body))
    content: list[dict[str, Any]] = []
    if text := plan.text_of(calls):
        content.append({"text": text})
    for name, arguments in calls:
        own = f"tooluse_{ledger.number():020d}"
        content.append({"toolUse": {"toolUseId": own, "name": name, "input": arguments}})
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use" if calls else "end_turn",
        "metrics": {"latencyMs": 1},
        "usage": {
            "inputTokens": planned.TOKENS_IN - planned.TOKENS_CACHED,
            "cacheReadInputTokens": planned.TOKENS_CACHED,
            "outputTokens": planned.TOKENS_OUT,
            "totalTokens": planned.TOKENS_IN + planned.TOKENS_OUT,
        },
    }


def events(answer: dict[str, Any]) -> list[bytes]:
    written = [converse_event("messageStart", {"role": "assistant"})]
    for at, block in enumerate(answer["output"]["message"]["content"]):
        place = {"contentBlockIndex": at}
        delta: dict[str, Any] = {"text": block.get("text")}
        if (use := block.get("toolUse")) is not None:
            start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}
            written.append(converse_event("contentBlockStart", {**place, "start": start}))
            delta = {"toolUse": {"input": json.dumps(use["input"])}}
        written.append(converse_event("contentBlockDelta", {**place, "delta": delta}))
        written.append(converse_event("contentBlockStop", place))
    written.append(converse_event("messageStop", {"stopReason": answer["stopReason"]}))
    last = {"usage": answer["usage"], "metrics": answer["metrics"]}
    return [*written, converse_event("metadata", last)]

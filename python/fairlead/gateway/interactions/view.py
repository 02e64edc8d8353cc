"""A response shown as Google's interaction. Both have one id."""

from __future__ import annotations

import json
from typing import Any

from fairlead.gateway.responses.notifications import status_of
from fairlead.moment import iso, moment_of


def interaction_view(response: dict[str, Any], model: str) -> dict[str, Any]:
    """The interaction as it is now; `model` is the name that its caller used."""
    created_s = int(response.get("created_at") or 0)
    updated_s = int(response.get("completed_at") or created_s)
    shown: dict[str, Any] = {
        "id": response["id"],
        "object": "interaction",
        "model": model,
        "status": status_of(response),
        "created": iso(moment_of(created_s * 1000)),
        "updated": iso(moment_of(updated_s * 1000)),
        "steps": [
            step for item in response.get("output") or [] if (step := step_of(item)) is not None
        ],
    }
    if response.get("previous_response_id"):
        shown["previous_interaction_id"] = response["previous_response_id"]
    if response.get("metadata"):
        shown["labels"] = response["metadata"]
    if isinstance(usage := response.get("usage"), dict):
        shown["usage"] = _usage(usage)
    if isinstance(error := response.get("error"), dict):
        shown["errors"] = [{"code": str(error.get("code")), "message": str(error.get("message"))}]
    return shown


def step_of(item: Any) -> dict[str, Any] | None:
    """An item of a response as a step; None for one that an interaction has no step for."""
    if not isinstance(item, dict):
        return None
    match item.get("type"):
        case "message":
            texts = [
                part.get("text") or part.get("refusal") or "" for part in item.get("content") or []
            ]
            contents = [{"type": "text", "text": text} for text in texts]
            return {"type": "model_output", "content": contents}
        case "reasoning":
            summary = [
                {"type": "text", "text": part.get("text") or ""}
                for part in item.get("summary") or []
            ]
            return {"type": "thought", "summary": summary}
        case "function_call":
            return {
                "type": "function_call",
                "id": item.get("call_id"),
                "name": item.get("name"),
                "arguments": _arguments(item.get("arguments")),
            }
    return None


def _arguments(text: Any) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _usage(usage: dict[str, Any]) -> dict[str, int]:
    def count(name: str, detail: str | None = None) -> int:
        inner = usage.get(name) if detail is None else (usage.get(name) or {}).get(detail)
        return inner if isinstance(inner, int) else 0

    reasoning_tokens = count("output_tokens_details", "reasoning_tokens")
    return {
        "total_input_tokens": count("input_tokens"),
        "total_cached_tokens": count("input_tokens_details", "cached_tokens"),
        # Google counts reasoning apart from the output.
        "total_output_tokens": max(0, count("output_tokens") - reasoning_tokens),
        "total_thought_tokens": reasoning_tokens,
        "total_tokens": count("total_tokens"),
    }

"""Mistral's Chat Completions: a closed schema, ids of nine letters and its own order of roles."""

from __future__ import annotations

import itertools
import re
from typing import Any, Final

from tests.support.referees.families import family_of, members_of
from tests.support.referees.refusal import extra_forbidden
from tests.support.referees.refusal import mistral as refuse

MEMBERS: Final = members_of("mistral")
MESSAGES: Final = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "prefix", "tool_calls"},
    "tool": {"role", "content", "tool_call_id", "name"},
}
ID: Final = re.compile(r"[a-zA-Z0-9]{9}")
OLDER: Final = re.compile(r"-2[34]\d\d$|open-mi[sx]tral")
ORDER: Final = "invalid_request_message_order"


def check(model: str, body: dict[str, Any]) -> None:
    """Raises `Refusal` for what Mistral refuses."""
    family = family_of("compatible", f"mistral/{model}")
    for member in body.keys() - MEMBERS:
        raise extra_forbidden(member)
    if body.get("temperature") is not None and not 0 <= body["temperature"] <= 1.5:
        raise extra_forbidden("temperature")
    key = body.get("prompt_cache_key")
    if key is not None and not key.isascii():
        raise extra_forbidden("prompt_cache_key")
    effort = body.get("reasoning_effort")
    if effort is not None and effort not in family["efforts"]:
        raise extra_forbidden("reasoning_effort")
    choice = body.get("tool_choice")
    if isinstance(choice, str) and choice not in ("auto", "none", "any", "required"):
        raise extra_forbidden("tool_choice")
    for at, tool in enumerate(body.get("tools") or []):
        for member in tool["function"].get("parameters", {}).keys() & {"$id", "$schema"}:
            raise refuse(f"tools[{at}].function.parameters: {member}", "1000")
    _check_messages(body["messages"])
    _check_order(model, body["messages"])
    _check_calls(body["messages"])


def _check_messages(messages: list[dict[str, Any]]) -> None:
    for at, message in enumerate(messages):
        role = message.get("role", "")
        if role not in MESSAGES:
            raise extra_forbidden(f"messages.{at}.role")
        for member in message.keys() - MESSAGES[role]:
            raise extra_forbidden(f"messages.{at}.{role}.{member}")
        content = message.get("content")
        kinds = {"text", "image_url", "document_url", "file", "input_audio", "thinking"}
        for number, part in enumerate(content if isinstance(content, list) else []):
            if part.get("type") not in kinds:
                raise extra_forbidden(f"messages.{at}.{role}.content.{number}.type")
            if part["type"] == "text" and part.keys() != {"type", "text"}:
                raise extra_forbidden(f"messages.{at}.{role}.content.{number}.cache_control")
        if role == "assistant" and not content and not message.get("tool_calls"):
            raise refuse(
                "Assistant message must have either content or tool_calls, but not none.", "3240"
            )


def _check_order(model: str, messages: list[dict[str, Any]]) -> None:
    last = messages[-1]
    if last["role"] not in ("user", "tool") and not last.get("prefix"):
        raise refuse(
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got"
            f" {last['role']}",
            "3230",
            ORDER,
        )
    # Later models were seen to accept it.
    if not OLDER.search(model):
        return
    for before, message in itertools.pairwise(messages):
        if (before["role"], message["role"]) == ("tool", "user"):
            raise refuse("Unexpected role 'user' after role 'tool'", "3230", ORDER)


def _check_calls(messages: list[dict[str, Any]]) -> None:
    open_ids: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            one = message.get("tool_call_id")
            if one not in open_ids:
                raise refuse(f"Unexpected tool call id {one} in tool results", "3230", ORDER)
            open_ids.remove(one)
            continue
        if open_ids:
            raise refuse("Not the same number of function calls and responses", "3230", ORDER)
        for call in message.get("tool_calls") or []:
            if not ID.fullmatch(call["id"]):
                raise refuse(
                    f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, with a length of 9.",
                    "3280",
                    "invalid_function_call",
                )
            open_ids.add(call["id"])
    if open_ids:
        raise refuse("Not the same number of function calls and responses", "3230", ORDER)

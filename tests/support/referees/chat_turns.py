"""Turns of Chat Completions: roles, parts, and pairs of calls and results, in OpenAI's words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from tests.support.referees.refusal import Refusal, openai

ROLES: Final = ("system", "developer", "user", "assistant", "tool")
PARTS: Final = {
    "text": {"type", "text", "prompt_cache_breakpoint"},
    "image_url": {"type", "image_url"},
    "input_audio": {"type", "input_audio"},
    "file": {"type", "file"},
    "refusal": {"type", "refusal"},
}


def check_roles(messages: Any) -> None:
    if not isinstance(messages, list) or not messages:
        raise openai(
            "Invalid 'messages': empty array. Expected an array with minimum length 1.",
            "empty_array",
            "messages",
        )
    for at, message in enumerate(messages):
        if message.get("role") not in ROLES:
            raise openai(
                f"Invalid value: '{message.get('role')}'.", "invalid_value", f"messages[{at}].role"
            )


def check_parts(messages: list[dict[str, Any]], is_closed: bool = True) -> None:
    """The types of parts, and their members unless unknown ones are ignored. Pictures are only in the user's turns."""
    for at, message in enumerate(messages):
        content, where = message.get("content"), f"messages[{at}].content"
        if content == []:
            raise openai(f"Invalid '{where}': empty array.", "empty_array", where)
        for number, part in enumerate(content if isinstance(content, list) else []):
            kind, place = part.get("type"), f"{where}[{number}]"
            if kind not in PARTS:
                raise openai(f"Invalid value: '{kind}'.", "invalid_value", f"{place}.type")
            for member in part.keys() - PARTS[kind] if is_closed else ():
                raise openai(
                    f"Unknown parameter: '{place}.{member}'.",
                    "unknown_parameter",
                    f"{place}.{member}",
                )
            if kind not in ("text", "refusal") and message["role"] != "user":
                raise openai(f"Invalid value: '{kind}'.", "invalid_value", f"{place}.type")


def check_pairs(messages: list[dict[str, Any]], refuse: Callable[[str], Refusal] = openai) -> None:
    """Each call has one result in the messages that follow it, and each result has its call."""
    open_ids: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_ids:
                raise refuse(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding"
                    " message with 'tool_calls'."
                )
            open_ids.remove(message["tool_call_id"])
            continue
        if open_ids:
            raise refuse(
                "An assistant message with 'tool_calls' must be followed by tool messages responding"
                f" to each 'tool_call_id'. The following tool_call_ids did not have response messages:"
                f" {', '.join(open_ids)}"
            )
        open_ids = [call["id"] for call in message.get("tool_calls") or []]
        if len(open_ids) != len(set(open_ids)):
            raise refuse("Invalid parameter: duplicate tool call ids.")
    if open_ids:
        raise refuse("An assistant message with 'tool_calls' must be followed by tool messages.")


def check_calls(messages: list[dict[str, Any]], longest_id: int) -> None:
    for at, message in enumerate(messages):
        for number, call in enumerate(message.get("tool_calls") or []):
            where = f"messages[{at}].tool_calls[{number}]"
            if len(call["id"]) > longest_id:
                raise openai(
                    f"Invalid '{where}.id': string too long. Expected a string with maximum length"
                    f" {longest_id}",
                    "string_above_max_length",
                    f"{where}.id",
                )
            if call.get("type") != "function":
                raise openai(f"Invalid value: '{call.get('type')}'.", "invalid_value", where)
            arguments = call["function"]["arguments"]
            if not isinstance(arguments, str) or not _is_object(arguments):
                raise openai(
                    f"Invalid '{where}.function.arguments': not a JSON object.",
                    "invalid_value",
                    where,
                )
        if message["role"] == "assistant" and not (
            message.get("content") or message.get("tool_calls") or message.get("refusal")
        ):
            raise openai(
                f"Invalid value for 'content': expected a string, got null. (messages[{at}])",
                None,
                f"messages.[{at}].content",
            )


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False

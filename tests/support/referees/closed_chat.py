"""Chat Completions of vendors with closed schemas: Groq, Cerebras, Fireworks and NVIDIA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.support.referees import chat_turns
from tests.support.referees.families import family_of, members_of
from tests.support.referees.refusal import Refusal, extra_forbidden
from tests.support.referees.refusal import openai as refuse
from tests.support.referees.schema import nodes

PROVIDERS: Final = ("groq", "cerebras", "fireworks", "nvidia")
# The SDKs' message types.
ASSISTANT: Final = {
    "groq": {"role", "content", "name", "tool_calls", "function_call", "reasoning"},
    "cerebras": {"role", "content", "name", "tool_calls", "reasoning"},
    "fireworks": {"role", "content", "name", "tool_calls", "reasoning_content", "tool_call_id"},
}
REFUSED_BY_CEREBRAS: Final = frozenset(
    {"minItems", "maxItems", "pattern", "minLength", "maxLength"}
)


def check(provider: str, model: str, body: dict[str, Any]) -> None:
    """Raises `Refusal` for what the vendor refuses."""
    for member in sorted(body.keys() - members_of(provider)):
        raise unknown(provider, member)
    efforts = family_of("compatible", f"{provider}/{model}").get("efforts")
    effort = body.get("reasoning_effort")
    if effort is not None and efforts is not None and effort not in efforts:
        raise refuse(f"`reasoning_effort` must be one of {efforts}", None, "reasoning_effort")
    stops = body.get("stop")
    if isinstance(stops, list) and len(stops) > 4:
        raise refuse("`stop` must have at most 4 items", None, "stop")
    if provider == "groq" and body.get("n") not in (None, 1):
        raise refuse("'n' : number must be at most 1", None, "n")
    if provider == "groq" and "include_reasoning" in body and "reasoning_format" in body:
        raise refuse("cannot specify both `reasoning_format` and `include_reasoning`")
    if provider == "fireworks" and "thinking" in body and effort is not None:
        raise refuse("thinking and reasoning_effort are mutually exclusive")
    _check_format(provider, body)
    messages = body.get("messages")
    chat_turns.check_roles(messages)
    assert isinstance(messages, list)
    _check_messages(provider, messages)
    chat_turns.check_parts(messages)
    chat_turns.check_pairs(messages)


def unknown(provider: str, member: str) -> Refusal:
    """The vendor's answer to an unknown member."""
    message: dict[str, Callable[[], Refusal]] = {
        "groq": lambda: refuse(f"property '{member}' is unsupported"),
        "cerebras": lambda: refuse(
            f"{member}: property '{member}' is unsupported", "wrong_api_format", "validation_error"
        ),
        "fireworks": lambda: refuse(
            f"Extra inputs are not permitted, field: '{member}', value: ..."
        ),
        "nvidia": lambda: extra_forbidden(member),
    }
    return message[provider]()


def _check_messages(provider: str, messages: list[dict[str, Any]]) -> None:
    known = ASSISTANT.get(provider)
    for at, message in enumerate(messages):
        if message["role"] != "assistant" or known is None:
            continue
        for member in message.keys() - known:
            raise unknown(provider, f"messages.{at}.assistant.{member}")


def _check_format(provider: str, body: dict[str, Any]) -> None:
    wanted = body.get("response_format") or {}
    if provider != "cerebras" or wanted.get("type") != "json_schema":
        return
    for _, node in nodes(wanted["json_schema"].get("schema")):
        if found := node.keys() & REFUSED_BY_CEREBRAS:
            raise refuse(f"Unsupported JSON schema fields: {set(found)}", "wrong_api_format")

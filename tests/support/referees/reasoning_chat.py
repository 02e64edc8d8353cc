"""Chat Completions of vendors that bind tools to reasoning: DeepSeek, Moonshot and DashScope."""

from __future__ import annotations

from typing import Any

from tests.support.referees import chat_turns
from tests.support.referees.families import family_of
from tests.support.referees.refusal import openai as refuse


def check(provider: str, model: str, body: dict[str, Any]) -> None:
    """Raises `Refusal` for what the vendor refuses."""
    family = family_of("compatible", f"{provider}/{model}")
    _check_thinking(family, body)
    is_thinking = thinks(provider, model, body)
    efforts, effort = family.get("efforts"), body.get("reasoning_effort")
    if effort is not None and efforts is not None and effort not in efforts:
        raise refuse(f"reasoning_effort: {effort} is not one of {efforts}")
    if is_thinking and not family["forced_tools"]:
        _check_choice(provider, body)
    _check_temperature(family, body, is_thinking)
    _check_members(provider, family, body, is_thinking)
    messages = body.get("messages")
    chat_turns.check_roles(messages)
    assert isinstance(messages, list)
    chat_turns.check_parts(messages, is_closed=False)
    chat_turns.check_pairs(messages)
    if is_thinking and family["reasoning_content"]:
        _check_history(provider, messages)


def thinks(provider: str, model: str, body: dict[str, Any]) -> bool:
    family = family_of("compatible", f"{provider}/{model}")
    given = body.get(family.get("thinking_member", ""))
    if given is None:
        return bool(family["default_on"])
    return given is True or (isinstance(given, dict) and given.get("type") == "enabled")


def _check_thinking(family: dict[str, Any], body: dict[str, Any]) -> None:
    given = body.get("thinking")
    if given is None or "thinking" not in family:
        return
    if given.get("type") not in family["thinking"]:
        only = " or ".join(family["thinking"])
        raise refuse(f"invalid thinking: only type={only} is allowed for this model")


def _check_choice(provider: str, body: dict[str, Any]) -> None:
    choice = body.get("tool_choice")
    if choice in (None, "auto", "none"):
        return
    words = {
        "deepseek": "Thinking mode does not support this tool_choice",
        "moonshot": "tool_choice 'required' is incompatible with thinking enabled",
        "dashscope": "The tool_choice parameter does not support being set to required or object in"
        " thinking mode",
    }
    code = "invalid_parameter_error" if provider == "dashscope" else None
    raise refuse(words[provider], code)


def _check_temperature(family: dict[str, Any], body: dict[str, Any], is_thinking: bool) -> None:
    rule, given = family.get("temperature"), body.get("temperature")
    if rule is None or given is None:
        return
    allowed = 0.6 if rule == "1_or_0.6" and not is_thinking else 1
    if given != allowed:
        raise refuse(f"invalid temperature: only {allowed} is allowed for this model")


def _check_members(
    provider: str, family: dict[str, Any], body: dict[str, Any], is_thinking: bool
) -> None:
    if family.get("needs_stream") and is_thinking and not body.get("stream"):
        raise refuse(
            "parameter.enable_thinking must be set to false for non-streaming calls",
            "invalid_parameter_error",
        )
    if provider == "moonshot" and "functions" in body:
        raise refuse("functions is not supported, use tools")
    tools = body.get("tools") or []
    if provider == "deepseek":
        kind = (body.get("response_format") or {}).get("type")
        if kind == "json_schema":
            raise refuse("This response_format type is unavailable now")
        if len(tools) > 128 or any(tool.get("type") != "function" for tool in tools):
            raise refuse("tools: unknown variant, expected `function`")


def _check_history(provider: str, messages: list[dict[str, Any]]) -> None:
    for at, message in enumerate(messages):
        if message["role"] != "assistant" or not message.get("tool_calls"):
            continue
        given = message.get("reasoning_content")
        # Moonshot counts an empty text as missing; a blank passes at both.
        if given is None or (provider == "moonshot" and given == ""):
            words = {
                "deepseek": "The `reasoning_content` in the thinking mode must be passed back to the API.",
                "moonshot": "thinking is enabled but reasoning_content is missing in assistant tool call"
                f" message at index {at}",
            }
            raise refuse(words[provider])

"""Chat Completions of OpenAI, by family."""

from __future__ import annotations

from typing import Any, Final

from tests.support.referees import chat_turns
from tests.support.referees.families import family_of, members_of
from tests.support.referees.openai import (
    NAME,
    check_common,
    check_effort,
    check_function,
    check_samplers,
)
from tests.support.referees.refusal import openai as refuse
from tests.support.referees.schema import check_strict

MEMBERS: Final = members_of("openai chat")
REFUSED_WITH_REASONING: Final = (
    "presence_penalty",
    "frequency_penalty",
    "stop",
    "logit_bias",
    "modalities",
    "audio",
    "prediction",
)
LONGEST_ID: Final = 40


def check(model: str, body: dict[str, Any]) -> None:
    """Raises `Refusal` for what OpenAI refuses."""
    family = family_of("openai", model)
    if not family["chat"]:
        raise refuse(
            "This model is only supported in v1/responses and not in v1/chat/completions.",
            None,
            "model",
            404,
        )
    check_common(body, MEMBERS)
    _check_counts(body)
    _check_tools(model, body, family)
    is_reasoning = check_effort(body.get("reasoning_effort"), model, family, "reasoning_effort")
    check_samplers(body, is_reasoning)
    if family["reasons"]:
        for name in ("max_tokens", *REFUSED_WITH_REASONING):
            if body.get(name) is not None:
                hint = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
                raise refuse(
                    f"Unsupported parameter: '{name}' is not supported with this model.{hint}",
                    "unsupported_parameter",
                    name,
                )
    _check_format(body)
    messages = body.get("messages")
    chat_turns.check_roles(messages)
    assert isinstance(messages, list)
    chat_turns.check_parts(messages)
    chat_turns.check_calls(messages, LONGEST_ID)
    chat_turns.check_pairs(messages)


def _check_counts(body: dict[str, Any]) -> None:
    stops = body.get("stop")
    if isinstance(stops, list) and not 1 <= len(stops) <= 4:
        raise refuse(
            "Invalid 'stop': array too long. Expected an array with maximum length 4.",
            "array_above_max_length",
            "stop",
        )
    if body.get("n") is not None and not 1 <= body["n"] <= 128:
        raise refuse("Invalid 'n'.", "integer_above_max_value", "n")
    if body.get("stream_options") is not None and not body.get("stream"):
        raise refuse(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            None,
            "stream_options",
        )
    if body.get("metadata") and not body.get("store"):
        raise refuse(
            "The 'metadata' parameter is only allowed when 'store' is enabled.", None, "metadata"
        )


def _check_tools(model: str, body: dict[str, Any], family: dict[str, Any]) -> None:
    tools = body.get("tools")
    if tools is None:
        if body.get("tool_choice") is not None:
            raise refuse(
                "'tool_choice' is only allowed when 'tools' are specified.", None, "tool_choice"
            )
        if body.get("parallel_tool_calls") is not None:
            raise refuse(
                "'parallel_tool_calls' is only allowed when 'tools' are specified.",
                None,
                "parallel_tool_calls",
            )
        return
    if not 1 <= len(tools) <= 128:
        raise refuse("Invalid 'tools': empty array.", "empty_array", "tools")
    for at, tool in enumerate(tools):
        if tool.get("type") == "function":
            check_function(tool["function"], f"tools[{at}].function", has_top_rules=True)
    effort = body.get("reasoning_effort")
    rule = family.get("tools_in_chat", "always")
    is_refused = {
        "always": False,
        "without_effort": effort not in (None, "none"),
        "none_only": effort != "none",
        "never": True,
    }[rule]
    if is_refused:
        raise refuse(
            f"Function tools with reasoning_effort are not supported for {model} in"
            " /v1/chat/completions. To use function tools, use /v1/responses or set"
            " reasoning_effort to 'none'.",
            None,
            "reasoning_effort",
        )


def _check_format(body: dict[str, Any]) -> None:
    wanted = body.get("response_format") or {}
    if wanted.get("type") != "json_schema":
        return
    schema = wanted["json_schema"]
    if not NAME.fullmatch(schema.get("name") or ""):
        raise refuse(
            "Invalid 'response_format.json_schema.name'.", "invalid_value", "response_format"
        )
    if schema.get("strict"):
        check_strict(
            schema["schema"],
            lambda text: refuse(text, "invalid_json_schema", "response_format"),
            f"response_format '{schema['name']}'",
        )

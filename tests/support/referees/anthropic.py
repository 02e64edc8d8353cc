"""Anthropic's Messages: members, thinking, samplers, tools and cache marks. The turns are in `anthropic_turns`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from tests.support.referees import anthropic_turns
from tests.support.referees.families import family_of, members_of
from tests.support.referees.ledger import Ledger
from tests.support.referees.refusal import anthropic as refuse
from tests.support.referees.schema import check_closed

MEMBERS: Final = members_of("anthropic")
SAMPLERS: Final = ("temperature", "top_p", "top_k")
DEFAULTS: Final = {"temperature": 1, "top_p": 1}
LEVELS: Final = ("low", "medium", "high", "xhigh", "max")
NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
MOST_MARKS: Final = 4


def check(model: str, body: dict[str, Any], ledger: Ledger) -> None:
    """Raises `Refusal` for what Anthropic refuses. `body` has no `model` at the clouds."""
    family = family_of("anthropic", model)
    for member in body.keys() - MEMBERS:
        raise refuse(f"{member}: Extra inputs are not permitted")
    _check_limits(body, family)
    _check_tools(body)
    is_thinking = _check_thinking(body, family)
    _check_samplers(body, family, is_thinking)
    _check_choice(body, family, is_thinking)
    _check_format(body)
    anthropic_turns.check(model, body, family, ledger)
    marks = sum(1 for _ in marked(body))
    if marks > MOST_MARKS:
        message = f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
        raise refuse(message)


def thinks(model: str, body: dict[str, Any]) -> bool:
    """Whether the model reasons before it answers this request."""
    thinking = body.get("thinking")
    if thinking is None:
        return bool(family_of("anthropic", model)["default_on"])
    return bool(thinking["type"] != "disabled")


def marked(value: Any) -> Iterator[dict[str, Any]]:
    """Every object with a `cache_control`, wherever it is."""
    if isinstance(value, list):
        for each in value:
            yield from marked(each)
    elif isinstance(value, dict):
        if value.get("cache_control"):
            yield value
        for name, each in value.items():
            if name not in ("input", "input_schema"):
                yield from marked(each)


def _check_limits(body: dict[str, Any], family: dict[str, Any]) -> None:
    most = body.get("max_tokens")
    if type(most) is not int or most < 1:
        raise refuse("max_tokens: Field required")
    if most > family["max_output"]:
        limit = family["max_output"]
        raise refuse(
            f"max_tokens: {most} > {limit}, which is the maximum allowed number of output tokens"
        )
    user = (body.get("metadata") or {}).get("user_id")
    for member in (body.get("metadata") or {}).keys() - {"user_id"}:
        raise refuse(f"metadata.{member}: Extra inputs are not permitted")
    if user is not None and len(user) > 512:
        raise refuse("metadata.user_id: String should have at most 512 characters")
    if any(not stop.strip() for stop in body.get("stop_sequences") or []):
        raise refuse("stop_sequences: each stop sequence must contain non-whitespace")
    if body.get("service_tier") not in (None, "auto", "standard_only"):
        raise refuse("service_tier: Input should be 'auto' or 'standard_only'")


def _check_thinking(body: dict[str, Any], family: dict[str, Any]) -> bool:
    thinking, effort = body.get("thinking"), (body.get("output_config") or {}).get("effort")
    if effort is not None and not family["efforts"]:
        raise refuse("This model does not support the effort parameter.")
    if effort is not None and effort not in family["efforts"]:
        raise refuse(f"output_config.effort: {effort} is not supported for this model")
    if thinking is None:
        return bool(family["default_on"])
    kind = thinking.get("type")
    if kind not in family["thinking"]:
        raise refuse(f'"thinking.type.{kind}" is not supported for this model.')
    if kind == "enabled":
        budget = thinking.get("budget_tokens")
        if type(budget) is not int or budget < 1024:
            raise refuse(
                "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
            )
        if budget >= body["max_tokens"]:
            raise refuse("`max_tokens` must be greater than `thinking.budget_tokens`.")
    elif "budget_tokens" in thinking:
        raise refuse(f"thinking.{kind}.budget_tokens: Extra inputs are not permitted")
    most = family.get("disabled_most")
    if kind == "disabled" and most and effort and LEVELS.index(effort) > LEVELS.index(most):
        raise refuse(f"thinking: disabled is not supported with effort {effort}")
    return bool(kind != "disabled")


def _check_samplers(body: dict[str, Any], family: dict[str, Any], is_thinking: bool) -> None:
    given = {name: body[name] for name in SAMPLERS if body.get(name) is not None}
    if not 0 <= given.get("temperature", 1) <= 1:
        raise refuse("temperature: Input should be less than or equal to 1")
    if family["samplers"] == "default":
        for name, value in given.items():
            if value != DEFAULTS.get(name):
                raise refuse(f"`{name}` is deprecated for this model.")
        return
    if "temperature" in given and "top_p" in given:
        raise refuse(
            "`temperature` and `top_p` cannot both be specified for this model."
            " Please use only one."
        )
    if not is_thinking:
        return
    if given.get("temperature", 1) != 1:
        raise refuse(
            "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode."
        )
    if "top_k" in given:
        raise refuse("`top_k` must be unset when thinking is enabled or in adaptive mode.")
    if given.get("top_p", 1) < 0.95:
        raise refuse("`top_p` must be greater than or equal to 0.95 when thinking is enabled.")


def _check_tools(body: dict[str, Any]) -> None:
    names = []
    for at, tool in enumerate(body.get("tools") or []):
        if tool.get("type", "custom") != "custom":
            names.append(tool.get("name"))
            continue
        where = f"tools.{at}.custom"
        known = {"type", "name", "description", "input_schema", "cache_control", "strict"}
        known |= {"allowed_callers", "defer_loading", "input_examples", "eager_input_streaming"}
        for member in tool.keys() - known:
            raise refuse(f"{where}.{member}: Extra inputs are not permitted")
        if not NAME.fullmatch(tool.get("name") or ""):
            raise refuse(f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise refuse(f"{where}.input_schema.type: Input should be 'object'")
        if "properties" in schema and not isinstance(schema["properties"], dict):
            raise refuse(f"{where}.input_schema.properties: Input should be an object")
        if tool.get("strict"):
            check_closed(schema, refuse, f"{where}.input_schema")
        names.append(tool["name"])
    if len(names) != len(set(names)):
        raise refuse("tools: Tool names must be unique.")


def _check_choice(body: dict[str, Any], family: dict[str, Any], is_thinking: bool) -> None:
    choice = body.get("tool_choice")
    if choice is None:
        return
    kind = choice.get("type")
    known = {"type", "disable_parallel_tool_use"} | ({"name"} if kind == "tool" else set())
    for member in choice.keys() - (known if kind != "none" else {"type"}):
        raise refuse(f"tool_choice.{kind}.{member}: Extra inputs are not permitted")
    if kind not in ("auto", "any", "tool", "none"):
        raise refuse("tool_choice: Input tag does not match any of the expected tags")
    if not body.get("tools"):
        raise refuse("tool_choice may only be specified while providing tools.")
    if kind in ("auto", "none"):
        return
    if family["forced_tools"] == "never":
        raise refuse('tool_choice: type "tool" and "any" are not supported for this model.')
    if family["forced_tools"] == "without_thinking" and is_thinking:
        raise refuse("Thinking may not be enabled when tool_choice forces tool use.")
    if kind == "tool" and choice.get("name") not in [tool.get("name") for tool in body["tools"]]:
        raise refuse(f"Tool '{choice.get('name')}' not found in provided tools")


def _check_format(body: dict[str, Any]) -> None:
    config = body.get("output_config") or {}
    for member in config.keys() - {"effort", "format", "task_budget"}:
        raise refuse(f"output_config.{member}: Extra inputs are not permitted")
    wanted = config.get("format")
    if wanted is None:
        return
    if wanted.keys() != {"type", "schema"} or wanted["type"] != "json_schema":
        raise refuse(f"output_config.format: Extra inputs are not permitted: {json.dumps(wanted)}")
    check_closed(wanted["schema"], refuse, "output_config.format.schema")

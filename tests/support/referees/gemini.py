"""Gemini's generateContent at AI Studio: members, thinking, tools and schemas. The turns are in `gemini_turns`."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.support.referees import gemini_turns
from tests.support.referees.families import family_of, members_of
from tests.support.referees.ledger import Ledger
from tests.support.referees.refusal import google as refuse
from tests.support.referees.schema import check_gemini

MEMBERS: Final = members_of("gemini")
CONFIG: Final = members_of("gemini config")
FUNCTION: Final = members_of("gemini function")
# Members whose values have names of the caller.
VERBATIM: Final = frozenset(
    {
        "args",
        "response",
        "parameters",
        "parametersJsonSchema",
        "responseSchema",
        "responseJsonSchema",
        "labels",
    }
)
NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")


def check(model: str, body: dict[str, Any], ledger: Ledger) -> None:
    """Raises `Refusal` for what AI Studio refuses."""
    family = family_of("gemini", model)
    _check_members(body, MEMBERS, "")
    config = body.get("generationConfig") or {}
    _check_members(config, CONFIG, "generation_config")
    functions = _check_tools(body)
    _check_config(config, family, bool(functions))
    _check_thinking(config.get("thinkingConfig"), family)
    gemini_turns.check(body, family, ledger)


def in_camel_case(value: Any) -> Any:
    """The request with its members in camel case: Google accepts both forms. What callers name stays as it is."""
    if isinstance(value, list):
        return [in_camel_case(each) for each in value]
    if not isinstance(value, dict):
        return value
    named = {re.sub(r"_([a-z])", lambda one: one[1].upper(), name): name for name in value}
    return {
        camel: value[name] if camel in VERBATIM else in_camel_case(value[name])
        for camel, name in named.items()
    }


def thinks(model: str, body: dict[str, Any]) -> bool:
    family = family_of("gemini", model)
    config = (body.get("generationConfig") or {}).get("thinkingConfig") or {}
    return family["thinking"] != "never" and config.get("thinkingBudget") != 0


def _check_members(given: dict[str, Any], known: frozenset[str], where: str) -> None:
    for member in given.keys() - known:
        place = f" at '{where}'" if where else ""
        raise refuse(
            f'Invalid JSON payload received. Unknown name "{member}"{place}: Cannot find field.'
        )


def _check_tools(body: dict[str, Any]) -> list[dict[str, Any]]:
    functions: list[dict[str, Any]] = []
    for at, tool in enumerate(body.get("tools") or []):
        functions += tool.get("functionDeclarations") or []
        for number, function in enumerate(tool.get("functionDeclarations") or []):
            where = f"tools[{at}].function_declarations[{number}]"
            _check_members(function, FUNCTION, where)
            if not NAME.fullmatch(function.get("name") or ""):
                raise refuse(
                    f"[FIELD_INVALID] Invalid function name. {where}.name: Must start with a letter or"
                    " an underscore, with a maximum length of 64."
                )
            if "parameters" in function and "parametersJsonSchema" in function:
                raise refuse(f"{where}: only one of parameters and parametersJsonSchema")
            if (schema := function.get("parameters")) is not None:
                check_gemini(schema, refuse, f"{where}.parameters")
                if str(schema.get("type")).upper() != "OBJECT" or not schema.get("properties"):
                    raise refuse(
                        f"{where}.parameters.properties: should be non-empty for OBJECT type"
                    )
    names = [function["name"] for function in functions]
    if len(names) != len(set(names)):
        raise refuse("Duplicate function declaration found.")
    choice = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    mode, allowed = choice.get("mode", "AUTO"), choice.get("allowedFunctionNames")
    if mode not in ("AUTO", "ANY", "NONE", "VALIDATED"):
        raise refuse("Invalid value at 'tool_config.function_calling_config.mode'")
    if allowed and mode not in ("ANY", "VALIDATED"):
        raise refuse("Allowed function names should only be set with mode ANY.")
    if unknown := set(allowed or []) - set(names):
        raise refuse(f"allowed_function_names: not declared: {sorted(unknown)}")
    if mode == "ANY" and not names:
        raise refuse("Function calling mode ANY requires function declarations.")
    return functions


def _check_config(config: dict[str, Any], family: dict[str, Any], has_functions: bool) -> None:
    if len(config.get("stopSequences") or []) > 5:
        raise refuse("stop_sequences: at most 5 are supported")
    if not family["penalties"]:
        for name in ("presencePenalty", "frequencyPenalty"):
            if config.get(name) is not None:
                raise refuse("Penalty is not enabled for this model")
    if not 0 <= config.get("temperature", 1) <= 2:
        raise refuse("temperature: must be in the range [0.0, 2.0]")
    if not 0 <= config.get("topP", 1) <= 1:
        raise refuse("top_p: must be in the range [0.0, 1.0]")
    if "maxOutputTokens" in config and config["maxOutputTokens"] < 1:
        raise refuse("max_output_tokens must be positive.")
    if not 1 <= config.get("candidateCount", 1) <= 8:
        raise refuse("candidate_count must be between 1 and 8")
    is_json = config.get("responseMimeType") == "application/json"
    if is_json and has_functions and not family["functions_with_json"]:
        raise refuse(
            "Function calling with a response mime type: 'application/json' is unsupported"
        )
    if "responseSchema" in config:
        check_gemini(config["responseSchema"], refuse, "generation_config.response_schema")


def _check_thinking(config: dict[str, Any] | None, family: dict[str, Any]) -> None:
    if config is None:
        return
    kind = family["thinking"]
    if kind == "never":
        raise refuse("Thinking is not enabled for this model")
    level, budget = config.get("thinkingLevel"), config.get("thinkingBudget")
    if level is not None and budget is not None:
        raise refuse("You can only set only one of thinking budget and thinking level.")
    if level is not None:
        if kind == "budget":
            raise refuse("Thinking level is not supported for this model.")
        if level.lower() not in family["levels"]:
            raise refuse(f"Thinking level {level} is not supported for this model.")
    if budget is not None and kind == "budget":
        dynamic, least, most = family["budgets"]
        if budget == 0 and not family.get("off"):
            raise refuse("Budget 0 is invalid. This model only works in thinking mode.")
        if budget not in (0, dynamic) and not least <= budget <= most:
            raise refuse(f"The thinking budget {budget} is invalid.")

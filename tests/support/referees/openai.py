"""What Chat Completions and the Responses API of OpenAI have in common: lengths, ranges, effort and samplers."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.support.referees.refusal import openai as refuse
from tests.support.referees.schema import check_strict

NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
RANGES: Final = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
    "top_logprobs": (0, 20),
}
LENGTHS: Final = {"user": 64, "safety_identifier": 64, "prompt_cache_key": 64}
TIERS: Final = ("auto", "default", "flex", "priority", "fast", "ultrafast")


def check_common(body: dict[str, Any], known: frozenset[str]) -> None:
    for member in body.keys() - known:
        raise refuse(f"Unknown parameter: '{member}'.", "unknown_parameter", member)
    for name, (least, most) in RANGES.items():
        value = body.get(name)
        if value is not None and not least <= value <= most:
            raise refuse(
                f"Invalid '{name}': decimal above maximum value. Expected a value <= {most}",
                "decimal_above_max_value",
                name,
            )
    for name, length in LENGTHS.items():
        if len(body.get(name) or "") > length:
            raise refuse(
                f"Invalid '{name}': string too long. Expected a string with maximum length {length}",
                "string_above_max_length",
                name,
            )
    metadata = body.get("metadata") or {}
    if len(metadata) > 16 or any(
        len(name) > 64 or not isinstance(value, str) or len(value) > 512
        for name, value in metadata.items()
    ):
        raise refuse("Invalid 'metadata'.", None, "metadata")
    if body.get("service_tier") not in (None, *TIERS):
        raise refuse("Invalid value for 'service_tier'.", "invalid_value", "service_tier")


def check_effort(effort: str | None, model: str, family: dict[str, Any], member: str) -> bool:
    """Whether the model reasons."""
    if effort is None:
        return bool(family["reasons"] and family["default"] != "none")
    if not family["reasons"]:
        raise refuse(
            f"Unrecognized request argument supplied: {member}", "unsupported_parameter", member
        )
    if effort not in family["efforts"]:
        raise refuse(
            f"Unsupported value: '{effort}' is not supported with the {model} model.",
            "unsupported_value",
            member,
        )
    return effort != "none"


def check_samplers(body: dict[str, Any], is_reasoning: bool) -> None:
    if not is_reasoning:
        return
    if body.get("temperature") not in (None, 1):
        raise refuse(
            f"Unsupported value: 'temperature' does not support {body['temperature']} with this"
            " model. Only the default (1) value is supported.",
            "unsupported_value",
            "temperature",
        )
    for name in ("top_p", "logprobs", "top_logprobs"):
        if body.get(name) not in (None, False, 1 if name == "top_p" else None):
            raise refuse(
                f"Unsupported parameter: '{name}' is not supported with this model.",
                "unsupported_parameter",
                name,
            )


def check_function(function: dict[str, Any], where: str, has_top_rules: bool) -> None:
    """A function of a request: its name and its schema."""
    name = function.get("name") or ""
    if not NAME.fullmatch(name):
        raise refuse(
            f"Invalid '{where}.name': string does not match pattern."
            " Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$' of at most 64.",
            "invalid_value",
            f"{where}.name",
        )
    schema = function.get("parameters")
    if schema is None:
        return
    if not isinstance(schema, dict):
        raise refuse(
            f"Invalid type for '{where}.parameters': expected an object.",
            "invalid_type",
            f"{where}.parameters",
        )
    forbidden = {"oneOf", "anyOf", "allOf", "enum", "const", "not"} & schema.keys()
    if has_top_rules and (schema.get("type") != "object" or forbidden):
        raise refuse(
            f"Invalid schema for function '{name}': schema must have type 'object' and not have"
            " 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
            "invalid_function_parameters",
            f"{where}.parameters",
        )
    if function.get("strict"):
        check_strict(
            schema,
            lambda text: refuse(text, "invalid_function_parameters", f"{where}.parameters"),
            f"function '{name}'",
        )

"""JSON schemas in the subsets that vendors accept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.support.referees.families import members_of
from tests.support.referees.refusal import Refusal

REFUSED_BY_ANTHROPIC: Final = members_of("anthropic schema, refused")
KNOWN_TO_GEMINI: Final = members_of("gemini schema")


def nodes(schema: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema in `schema`, with its place."""
    if isinstance(schema, list):
        for at, each in enumerate(schema):
            yield from nodes(each, f"{where}[{at}]")
    if not isinstance(schema, dict):
        return
    yield where, schema
    for name in ("items", "anyOf", "allOf", "oneOf", "additionalProperties", "not"):
        yield from nodes(schema.get(name), f"{where}.{name}")
    for name in ("properties", "$defs", "definitions"):
        for member, each in (schema.get(name) or {}).items():
            yield from nodes(each, f"{where}.{name}[{member}]")


def check_closed(schema: dict[str, Any], refuse: Callable[[str], Refusal], where: str) -> None:
    """Anthropic's structured output: closed objects and few keywords."""
    for _, node in nodes(schema):
        kind = node.get("type")
        if (kind == "object" or "properties" in node) and node.get(
            "additionalProperties"
        ) is not False:
            raise refuse(
                f"{where}: For 'object' type, 'additionalProperties' must be explicitly set to false"
            )
        for name in node.keys() & REFUSED_BY_ANTHROPIC:
            raise refuse(f"{where}: For '{kind}' type, property '{name}' is not supported")
        if node.get("minItems", 0) > 1:
            raise refuse(f"{where}: For 'array' type, property 'minItems' is not supported")


def check_strict(schema: dict[str, Any], refuse: Callable[[str], Refusal], name: str) -> None:
    """OpenAI's strict schemas: closed objects whose properties are all required."""
    for _, node in nodes(schema):
        if node.get("type") != "object" and "properties" not in node:
            continue
        if node.get("additionalProperties") is not False:
            raise refuse(
                f"Invalid schema for {name}: In context=(), 'additionalProperties' is required to be"
                " supplied and to be false."
            )
        if set(node.get("required") or []) != set(node.get("properties") or {}):
            raise refuse(
                f"Invalid schema for {name}: In context=(), 'required' is required to be supplied and"
                " to be an array including every key in properties."
            )


def check_gemini(schema: dict[str, Any], refuse: Callable[[str], Refusal], where: str) -> None:
    """AI Studio's `parameters` and `responseSchema`."""
    for place, node in nodes(schema):
        at = f"{where}{place}"
        for name in node.keys() - KNOWN_TO_GEMINI:
            raise refuse(
                f"Invalid JSON payload received. Unknown name \"{name}\" at '{at}': Cannot find field."
            )
        kind = str(node.get("type", "")).upper()
        if isinstance(node.get("type"), list):
            raise refuse(f"Invalid value at '{at}.type' (type), a list")
        if kind == "ARRAY" and "items" not in node:
            raise refuse(f"{at}.items: missing field.")
        if "enum" in node:
            if kind != "STRING":
                raise refuse(f"{at}.enum: only allowed for STRING type")
            if not all(isinstance(each, str) and each for each in node["enum"]):
                raise refuse(f"{at}.enum[0]: cannot be empty")
        for name in node.get("properties") or {}:
            if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}", name):
                raise refuse(f"{at}.properties: invalid name {name}")
        if missing := set(node.get("required") or []) - set(node.get("properties") or {}):
            raise refuse(f"{at}.required[0]: property is not defined: {sorted(missing)}")

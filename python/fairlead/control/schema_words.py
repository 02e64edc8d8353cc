"""Renders JSON schemas as text for the reference pages."""

from __future__ import annotations

import json
from typing import Any

Schema = dict[str, Any]


def resolved(field: Schema, definitions: Schema) -> Schema:
    """The schema that a `$ref` refers to; any other schema unchanged."""
    if "$ref" in field:
        found: Schema = definitions[field["$ref"].rpartition("/")[2]]
        return found
    return field


def type_words(field: Schema, definitions: Schema) -> str:
    """The type of a value, with its choices and bounds: `integer, 1 to 500`."""
    field = resolved(field, definitions)
    if "anyOf" in field:
        return " or ".join(type_words(each, definitions) for each in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{each}`" for each in field["enum"])
    kind = str(field.get("type", "any"))
    if kind == "array":
        return f"list of {type_words(field.get('items', {}), definitions)}"
    if field.get("format") == "date":
        return "date"
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None:
        return f"{kind}, {low} to {high}"
    if "maxLength" in field:
        return f"{kind}, at most {field['maxLength']}"
    return kind


def about(field: Schema, definitions: Schema, *, is_required: bool) -> str:
    """The description of a member, with whether it is required and its default."""
    places = (field, resolved(field, definitions), *field.get("anyOf", ()))
    words = [text for each in places if (text := each.get("description"))][:1]
    if is_required:
        words.insert(0, "Required.")
    if field.get("default") not in (None, "", []):
        default = field["default"]
        words.append(f"Default `{default if isinstance(default, str) else json.dumps(default)}`.")
    return " ".join(" ".join(words).split())

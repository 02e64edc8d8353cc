"""An example value for a JSON Schema: what a model that follows the schema might have written."""

from collections.abc import Mapping
from typing import Any, Final

_DEEPEST: Final = 12
_FORMATS: Final = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}

Schema = Mapping[str, Any]


def example_of(schema: Schema, word: str = "example") -> Any:
    """A value that fits `schema`; free strings are `word`.

    Knows types, enums, constants, references into the document, combinations and the bounds of
    numbers, strings and arrays. Patterns, conditionals and `not` are not looked at.
    """
    return _build(schema, schema, word, 0)


def _build(schema: Any, root: Schema, word: str, depth: int) -> Any:
    if not isinstance(schema, Mapping):
        return word
    schema = _resolve(schema, root, depth)
    for fixed in ("const", "default"):
        if fixed in schema:
            return schema[fixed]
    if schema.get("enum"):
        return schema["enum"][0]
    match _type_of(schema):
        case "object":
            return _object(schema, root, word, depth)
        case "array":
            return _array(schema, root, word, depth)
        case "integer":
            return _number(schema, step=1)
        case "number":
            return _number(schema, step=0.5)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return _string(schema, word)


def _resolve(schema: Schema, root: Schema, depth: int) -> Schema:
    """Follows references and takes the first way of a combination, the shortest when too deep."""
    for _ in range(_DEEPEST):
        if isinstance(ref := schema.get("$ref"), str):
            schema = _look_up(root, ref)
        elif ways := schema.get("anyOf") or schema.get("oneOf"):
            schema = ways[0] if depth < _DEEPEST else _shortest(ways)
        elif parts := schema.get("allOf"):
            schema = _merge([{k: v for k, v in schema.items() if k != "allOf"}, *parts], root)
        else:
            break
    return schema


def _look_up(root: Schema, ref: str) -> Schema:
    node: Any = root
    for part in ref.removeprefix("#").strip("/").split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        node = node.get(key, {}) if key and isinstance(node, Mapping) else node
    return node if isinstance(node, Mapping) else {}


def _shortest(ways: list[Any]) -> Schema:
    plain = [
        w
        for w in ways
        if isinstance(w, Mapping) and w.get("type") in ("null", "string", "integer", "boolean")
    ]
    return plain[0] if plain else {"type": "null"}


def _merge(parts: list[Schema], root: Schema) -> Schema:
    merged: dict[str, Any] = {}
    for written in parts:
        ref = written.get("$ref")
        part = _look_up(root, ref) if isinstance(ref, str) else written
        properties = {**merged.get("properties", {}), **part.get("properties", {})}
        required = [*merged.get("required", []), *part.get("required", [])]
        merged |= part
        if properties:
            merged |= {"properties": properties, "required": required}
    return merged


def _type_of(schema: Schema) -> str:
    named = schema.get("type")
    if isinstance(named, list):
        named = next((name for name in named if name != "null"), "null")
    if isinstance(named, str):
        return named
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _object(schema: Schema, root: Schema, word: str, depth: int) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    # A recursive schema ends by leaving out what it does not require.
    wanted = properties if depth < _DEEPEST // 2 else schema.get("required") or []
    if depth > _DEEPEST * 2:
        return {}
    return {name: _build(properties.get(name, {}), root, word, depth + 1) for name in wanted}


def _array(schema: Schema, root: Schema, word: str, depth: int) -> list[Any]:
    fewest = int(schema.get("minItems", 0))
    most = int(schema.get("maxItems", 1 if depth < _DEEPEST // 2 else 0))
    if depth > _DEEPEST * 2:
        return []
    items = list(schema.get("prefixItems") or [])
    count = max(fewest, min(1, most)) if "items" in schema or not items else max(fewest, len(items))
    return [
        _build(items[at] if at < len(items) else schema.get("items", {}), root, word, depth + 1)
        for at in range(max(count, len(items)))
    ]


def _number(schema: Schema, step: float) -> float | int:
    low = schema.get("minimum")
    if low is None and schema.get("exclusiveMinimum") is not None:
        low = schema["exclusiveMinimum"] + step
    high = schema.get("maximum")
    if high is None and schema.get("exclusiveMaximum") is not None:
        high = schema["exclusiveMaximum"] - step
    value = 1 if low is None else low
    value = min(value, high) if high is not None else value
    if multiple := schema.get("multipleOf"):
        value = multiple * -(-value // multiple)
    return int(value) if step == 1 else value


def _string(schema: Schema, word: str) -> str:
    text = _FORMATS.get(schema.get("format", ""), word)
    fewest, most = int(schema.get("minLength", 0)), schema.get("maxLength")
    text = text if len(text) >= fewest else (text + "x" * fewest)[:fewest]
    return text if most is None else text[: int(most)]

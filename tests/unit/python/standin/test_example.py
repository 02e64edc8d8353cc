"""Examples fit the schema that they are made from."""

from __future__ import annotations

import pytest

from fairlead.standin.example import example_of

NODE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            },
            "required": ["name", "next"],
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "value"),
    (
        ({"type": "string"}, "example"),
        ({"type": "string", "format": "date"}, "2026-01-01"),
        ({"type": "string", "minLength": 9}, "examplexx"),
        ({"type": "string", "maxLength": 2}, "ex"),
        ({"enum": ["red", "blue"]}, "red"),
        ({"const": 4}, 4),
        ({"type": "integer", "minimum": 3}, 3),
        ({"type": "integer", "exclusiveMinimum": 3}, 4),
        ({"type": "integer", "minimum": 3, "multipleOf": 5}, 5),
        ({"type": "number", "maximum": 0}, 0),
        ({"type": "boolean"}, True),
        ({"type": ["null", "integer"]}, 1),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}]}, [1, 2]),
        ({"type": "array", "items": {"type": "integer"}, "maxItems": 0}, []),
        ({"properties": {"a": {"type": "null"}}}, {"a": None}),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, 1),
        (
            {
                "allOf": [
                    {"properties": {"a": {"const": 1}}},
                    {"properties": {"b": {"const": 2}}},
                ]
            },
            {"a": 1, "b": 2},
        ),
        ({}, "example"),
    ),
)
def test_example_fits(schema: dict[str, object], value: object) -> None:
    assert example_of(schema) == value


def test_a_recursive_schema_ends() -> None:
    node = example_of(NODE)
    depth = 0
    while node is not None:
        assert set(node) == {"name", "next"}
        node, depth = node["next"], depth + 1
    assert 1 <= depth < 20


def test_a_schema_that_only_refers_to_itself_ends() -> None:
    assert example_of({"$ref": "#"}) == "example"

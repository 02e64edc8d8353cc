"""What an extraction's confidence counts: declared fields that were filled with what stands in the page."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fairlead.scrape.model.confidence import confidence_of

PAGE = "# On *harbours*\n\nIt cost 1,234.50 in 1890, or 2.000.000 today; see a\\_b. Depth 4.5 m, open: yes."


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}


@pytest.mark.parametrize(
    ("data", "declared", "share"),
    [
        ({"title": "On harbours"}, schema(title=TEXT), 1.0),
        ({"title": "on  HARBOURS"}, schema(title=TEXT), 1.0),
        ({"title": "On rivers"}, schema(title=TEXT), 0.0),
        ({"title": "On harbours"}, schema(title=TEXT, author=TEXT), 0.5),
        ({"title": "On harbours", "author": None}, schema(title=TEXT, author=TEXT), 0.5),
        ({"title": "On harbours", "author": ""}, schema(title=TEXT, author=TEXT), 0.5),
        (
            {"n": [1890, 4.5, 2_000_000, 1234.5, 1234.50]},
            schema(n={"type": "array", "items": NUMBER}),
            1.0,
        ),
        # Part of another number or word is not the value.
        ({"n": [189, 34.5, 4]}, schema(), 0.0),
        ({"t": "harbour"}, schema(), 0.0),
        ({"t": "a_b"}, schema(), 1.0),
        # A judgement about the page does not stand in it.
        (
            {"open": True, "mood": "calm"},
            schema(open={"type": "boolean"}, mood={"enum": ["calm"]}),
            None,
        ),
        (
            {"x": {"y": "Depth"}},
            schema(x={"$ref": "#/$defs/p"}) | {"$defs": {"p": schema(y=TEXT, z=TEXT)}},
            0.5,
        ),
        ({"x": 1890}, schema(x={"$ref": "#/properties/x"}), 1.0),
        ([{"t": "Depth"}, {"t": "Width"}], {"type": "array", "items": schema(t=TEXT)}, 0.5),
        ({}, schema(), 0.0),
        ([], {}, 0.0),
        (True, {}, None),
        (float("1e300"), {}, 0.0),
    ],
)
def test_a_share_of_what_can_be_looked_up(data: Any, declared: Any, share: float | None) -> None:
    assert confidence_of(data, declared, PAGE) == share


def test_a_page_made_to_be_searched_for_long_is_not() -> None:
    data = ["a" * length for length in range(1, 2000)]
    started = time.monotonic()
    assert confidence_of(data, {}, "a" * 200_000 + "!") == 0.0
    assert time.monotonic() - started < 5

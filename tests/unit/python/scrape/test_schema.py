"""Schemas of callers: what they may hold, what they may cost, and that no schema holds anybody else up."""

from __future__ import annotations

import functools
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead.errors import InvalidRequest
from fairlead.scrape.model.schema import SCHEMA_MAX_BYTES, Schema
from fairlead.scrape.model.untrusted import strip_link_targets
from fairlead.scrape.page.pool import Pool
from fairlead.scrape.page.schema import (
    DEPTH_MAX,
    ENDLESS,
    TOO_COSTLY,
    _at_most,
    _OutOfTime,
    judge,
)
from tests.fuzz.budget import at_most


def doubled(levels: int) -> dict[str, Any]:
    """Each part refers twice to the next: 2^levels steps."""
    parts: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**parts, f"d{levels}": {}}}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"not": schema}
    return schema


TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
        }
    },
}


def test_parts_that_refer_to_each_other_are_taken() -> None:
    assert judge(TREE) == {"violations": []}
    assert judge(TREE, {"name": "a", "children": [{"name": "b"}]}) == {"violations": []}
    assert judge(TREE, {"name": "a", "children": [{}]}) == {
        "violations": ["/children/0: 'name' is a required property"]
    }
    assert judge(doubled(6), {}) == {"violations": []}
    assert judge(nested(DEPTH_MAX - 1)) == {"violations": []}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (doubled(30), TOO_COSTLY),
        ({"$ref": "#"}, ENDLESS),
        ({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#"}}}, ENDLESS),
        (nested(DEPTH_MAX), f"schema is nested more than {DEPTH_MAX} deep."),
        ({"allOf": [{"pattern": f"(a{{{n}}}){{99}}"} for n in range(1, 2000)]}, TOO_COSTLY),
        ({"pattern": "(a)\\1"}, "no look-around, no back-references"),
        ({"patternProperties": {"(a+)+$": {}}}, "may not use patternProperties"),
        ({"$ref": "http://127.0.0.1:9/"}, "its own parts only"),
        ({"$recursiveRef": "http://127.0.0.1:9/"}, "its own parts only"),
        ({"$id": "http://127.0.0.1:9/x", "$ref": "#gone"}, "which is not in it"),
        (
            {
                "$ref": "#/default/x",
                "default": {"$id": "http://127.0.0.1:9/", "x": {"$ref": "#/y"}},
            },
            "is not in it",
        ),
        ({"type": "nothing"}, "is not a JSON Schema"),
    ],
)
def test_what_is_refused_and_why(schema: dict[str, Any], reason: str) -> None:
    with at_most(8.0):
        refused = judge(schema)["refused"]
    assert reason in refused


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ({"uniqueItems": True}, [{"a": n} for n in range(20_000)]),
        (
            {"anyOf": [{"properties": {"a": {"$ref": "#"}}, "type": "array"}] * 3},
            # Three times the work with each level: far beyond the budget of any machine.
            functools.reduce(lambda inner, _: {"a": inner}, range(24), {}),
        ),
    ],
)
# The interruption may fall into a callback of the garbage collector, which drops it and says so; the next one holds.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_costs_too_much_for_an_answer_is_said(schema: dict[str, Any], data: Any) -> None:
    assert judge(schema) == {"violations": []}
    with at_most(8.0):
        assert judge(schema, data) == {"refused": TOO_COSTLY}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_budget_holds_where_its_first_interruption_is_dropped() -> None:
    """As while an object is taken apart: there the interpreter drops what is raised."""

    class Slow:
        def __del__(self) -> None:
            ends_s = time.process_time() + 1.0
            while time.process_time() < ends_s:
                pass

    def endless() -> None:
        slow = Slow()
        del slow
        while True:
            pass

    with at_most(5.0), pytest.raises(_OutOfTime), _at_most(0.1):
        endless()


def test_a_pattern_is_linear_in_the_text() -> None:
    with at_most(5.0):
        assert judge({"pattern": "^(a+)+$"}, "a" * 100_000 + "b")["violations"] != []


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    running = Pool(workers=1, read_deadline_s=60.0)
    yield running
    await running.close()


@pytest.mark.anyio
async def test_a_schema_is_judged_in_another_process_which_goes_on(pool: Pool) -> None:
    good = Schema(pool, TREE, "k1")
    await good.check()
    (reader,) = pool.process_ids
    with pytest.raises(InvalidRequest) as refused:
        await Schema(pool, doubled(30), "k1").check()
    assert (refused.value.message, refused.value.param) == (TOO_COSTLY, "schema")
    assert await good.violations_of({"name": 1}) == ["/name: 1 is not of type 'string'"]
    assert pool.process_ids == [reader]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"description": "x" * SCHEMA_MAX_BYTES}, f"larger than {SCHEMA_MAX_BYTES} bytes"),
        (nested(400), "nested too deep"),
        ({"maximum": 10**40}, "a number or a text that JSON has not"),
        ({"const": "\ud800"}, "a number or a text that JSON has not"),
    ],
)
async def test_what_cannot_be_sent_is_refused(
    pool: Pool, schema: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        await Schema(pool, schema, "k1").check()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "schema",
    [
        # Each route spends the whole budget on it.
        pytest.param(doubled(30), marks=pytest.mark.slow, id="costly"),
        pytest.param({"$ref": "#"}, id="endless"),
    ],
)
async def test_every_route_refuses_a_schema_that_costs_too_much(
    scraping, schema: dict[str, Any]
) -> None:
    for path, body in [
        ("/api/extract-schema", {"url": "http://a.example/", "schema": schema}),
        ("/api/extract", {"urls": ["http://a.example/"], "schema": schema}),
        ("/api/agent", {"url": "http://a.example/", "prompt": "x", "schema": schema}),
        ("/api/endpoints", {"slug": "one", "url": "http://a.example/", "schema": schema}),
    ]:
        answer = await scraping.ask("POST", path, body, expect=400)
        assert answer["error"] in (TOO_COSTLY, ENDLESS), path


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see [here](http://x/?q=1) and ![pic](http://x/p) .", "see here and pic ."),
        ("[![alt](http://x/i)](http://x/t)", "alt"),
        ("[a] (b) [c](d", "[a] (b) [c](d"),
        ("[a [b](c)", "a [b"),
        ("![](x)[](y)", ""),
        ("] ) ( [", "] ) ( ["),
    ],
)
def test_links_of_an_answer_lose_their_targets(text: str, shown: str) -> None:
    assert strip_link_targets(text) == shown


@pytest.mark.parametrize(
    "text", ["[" * 200_000, "![" * 100_000, "[](" * 70_000, "[]" * 100_000, "[a](" * 50_000 + ")"]
)
def test_no_answer_takes_long_to_be_freed_of_links(text: str) -> None:
    with at_most(2.0):
        strip_link_targets(text)

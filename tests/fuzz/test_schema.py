"""JSON Schemas of any shape over data of any shape: wrongs or a reason, within the budget of the processor."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairlead.scrape.model.untrusted import strip_link_targets
from fairlead.scrape.page.schema import JUDGE_CPU_S, VIOLATIONS_MAX, judge
from tests.fuzz.budget import at_most, budget_of

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["object", "array", "string", "a", "^a+$", "(a+)+$", "#"]),
)
NAMES = st.sampled_from(["a", "b", "c"])
DATA = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=20,
)
TYPES = st.sampled_from(["object", "array", "string", "?"])
PIECES = st.one_of(
    st.sampled_from(["[", "]", "(", ")", "!", "![", "](", ")["]), st.text(max_size=3)
)
REFERENCES = st.sampled_from(
    ["#", "#/$defs/a", "#/$defs/b", "#/$defs/c", "#/properties/a", "#gone", "http://x/", "#a"]
)


def _parts(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several, named = (
        st.lists(inner, min_size=1, max_size=3),
        st.dictionaries(NAMES, inner, max_size=3),
    )
    return st.fixed_dictionaries(
        {},
        optional={
            "$ref": REFERENCES,
            "$dynamicRef": REFERENCES,
            "$id": st.sampled_from(["http://x/", "#a", "b"]),
            "$anchor": NAMES,
            "$dynamicAnchor": NAMES,
            "$defs": named,
            "properties": named,
            "dependentSchemas": named,
            "allOf": several,
            "anyOf": several,
            "oneOf": several,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "items": inner,
            "prefixItems": several,
            "contains": inner,
            "additionalProperties": inner,
            "unevaluatedProperties": inner,
            "unevaluatedItems": inner,
            "propertyNames": inner,
            "type": TYPES,
            "required": st.lists(NAMES, max_size=2),
            "enum": st.lists(LEAVES, max_size=3),
            "const": LEAVES,
            "pattern": st.sampled_from(["a", "(a+)+$", "(", "(?=a)", "a{9999}"]),
            "uniqueItems": st.booleans(),
            "minimum": st.integers(-3, 3),
            "multipleOf": st.sampled_from([0, 0.1, 2]),
            "patternProperties": named,
        },
    )


SCHEMAS = st.recursive(st.one_of(st.just({}), st.booleans()), _parts, max_leaves=12).filter(
    lambda schema: isinstance(schema, dict)
)


@budget_of(1 / 3)
@given(SCHEMAS, DATA)
def test_schemas_that_refer_to_each_other(schema: dict[str, Any], data: Any) -> None:
    for given_data in ((), (data,)):
        with at_most(JUDGE_CPU_S + 3):
            told = judge(schema, *given_data)
        if "refused" in told:
            assert isinstance(told["refused"], str)
        else:
            assert len(told["violations"]) <= VIOLATIONS_MAX


@budget_of(1 / 3)
@given(st.dictionaries(st.text(max_size=10), DATA, max_size=5), DATA)
def test_any_object_is_a_schema_or_is_refused(schema: dict[str, Any], data: Any) -> None:
    with at_most(JUDGE_CPU_S + 3):
        judge(schema, data)


@budget_of(1 / 3)
@given(st.lists(PIECES, max_size=30))
def test_answers_of_models_lose_the_targets_of_their_links(pieces: list[str]) -> None:
    text = "".join(pieces)
    shown = strip_link_targets(text)
    assert len(shown) <= len(text)
    with at_most(2.0):
        strip_link_targets(text * 5000)

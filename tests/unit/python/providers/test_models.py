"""Lists of models as providers write them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.gateway.providers.models import LARGEST, MAX_MODELS, NotAList, parse_models

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
entries = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        (
            "id",
            "name",
            "created",
            "owned_by",
            "context_length",
            "pricing",
            "top_provider",
            "architecture",
            "supported_parameters",
            "capabilities",
        ),
        values,
    ),
)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            {"object": "list", "data": [{"id": "m", "created": 5, "owned_by": "lab", "x": 1}]},
            [{"id": "m", "created": 5, "owned_by": "lab"}],
        ),
        (
            [
                {
                    "id": "o/able",
                    "architecture": {"input_modalities": ["text", "image", "file", 7]},
                    "supported_parameters": ["tools", "reasoning", "top_p", None],
                },
                {"id": "m/able", "capabilities": {"function_calling": True, "vision": "yes"}},
            ],
            [
                {"id": "o/able", "capabilities": ["documents", "reasoning", "tools", "vision"]},
                {"id": "m/able", "capabilities": ["tools"]},
            ],
        ),
        ([{"id": "a/b", "context_length": 8192}], [{"id": "a/b", "context_length": 8192}]),
        ({"data": [{"id": "v", "max_model_len": 4096}]}, [{"id": "v", "max_model_len": 4096}]),
        (
            {"models": [{"name": "models/g", "inputTokenLimit": 9, "outputTokenLimit": 3}]},
            [{"id": "g", "context_length": 9, "max_output_tokens": 3}],
        ),
        (
            {
                "data": [
                    {
                        "id": "o/m",
                        "context_length": 10,
                        "top_provider": {"max_completion_tokens": 4, "context_length": None},
                        "pricing": {
                            "prompt": "0.0000025",
                            "completion": "0.00001",
                            "input_cache_read": "0.00000025",
                            "image": "0.1",
                        },
                    }
                ]
            },
            [
                {
                    "id": "o/m",
                    "context_length": 10,
                    "max_output_tokens": 4,
                    "price": {"input": 2_500_000, "output": 10_000_000, "cached_input": 250_000},
                }
            ],
        ),
        ({"data": []}, []),
    ],
)
def test_known_forms(answer: Any, expected: list[dict[str, Any]]) -> None:
    renamed = [
        {"context_length" if name == "max_model_len" else name: v for name, v in each.items()}
        for each in expected
    ]
    assert parse_models(answer) == renamed


@pytest.mark.parametrize(
    "answer", [None, 1, "x", {}, {"data": None}, {"data": {}}, {"error": "no"}]
)
def test_what_is_no_list(answer: Any) -> None:
    with pytest.raises(NotAList):
        parse_models(answer)


def test_entries_that_cannot_be_named_are_left_out() -> None:
    wrong = [1, None, {}, {"id": 1}, {"id": ""}, {"id": "a b"}, {"id": "a\n"}, {"id": "x" * 301}]

    assert parse_models([*wrong, {"id": "ok"}, {"id": "ok", "created": 1}]) == [{"id": "ok"}]


def test_figures_that_are_none_are_left_out() -> None:
    entry = {
        "id": "m",
        "created": "today",
        "owned_by": "a\x1b[31m",
        "context_length": -1,
        "max_output_tokens": True,
        "pricing": {"prompt": "NaN", "completion": "0"},
    }

    assert parse_models([entry]) == [{"id": "m"}]
    for odd in ("-1", "1e999999", "1e-999999999999999999999", "sNaN", "Infinity", "9" * 5000):
        priced = {**entry, "pricing": {"prompt": odd, "completion": "1"}}
        assert parse_models([priced]) == [{"id": "m"}], odd


def test_a_list_without_end_is_cut() -> None:
    assert len(parse_models([{"id": str(n)} for n in range(MAX_MODELS + 10)])) == MAX_MODELS


@given(st.lists(entries | values, max_size=5))
def test_whatever_a_provider_says_can_be_stored(answer: list[Any]) -> None:
    for model in parse_models(answer):
        assert 0 < len(model["id"]) <= 300
        assert json.loads(json.dumps(model)) == model
        assert all(0 < model.get(name, 1) <= LARGEST for name in ("created", "context_length"))


@pytest.mark.parametrize(
    ("entries", "control"),
    [
        ([{"id": "m", "owned_by": "vllm"}], "chat-template"),
        ([{"id": "m", "owned_by": "sglang"}], "chat-template"),
        ([{"id": "m", "owned_by": "llamacpp"}], "chat-template"),
        ([{"id": "m", "openai": {"openai": {"openai": {"owned_by": "vllm"}}}}], "chat-template"),
        ([{"id": "m", "owned_by": "vllm", "openai": {"owned_by": "vllm"}}], "chat-template"),
        ([{"id": "m", "openai": {"openai": {"openai": {"openai": {"owned_by": "vllm"}}}}}], None),
        ([{"id": "m", "owned_by": "proxy", "openai": {"owned_by": "vllm"}}], None),
        ([{"id": "m", "owned_by": 5, "openai": {"owned_by": "vllm"}}], None),
        ([{"id": "m", "owned_by": "VLLM"}], None),
        ([{"id": "m"}], None),
        ([{"id": "m", "owned_by": "vllm"}, {"id": "m", "owned_by": "proxy"}], None),
        ([{"id": "m", "owned_by": "proxy"}, {"id": "m", "owned_by": "vllm"}], None),
        ([{"id": "m", "owned_by": "vllm"}, {"id": "m", "owned_by": "sglang"}], "chat-template"),
    ],
)
def test_who_serves_a_model_says_how_its_reasoning_is_switched(
    entries: list[dict[str, Any]], control: str | None
) -> None:
    (model,) = parse_models({"data": entries})

    assert model.get("reasoning_control") == control

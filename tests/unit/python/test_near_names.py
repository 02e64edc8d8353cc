"""Names that were probably meant."""

from __future__ import annotations

from fairlead.text.near_names import did_you_mean, near_names

MODELS = ["openai/gpt-4o", "openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5", "demo/standin"]


def test_a_mistyped_name_finds_the_one_that_was_meant() -> None:
    assert near_names("opnai", ["openai", "anthropic", "gemini"]) == ["openai"]
    assert near_names("Demo/Standin", MODELS) == ["demo/standin"]
    assert near_names("gpt-4o", MODELS) == ["openai/gpt-4o"], "a model without its prefix"
    assert near_names("", MODELS) == []
    assert near_names("x" * 100_000, MODELS) == []


def test_the_question_follows_a_sentence() -> None:
    assert did_you_mean("opnai", ["openai"]) == " Did you mean `openai`?"
    assert did_you_mean("zzzz", ["openai"]) == ""
    assert did_you_mean("aab", ["aac", "aad"]) in (
        " Did you mean `aac` or `aad`?",
        " Did you mean `aad` or `aac`?",
    )

"""What an answer of `GET /v1/models` costs with 20,000 models, without Python and without a network."""

from __future__ import annotations

from typing import Any

from benches.micro import example

ANSWER_MOST_US = 1_000.0


def test_models(benchmark: Any, capsys: Any) -> None:
    """Each figure is the least of fifty calls."""
    figures = example.run("models", benchmark, capsys)
    answers = {name: us for name, us in figures.items() if name.startswith("answer: ")}
    assert len(answers) == 8
    assert max(answers.values()) <= ANSWER_MOST_US, answers

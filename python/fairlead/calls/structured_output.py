"""Structured output: a model's answer that must parse, with one retry that shows the model its mistakes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import orjson

from fairlead.calls.model import Model, ModelAnswer

ROUNDS: Final = 2

T = TypeVar("T")


class InvalidOutput(ValueError):
    """The answer does not parse.

    `problems` are sentences for the model; `answer` is the last answer with the token counts of all rounds,
    once no round is left.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)
        self.answer = ModelAnswer("", 0, 0)


@dataclass(frozen=True, slots=True)
class StructuredOutput(Generic[T]):
    """The parsed value, and the answer with the token counts of all rounds."""

    value: T
    answer: ModelAnswer


async def request_output(
    model: Model,
    messages: list[dict[str, str]],
    parse: Callable[[str], Awaitable[T]],
    correction: Callable[[list[str]], str],
    *,
    answer_max_chars: int,
) -> StructuredOutput[T]:
    """Asks the model at most `ROUNDS` times.

    `parse` reads an answer or raises `InvalidOutput`; the model is then shown its answer, cut to
    `answer_max_chars`, and a `correction`. The last `InvalidOutput` reaches the caller.
    """
    conversation = list(messages)
    total = ModelAnswer("", 0, 0)
    while True:
        answer = await model.ask(conversation)
        total = ModelAnswer(
            answer.text,
            total.tokens_input + answer.tokens_input,
            total.tokens_output + answer.tokens_output,
        )
        try:
            return StructuredOutput(await parse(answer.text), total)
        except InvalidOutput as fault:
            if len(conversation) >= len(messages) + 2 * (ROUNDS - 1):
                fault.answer = total
                raise
            conversation += [
                {"role": "assistant", "content": answer.text[:answer_max_chars]},
                {"role": "user", "content": correction(fault.problems)},
            ]


def json_of(text: str) -> Any:
    """Parses an answer as JSON, with or without a markdown fence around it. `ValueError` if it is not JSON."""
    stripped = text.strip()
    if stripped.startswith("```"):
        stripped = stripped.strip("`").removeprefix("json").strip()
    return orjson.loads(stripped)

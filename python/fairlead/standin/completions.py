"""The wire shapes of the older `/v1/completions`: one object, or chunks."""

from collections.abc import Iterator
from typing import Any

from fairlead.standin.answer import CREATED_S, Answer
from fairlead.standin.stream import DONE, Frames, frame


def completion(answer: Answer, choices: int = 1) -> dict[str, Any]:
    """The unary answer, with the same text in each choice."""
    sent = [_choice(answer.text(), answer.finish_reason, at) for at in range(choices)]
    return _envelope(answer, sent) | ({"usage": answer.usage} if answer.usage else {})


def chunks(answer: Answer, include_usage: bool, choices: int = 1) -> Frames:
    """The streamed answer. Usage comes only when asked for: `null` on every chunk, then one chunk that holds it."""
    null_usage = {"usage": None} if include_usage else {}

    def content() -> Iterator[bytes]:
        for at in range(choices):
            for text in answer.pieces():
                yield frame(_envelope(answer, [_choice(text, None, at)]) | null_usage)

    tail = [
        frame(_envelope(answer, [_choice("", answer.finish_reason, at)]) | null_usage)
        for at in range(choices)
    ]
    if include_usage and answer.usage:
        tail.append(frame(_envelope(answer, []) | {"usage": answer.usage}))
    return Frames([], content(), [*tail, DONE])


def _choice(text: str, finish_reason: str | None, index: int) -> dict[str, Any]:
    return {"text": text, "index": index, "logprobs": None, "finish_reason": finish_reason}


def _envelope(answer: Answer, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"cmpl-{answer.id}",
        "object": "text_completion",
        "created": CREATED_S,
        "model": answer.model,
        "choices": choices,
    }

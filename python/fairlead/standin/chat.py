"""The wire shapes of `/v1/chat/completions`: one object, or chunks."""

from collections.abc import Iterator
from typing import Any, Final

from fairlead.standin.answer import CREATED_S, Answer
from fairlead.standin.stream import DONE, Frames, frame

_FINGERPRINT: Final = "fp_standin"


def completion(answer: Answer, choices: int = 1) -> dict[str, Any]:
    """The unary answer, with the same text in each choice."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text(), "refusal": None}
    if call := answer.tool_call:
        function = {"name": call.name, "arguments": call.arguments}
        message |= {
            "content": None,
            "tool_calls": [{"id": call.id, "type": "function", "function": function}],
        }
    return {
        "id": f"chatcmpl-{answer.id}",
        "object": "chat.completion",
        "created": CREATED_S,
        "model": answer.model,
        "choices": [
            {
                "index": at,
                "message": message,
                "logprobs": None,
                "finish_reason": answer.finish_reason,
            }
            for at in range(choices)
        ],
        **({"usage": answer.usage} if answer.usage else {}),
        "system_fingerprint": _FINGERPRINT,
    }


def chunks(answer: Answer, include_usage: bool, choices: int = 1) -> Frames:
    """The streamed answer.

    As with OpenAI, usage comes only when asked for: `null` on every chunk, then one chunk without
    choices that holds it.
    """

    def chunk(delta: dict[str, Any], finish_reason: str | None = None, index: int = 0) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return frame(envelope([choice]) | ({"usage": None} if include_usage else {}))

    def envelope(choices_sent: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{answer.id}",
            "object": "chat.completion.chunk",
            "created": CREATED_S,
            "model": answer.model,
            "system_fingerprint": _FINGERPRINT,
            "choices": choices_sent,
        }

    def content() -> Iterator[bytes]:
        for at in range(choices):
            if call := answer.tool_call:
                for piece in call.pieces():
                    yield chunk(
                        {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}, index=at
                    )
            for text in answer.pieces():
                yield chunk({"content": text}, index=at)

    first: dict[str, Any] = {"role": "assistant", "content": "", "refusal": None}
    if call := answer.tool_call:
        function = {"name": call.name, "arguments": ""}
        tool_calls = [{"index": 0, "id": call.id, "type": "function", "function": function}]
        first = {"role": "assistant", "content": None, "tool_calls": tool_calls}
    tail = [chunk({}, answer.finish_reason, index=at) for at in range(choices)]
    if include_usage and answer.usage:
        tail.append(frame(envelope([]) | {"usage": answer.usage}))
    return Frames([chunk(first, index=at) for at in range(choices)], content(), [*tail, DONE])

"""A stream that its caller leaves is recorded with tokens and cost in every dialect, also of a key without limits."""

from __future__ import annotations

import secrets
from typing import Any, Final

import pytest

from tests.support.chat import CHAT
from tests.support.processes import Gateway
from tests.support.upstream import RESET, SSE_HEAD, STALL, Upstream, chunk, delta, event

pytestmark = pytest.mark.both_fronts

PIECES: Final = 5
PRICES: Final = {"m": {"input": 1000, "output": 1000}}
"""1,000 USD for a million tokens: each costs 1,000 micro-dollars."""
QUESTION: Final = "word " * 40
SAID: Final = [f"piece{number} " for number in range(PIECES)]


def typed(kind: str, **members: Any) -> bytes:
    return f"event: {kind}\n".encode() + event({"type": kind, **members})


def of_messages() -> list[bytes]:
    usage = {"input_tokens": 9, "output_tokens": 1}
    message = {"id": "m1", "type": "message", "role": "assistant", "content": [], "model": "m"}
    block = {"type": "text", "text": ""}
    return [
        typed("message_start", message={**message, "stop_reason": None, "usage": usage}),
        typed("content_block_start", index=0, content_block=block),
        *(
            typed("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
            for text in SAID
        ),
    ]


def of_responses() -> list[bytes]:
    response = {"id": "r1", "object": "response", "status": "in_progress", "model": "m"}
    item = {"id": "i1", "type": "message", "role": "assistant", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    place = {"item_id": "i1", "output_index": 0, "content_index": 0}
    return [
        typed("response.created", sequence_number=0, response={**response, "output": []}),
        typed("response.output_item.added", sequence_number=1, output_index=0, item=item),
        typed("response.content_part.added", sequence_number=2, part=part, **place),
        *(
            typed("response.output_text.delta", sequence_number=3 + at, delta=text, **place)
            for at, text in enumerate(SAID)
        ),
    ]


def of_gemini(usage: dict[str, int] | None = None) -> list[bytes]:
    told = {} if usage is None else {"usageMetadata": usage}
    return [
        event({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}], **told})
        for text in SAID
    ]


def of_completions() -> list[bytes]:
    return [
        event({"id": "c", "object": "text_completion", "choices": [{"index": 0, "text": text}]})
        for text in SAID
    ]


PROVIDERS: Final[dict[str, tuple[str, str, list[bytes]]]] = {
    "openai": ("", "openai", [delta(text) for text in SAID]),
    "anthropic": ("", "anthropic", of_messages()),
    "responses": ("", "openai-responses", of_responses()),
    "gemini": ("/v1beta", "gemini", of_gemini()),
}
"""The end of a provider's address, its dialect, and how its stream begins."""
CALLERS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "openai": (CHAT, {"messages": [{"role": "user", "content": QUESTION}]}),
    "anthropic": (
        "/v1/messages",
        {"max_tokens": 99, "messages": [{"role": "user", "content": QUESTION}]},
    ),
    "responses": ("/v1/responses", {"input": QUESTION, "store": False}),
    "gemini": (
        "/v1beta/models/{}:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": QUESTION}]}]},
    ),
    "ollama": ("/ollama/api/chat", {"messages": [{"role": "user", "content": QUESTION}]}),
}


def left(
    gateway: Gateway, upstream: Upstream, provider: str, caller: str, begins: list[bytes]
) -> dict[str, Any]:
    """The record of a stream whose caller leaves when all pieces are there."""
    end, dialect, _ = PROVIDERS[provider]
    prefix = f"l{secrets.token_hex(4)}"
    node = gateway.add_node(prefix, f"{upstream.url}{end}", dialect=dialect)
    gateway.add_connection(
        node["id"], f"sk-left-canary-{prefix}", providerSpecificData={"prices": PRICES}
    )
    upstream.script([SSE_HEAD, *map(chunk, begins), STALL])
    path, body = CALLERS.get(caller, ("/v1/completions", {"prompt": QUESTION}))
    model = f"{prefix}/m"
    body = {**body, "stream": True} if caller != "gemini" else body
    asked = {"model": model, **body} if caller != "gemini" else body
    with gateway.caller.stream("POST", path.format(model), json=asked) as answer:
        assert answer.status_code == 200, answer.read()
        request_id = answer.headers["x-gateway-request-id"]
        heard = ""
        for text in answer.iter_text():
            heard += text
            if SAID[-1].strip() in heard:
                break
    return gateway.record(request_id)


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_was_said_is_recorded(
    gateway: Gateway, upstream: Upstream, provider: str, caller: str
) -> None:
    begins = PROVIDERS[provider][2]
    record = left(gateway, upstream, provider, caller, begins)
    assert record["outcome"] == "client_gone", record
    assert PIECES <= record["tokensOutput"] <= len(begins) + 1
    assert record["tokensInput"] > 0
    total = record["tokensInput"] + record["tokensOutput"]
    assert record["costUsdMicros"] == total * 1_000


def test_completions_are_recorded(gateway: Gateway, upstream: Upstream) -> None:
    record = left(gateway, upstream, "openai", "completions", of_completions())
    assert (record["outcome"], record["tokensOutput"]) == ("client_gone", PIECES)
    assert record["costUsdMicros"] == (record["tokensInput"] + PIECES) * 1_000


def test_what_a_provider_has_told_is_not_guessed(gateway: Gateway, upstream: Upstream) -> None:
    told = {"promptTokenCount": 50, "candidatesTokenCount": 70, "totalTokenCount": 120}
    record = left(gateway, upstream, "gemini", "openai", of_gemini(told))
    assert record["tokensInput"] == 50
    assert 70 <= record["tokensOutput"] <= 70 + PIECES


def test_an_answer_that_breaks_off_is_recorded(gateway: Gateway, upstream: Upstream) -> None:
    """Not only callers leave: what a provider said before its stream broke was paid for too."""
    prefix = f"l{secrets.token_hex(4)}"
    node = gateway.add_node(prefix, upstream.url)
    gateway.add_connection(
        node["id"], f"sk-left-canary-{prefix}", providerSpecificData={"prices": PRICES}
    )
    upstream.script([SSE_HEAD, *map(chunk, PROVIDERS["openai"][2]), RESET])
    body = {"model": f"{prefix}/m", "stream": True, **CALLERS["openai"][1]}
    answer = gateway.caller.post(CHAT, json=body)
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert record["outcome"] != "completed"
    assert record["tokensOutput"] == PIECES
    assert record["costUsdMicros"] > 0

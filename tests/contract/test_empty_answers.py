"""An answer with nothing in it is a failure of the attempt, in every dialect, whole and streamed."""

from __future__ import annotations

import json
import secrets
from typing import Any

import pytest

from tests.support.chat import CHAT, events_of
from tests.support.processes import PROMPT, Gateway, Lane, expect
from tests.support.upstream import (
    DONE,
    Upstream,
    completion,
    delta,
    event,
    finish,
    reply,
    stream,
)

EMPTY: dict[str, Any] = {
    "openai": {"choices": []},
    "openai-responses": {"id": "r", "status": "completed", "output": []},
    "anthropic": {"id": "m", "content": [], "stop_reason": "end_turn"},
    "gemini": {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]},
}
_ROLE = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}
_BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
EMPTY_STREAM: dict[str, list[Any]] = {
    "openai": [event(_ROLE), finish(), DONE],
    "openai-responses": [
        event({"type": "response.created", "response": {"id": "r", "status": "in_progress"}}),
        event({"type": "response.completed", "response": EMPTY["openai-responses"]}),
    ],
    "anthropic": [
        event({"type": "message_start", "message": {"id": "m", "content": []}}),
        event(_BLOCK),
        event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        event({"type": "message_stop"}),
    ],
    "gemini": [event(EMPTY["gemini"])],
}


def _call(gateway: Gateway, model: str, *, streamed: bool = False) -> Any:
    messages = [{"role": "user", "content": PROMPT}]
    body = {"model": model, "messages": messages, "stream": streamed}
    return gateway.caller.post(CHAT, json=body)


@pytest.fixture
def other(gateway: Gateway, upstream: Upstream) -> Lane:
    """The provider that is asked second."""
    return gateway.add_lane(upstream)


@pytest.mark.parametrize("dialect", EMPTY)
def test_an_empty_answer_goes_to_the_next_target(
    dialect: str, gateway: Gateway, upstream: Upstream, other: Lane
) -> None:
    """The caller gets the second target's answer and no byte of the first; nobody rests for it."""
    base_url = upstream.url.replace("/v1", "/v1beta") if dialect == "gemini" else upstream.url
    lane = gateway.add_lane(upstream, base_url=base_url, dialect=dialect)
    name = f"c{secrets.token_hex(4)}"
    models = [f"{lane.prefix}/m", f"{other.prefix}/m"]
    expect(gateway.admin.post("/api/combos", json={"name": name, "models": models}), 201)

    upstream.script(reply(EMPTY[dialect]))
    upstream.script(reply(completion()), key=other.secrets[0])
    whole = _call(gateway, name)
    assert whole.status_code == 200, whole.text
    assert whole.headers["x-gateway-fallback-attempts"] == "1"

    upstream.script(stream(*EMPTY_STREAM[dialect]))
    upstream.script(stream(delta("from two"), finish(), DONE), key=other.secrets[0])
    streamed = _call(gateway, name, streamed=True)
    assert streamed.headers["x-gateway-fallback-attempts"] == "1"
    first = json.loads(events_of(streamed.content)[0])
    assert first["choices"][0]["delta"]["content"] == "from two"


def test_the_last_empty_answer_is_an_error(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream)
    upstream.script(reply(EMPTY["openai"]), stream(*EMPTY_STREAM["openai"]))
    for streamed in (False, True):
        answer = _call(gateway, lane.model, streamed=streamed)
        assert answer.status_code == 502, answer.text
        assert answer.json()["error"]["code"] == "empty_answer"

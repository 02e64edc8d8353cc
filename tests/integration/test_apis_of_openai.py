"""Models that only OpenAI's responses API serves are called by it, whatever dialect their caller speaks."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.support.processes import Gateway, expect
from tests.support.upstream import (
    DONE,
    Upstream,
    completion,
    delta,
    event,
    finish,
    head,
    reply,
    stream,
    usage_event,
)

RESPONSES_ONLY: Final = "gpt-6-astra"
WITHOUT_REASONING: Final = "gpt-6-sol"
LEFT_OUT: Final = "x-gateway-left-out"
TURN: Final = [{"role": "user", "content": "hi"}]
FUNCTION: Final = {"name": "look", "parameters": {"type": "object", "properties": {}}}
CHAT_TOOLS: Final = [{"type": "function", "function": FUNCTION}]
SCHEMA: Final = {"type": "object", "properties": {}}

MESSAGE: Final = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "hello", "annotations": []}],
}
RESPONSE: Final = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": RESPONSES_ONLY,
    "status": "completed",
    "output": [MESSAGE],
    "usage": {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13},
}


def response_stream() -> list[Any]:
    begun = {**RESPONSE, "status": "in_progress", "output": [], "usage": None}
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_text.delta", **at, "delta": "hello"},
        {"type": "response.output_item.done", "output_index": 0, "item": MESSAGE},
        {"type": "response.completed", "response": RESPONSE},
    ]
    return stream(*(event({**one, "sequence_number": at}) for at, one in enumerate(events)))


def chat(model: str, is_stream: bool) -> tuple[str, dict[str, Any]]:
    return "/v1/chat/completions", {"model": model, "messages": TURN, "stream": is_stream}


def messages(model: str, is_stream: bool) -> tuple[str, dict[str, Any]]:
    body = {"model": model, "max_tokens": 64, "messages": TURN, "stream": is_stream}
    return "/v1/messages", body


def responses(model: str, is_stream: bool) -> tuple[str, dict[str, Any]]:
    return "/v1/responses", {"model": model, "input": "hi", "stream": is_stream, "store": False}


def gemini(model: str, is_stream: bool) -> tuple[str, dict[str, Any]]:
    call = "streamGenerateContent?alt=sse" if is_stream else "generateContent"
    return f"/v1beta/models/{model}:{call}", {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}]
    }


def ollama(model: str, is_stream: bool) -> tuple[str, dict[str, Any]]:
    return "/ollama/api/chat", {"model": model, "messages": TURN, "stream": is_stream}


CALLERS: Final = [chat, messages, responses, gemini, ollama]


@pytest.mark.parametrize("is_stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("caller", CALLERS, ids=lambda caller: caller.__name__)
def test_a_model_of_responses_alone_serves_every_caller(
    gateway: Gateway, upstream: Upstream, built_in: Any, caller: Any, is_stream: bool
) -> None:
    built_in("openai")
    upstream.script(response_stream() if is_stream else reply(RESPONSE))
    path, body = caller(f"openai/{RESPONSES_ONLY}", is_stream)
    answer = gateway.caller.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert "hello" in answer.text
    seen = upstream.last
    assert seen.target.endswith("/responses"), seen.target
    sent = seen.json()
    assert sent["model"] == RESPONSES_ONLY
    assert sent.get("stream", False) == is_stream
    assert "messages" not in sent
    if caller is responses:
        assert sent == {**body, "model": RESPONSES_ONLY}


def test_the_usage_of_such_a_call_is_recorded(
    gateway: Gateway, upstream: Upstream, built_in: Any
) -> None:
    built_in("openai")
    upstream.script(reply(RESPONSE))
    path, body = chat(f"openai/{RESPONSES_ONLY}", False)
    answer = gateway.caller.post(path, json=body)
    assert answer.json()["usage"]["completion_tokens"] == 4
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert (record["tokensInput"], record["tokensOutput"]) == (9, 4)
    assert record["costUsdMicros"] > 0


@pytest.mark.parametrize(
    ("model", "target"),
    [(RESPONSES_ONLY, "/responses"), ("gpt-5.2", "/chat/completions")],
)
def test_each_target_of_a_combo_is_called_by_its_own_api(
    gateway: Gateway, upstream: Upstream, built_in: Any, model: str, target: str
) -> None:
    built_in("openai")
    steps = [f"openai/{RESPONSES_ONLY}", "openai/gpt-5.2"]
    steps = steps if model == RESPONSES_ONLY else steps[::-1]
    combo = {"name": f"apis-{model}", "models": [*steps]}
    made = expect(gateway.admin.post("/api/combos", json=combo), 201)
    other = "gpt-5.2" if model == RESPONSES_ONLY else RESPONSES_ONLY
    overloaded = [head(503, [("Content-Length", "0")])]
    is_first = model == RESPONSES_ONLY
    upstream.script(overloaded, model=model)
    upstream.script(reply(completion() if is_first else RESPONSE), model=other)
    try:
        answer = gateway.caller.post(
            "/v1/chat/completions", json={"model": combo["name"], "messages": TURN}
        )
        assert answer.status_code == 200, answer.text
        targets = {seen.json()["model"]: seen.target for seen in upstream.requests[-2:]}
        assert targets[model].endswith(target)
        assert answer.json()["choices"][0]["message"]["content"] == "hello"
    finally:
        expect(gateway.admin.delete(f"/api/combos/{made['id']}"), 200)


def test_tools_with_reasoning_go_by_responses(
    gateway: Gateway, upstream: Upstream, built_in: Any
) -> None:
    built_in("openai")
    upstream.script(reply(RESPONSE))
    path, body = chat(f"openai/{WITHOUT_REASONING}", False)
    answer = gateway.caller.post(
        path, json={**body, "tools": CHAT_TOOLS, "reasoning_effort": "high"}
    )
    assert answer.status_code == 200, answer.text
    assert upstream.last.target.endswith("/responses")
    assert upstream.last.json()["reasoning"]["effort"] == "high"
    path, body = messages(f"openai/{WITHOUT_REASONING}", False)
    thinking = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}
    tools = [{"name": "look", "input_schema": SCHEMA}]
    answer = gateway.caller.post(path, json={**body, **thinking, "tools": tools})
    assert answer.status_code == 200, answer.text
    assert upstream.last.json()["reasoning"]["effort"] == "low"
    assert LEFT_OUT not in answer.headers


def test_tools_without_a_wish_to_reason_stay_at_chat(
    gateway: Gateway, upstream: Upstream, built_in: Any
) -> None:
    built_in("openai")
    upstream.script(reply(completion()))
    path, body = chat(f"openai/{WITHOUT_REASONING}", False)
    answer = gateway.caller.post(path, json={**body, "tools": CHAT_TOOLS})
    assert answer.status_code == 200, answer.text
    assert upstream.last.target.endswith("/chat/completions")
    assert upstream.last.json()["reasoning_effort"] == "none"


def test_what_responses_cannot_say_goes_by_chat_without_reasoning(
    gateway: Gateway, upstream: Upstream, built_in: Any
) -> None:
    built_in("openai")
    upstream.script(reply(completion()))
    path, body = chat(f"openai/{WITHOUT_REASONING}", False)
    more = {"tools": CHAT_TOOLS, "reasoning_effort": "high", "n": 2}
    answer = gateway.caller.post(path, json={**body, **more})
    assert answer.status_code == 200, answer.text
    assert upstream.last.target.endswith("/chat/completions")
    assert upstream.last.json()["reasoning_effort"] == "none"
    assert answer.headers[LEFT_OUT] == "reasoning_effort"


def test_a_conversation_is_compacted_by_such_a_model(
    gateway: Gateway, upstream: Upstream, built_in: Any
) -> None:
    built_in("openai")
    compacted = {"id": "resp_2", "object": "response.compaction", "output": [MESSAGE]}
    upstream.script(reply(compacted))
    body = {"model": "openai/gpt-5.3-codex", "input": [{"role": "user", "content": "hi"}]}
    answer = gateway.caller.post("/v1/responses/compact", json=body)
    assert answer.status_code == 200, answer.text
    assert upstream.last.target.endswith("/responses/compact")


@pytest.mark.parametrize("caller", [chat, messages, responses, ollama], ids=lambda it: it.__name__)
def test_a_model_that_reasons_only_in_streams_answers_whole(
    gateway: Gateway, upstream: Upstream, built_in: Any, caller: Any
) -> None:
    built_in("dashscope")
    thought = {"index": 0, "delta": {"reasoning_content": "hm"}, "finish_reason": None}
    first = event({"id": "c", "model": "m", "choices": [thought]})
    upstream.script(stream(first, delta("hel"), delta("lo"), finish(), usage_event(9, 4), DONE))
    path, body = caller("dashscope/qwen3-30b-a3b", False)
    if caller is messages:
        body = {**body, "thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048}
    answer = gateway.caller.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert upstream.last.json()["stream"] is True
    assert answer.headers["content-type"].startswith("application/json")
    assert "hello" in answer.text
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert (record["tokensInput"], record["tokensOutput"]) == (9, 4)


def test_a_stream_that_breaks_off_is_no_whole_answer(
    gateway: Gateway, upstream: Upstream, built_in: Any
) -> None:
    built_in("dashscope")
    upstream.script(stream(delta("hel")))
    path, body = chat("dashscope/qwen3-30b-a3b", False)
    answer = gateway.caller.post(path, json=body)
    assert answer.status_code == 502, answer.text

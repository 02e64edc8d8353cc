"""Requests are written by facts of their provider. Members that it does not accept are left out, or refused."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.support.processes import Gateway
from tests.support.upstream import DONE, Upstream, completion, event, reply, stream

LEFT_OUT: Final = "x-gateway-left-out"
CHOICE: Final = "X-Gateway-Inexpressible"
MESSAGES: Final = {"max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}


def test_a_strict_provider_gets_no_member_that_it_refuses(
    gateway: Gateway, upstream: Upstream, built_in: Any
) -> None:
    built_in("mistral")
    upstream.script(reply(completion()))
    body = {
        **MESSAGES,
        "model": "mistral/mistral-large-latest",
        "metadata": {"user_id": "u" * 186},
        "top_k": 5,
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    }
    answer = expect_response(gateway.caller.post("/v1/messages", json=body))
    sent = upstream.last.json()
    assert sent.keys() == {"model", "messages", "max_tokens"}
    assert sent["max_tokens"] == 64
    left_out = set(answer.headers[LEFT_OUT].split(", "))
    assert left_out == {"metadata.user_id", "top_k", "web_search"}


def test_a_stream_of_such_a_provider_is_not_asked_for_its_usage(
    gateway: Gateway, upstream: Upstream, built_in: Any
) -> None:
    built_in("mistral")
    last = {**completion(), "object": "chat.completion.chunk"}
    last["choices"] = [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]
    for path, body in (
        ("/v1/messages", {**MESSAGES, "top_k": 5}),
        ("/v1/chat/completions", {"messages": MESSAGES["messages"]}),
    ):
        upstream.script(stream(event(last), DONE))
        asked = {**body, "model": "mistral/codestral-2508", "stream": True}
        answer = expect_response(gateway.caller.post(path, json=asked))
        assert "stream_options" not in upstream.last.json(), path
        assert answer.headers.get(LEFT_OUT) == ("top_k" if path == "/v1/messages" else None)


def test_a_long_name_of_a_tool_comes_back_whole(
    gateway: Gateway, upstream: Upstream, built_in: Any
) -> None:
    built_in("openai")
    name = "mcp__server__" + "x" * 80

    def answer(request: Any) -> Any:
        short = request.json()["tools"][0]["function"]["name"]
        assert len(short) == 64
        call = {"id": "c", "type": "function", "function": {"name": short, "arguments": "{}"}}
        whole = completion()
        whole["choices"][0] |= {
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": None, "tool_calls": [call]},
        }
        return whole

    body = {
        **MESSAGES,
        "model": "openai/gpt-5.2",
        "tools": [{"name": name, "input_schema": {"type": "object"}}],
    }
    upstream.script(reply(completion()))
    expect_response(gateway.caller.post("/v1/messages", json=body))
    upstream.script(reply(answer(upstream.last)))
    answered = expect_response(gateway.caller.post("/v1/messages", json=body)).json()
    assert answered["content"][0]["name"] == name


@pytest.mark.parametrize(
    ("connection", "key", "header", "is_sent"),
    [
        (None, None, None, False),
        ("drop", None, None, True),
        ("drop", "refuse", None, False),
        ("refuse", "drop", None, True),
        (None, "refuse", "drop", True),
        ("drop", "drop", "refuse", False),
    ],
)
def test_members_with_consequences_are_refused_or_dropped(
    gateway: Gateway,
    upstream: Upstream,
    built_in: Any,
    connection: str | None,
    key: str | None,
    header: str | None,
    is_sent: bool,
) -> None:
    built_in("openai", inexpressible=connection)
    text = gateway.create_key(inexpressible=key)["key"]
    caller = gateway.client(headers={"Authorization": f"Bearer {text}"})
    upstream.script(reply(completion()))
    body = {**MESSAGES, "model": "openai/gpt-5.1", "stop_sequences": ["END"]}
    headers = {} if header is None else {CHOICE: header}
    answer = caller.post("/v1/messages", json=body, headers=headers)
    if is_sent:
        expect_response(answer)
        assert "stop" not in upstream.last.json()
        assert answer.headers[LEFT_OUT] == "stop_sequences"
    else:
        assert answer.status_code == 400
        assert "stop_sequences" in answer.json()["error"]["message"]


def test_a_wish_that_nobody_knows_is_refused(gateway: Gateway) -> None:
    body = {**MESSAGES, "model": "openai/gpt-5.1"}
    answer = gateway.caller.post("/v1/messages", json=body, headers={CHOICE: "ignore"})
    assert answer.status_code == 400
    assert CHOICE in answer.json()["error"]["message"]


def expect_response(answer: Any) -> Any:
    assert answer.status_code == 200, answer.text
    return answer

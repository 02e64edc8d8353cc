"""`X-Gateway-Cost-Comment`: streams of events end with what they cost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.processes import Gateway, Lane, expect
from tests.support.sdks import openai
from tests.support.upstream import Upstream, completion, delta, finish, reply, stream, usage_event

ASK = {"X-Gateway-Cost-Comment": "true"}


def comments(text: str) -> dict[str, str]:
    """The comments behind the last event."""
    last = text.rstrip("\n").rsplit("\n\n", 1)[-1]
    lines = [line for line in last.splitlines() if line.startswith(": ")]
    return dict(line[2:].split("=", 1) for line in lines)


def test_a_stream_ends_with_its_cost(gateway: Gateway, lane: Lane, upstream: Upstream) -> None:
    priced = {lane.node["id"]: {"m": {"input": 2, "output": 10}}}
    expect(gateway.admin.patch("/api/pricing", json=priced), 200)
    upstream.script(stream(delta("hi"), finish(), usage_event(1000, 100)))
    headers = {"Authorization": f"Bearer {gateway.key}"}
    asked: dict[str, Any] = {
        "model": lane.model,
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
    }
    calls = [
        ("/v1/chat/completions", asked),
        ("/v1/messages", {**asked, "max_tokens": 9}),
        ("/v1/responses", {"model": lane.model, "input": "hi", "stream": True, "store": False}),
    ]
    with gateway.client(headers=headers) as caller:
        for path, body in calls:
            told = comments(caller.post(path, json=body, headers=ASK).text)
            assert told["x-gateway-tokens-in"] == "1000", path
            assert told["x-gateway-tokens-out"] == "100", path
            assert float(told["x-gateway-response-cost"]) == pytest.approx(0.003), path
            assert not comments(caller.post(path, json=body).text), path


def test_clients_read_on(gateway: Gateway, model: str) -> None:
    """A comment is nothing to them."""
    with openai.OpenAI(
        base_url=f"{gateway.url}/v1", api_key=gateway.key, default_headers=ASK, max_retries=0
    ) as client:
        said: Any = [{"role": "user", "content": "Say hello."}]
        chunks = list(client.chat.completions.create(model=model, messages=said, stream=True))
        assert "Say hello." in "".join(
            chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices
        )


def test_a_list_has_no_comments(gateway: Gateway, model: str) -> None:
    body = {"contents": [{"parts": [{"text": "hi"}]}]}
    headers = {"x-goog-api-key": gateway.key, **ASK}
    with gateway.client(headers=headers) as caller:
        answer = caller.post(f"/v1beta/models/{model}:streamGenerateContent", json=body)
        assert isinstance(answer.json(), list)


def test_classes_and_music_pass_on(gateway: Gateway, lane: Lane, upstream: Upstream) -> None:
    """Both go to the provider with the model's own name; what lacks is named."""
    upstream.script(reply({**completion(), "data": [{"prediction": "boat"}]}))
    headers = {"Authorization": f"Bearer {gateway.key}"}
    with gateway.client(headers=headers) as caller:
        for path, body, member in (
            ("/v1/classify", {"input": ["a sloop"], "labels": ["boat", "car"]}, "input"),
            ("/v1/music/generations", {"prompt": "a shanty"}, "prompt"),
        ):
            told = expect(caller.post(path, json={"model": lane.model, **body}), 200)
            assert told["data"] == [{"prediction": "boat"}]
            assert upstream.requests[-1].target == path
            assert upstream.requests[-1].json() == {"model": "m", **body}
            answer = caller.post(path, json={"model": lane.model})
            assert (answer.status_code, answer.json()["error"]["param"]) == (400, member)

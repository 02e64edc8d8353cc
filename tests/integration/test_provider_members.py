"""What only a provider reads is bounded before it leaves, and no header of a caller acts on the operator's account."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.support.processes import PROMPT, Gateway, Lane
from tests.support.upstream import Upstream, reply

MESSAGES: list[dict[str, Any]] = [{"role": "user", "content": PROMPT}]
SURFACES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "chat": ("openai", "/v1/chat/completions", {"messages": MESSAGES}),
    "responses": ("openai-responses", "/v1/responses", {"input": PROMPT}),
    "messages": ("anthropic", "/v1/messages", {"messages": MESSAGES, "max_tokens": 5}),
    "gemini": (
        "gemini",
        "/v1beta/models/{model}:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": PROMPT}]}]},
    ),
    "embeddings": ("openai", "/v1/embeddings", {"input": PROMPT}),
    "images": ("openai", "/v1/images/generations", {"prompt": PROMPT}),
}
TEXT = "x" * 2_000
OUT_OF_BOUNDS: dict[str, Any] = {
    "user": TEXT,
    "safety_identifier": TEXT,
    "prompt_cache_key": TEXT,
    "session_id": {"a": TEXT},
    "webhook_url": f"https://example.com/{TEXT}",
    "metadata": {f"k{at}": "v" * 500 for at in range(140)},
    "labels": {f"k{at}": "v" * 500 for at in range(140)},
    "cache_salt": 5,
}
WITHIN: dict[str, Any] = {
    "user": "u" * 64,
    "prompt_cache_key": "k" * 64,
    "metadata": {f"k{at}": "é" * 512 for at in range(16)},
    "cache_salt": "salt",
    "new_option": {"of": ["a provider"] * 100},
}


class Surface:
    """One way to call a provider that speaks the caller's own dialect."""

    def __init__(self, gateway: Gateway, upstream: Upstream, name: str) -> None:
        dialect, path, self.body = SURFACES[name]
        self.gateway, self.upstream = gateway, upstream
        self.lane: Lane = gateway.add_lane(upstream, dialect=dialect)
        self.path = path.format(model=self.lane.model)
        upstream.script(reply({"error": {"message": "asked"}}, 400))

    def send(self, content: bytes, **headers: str) -> httpx.Response:
        named = {"content-type": "application/json", "authorization": f"Bearer {self.gateway.key}"}
        client = self.gateway.client()
        return client.post(self.path, content=content, headers=named | headers)

    def ask(self, members: dict[str, Any], **headers: str) -> httpx.Response:
        body = {"model": self.lane.model} | self.body | members
        if "{model}" in SURFACES["gemini"][1] and "contents" in body:
            del body["model"]
        return self.send(json.dumps(body).encode(), **headers)


@pytest.fixture(params=SURFACES)
def surface(request: pytest.FixtureRequest, gateway: Gateway, upstream: Upstream) -> Surface:
    return Surface(gateway, upstream, request.param)


def test_members_out_of_bounds_never_leave(surface: Surface) -> None:
    for name, value in OUT_OF_BOUNDS.items():
        answer = surface.ask({name: value})
        assert answer.status_code == 400, (name, answer.text)
        assert name in answer.text
        assert TEXT not in answer.text
    many = {f"option_{at}": at for at in range(300)}
    assert surface.ask(many).status_code == 400
    deep = json.dumps({"model": surface.lane.model} | surface.body)[:-1]
    nested = f'{deep}, "deep": {"[" * 300}{"]" * 300}}}'
    assert surface.send(nested.encode()).status_code == 400
    assert surface.upstream.requests == []


def test_members_within_bounds_go_on(surface: Surface) -> None:
    answer = surface.ask(WITHIN)
    assert "asked" in answer.text or answer.status_code == 400, answer.text
    (seen,) = surface.upstream.requests
    sent = json.loads(seen.body)
    assert {name: sent.get(name) for name in WITHIN} == WITHIN


@pytest.mark.parametrize("name", ["chat", "responses", "messages", "gemini"])
def test_a_large_member_of_a_conversation_is_one_that_is_known(
    gateway: Gateway, upstream: Upstream, name: str
) -> None:
    surface = Surface(gateway, upstream, name)
    refused = surface.ask({"new_option": "x" * 70_000})
    assert (refused.status_code, "new_option" in refused.text) == (400, True)
    assert upstream.requests == []
    surface.ask({"tools": [{"type": "custom", "name": "t", "description": "x" * 70_000}]})
    assert len(upstream.requests) == 1


HEADERS = {
    "OpenAI-Organization": "org-of-somebody",
    "OpenAI-Project": "proj-of-somebody",
    "OpenAI-Beta": "assistants=v2",
    "anthropic-workspace": "somebody",
    "x-goog-user-project": "somebody",
    "x-amz-security-token": "somebody",
    "x-portkey-config": "somebody",
    "x-custom": "somebody",
    "HTTP-Referer": "https://somebody.example",
    "Cookie": "somebody=1",
}


def test_no_header_of_a_caller_acts_on_the_operators_account(surface: Surface) -> None:
    surface.ask({}, **HEADERS)
    (seen,) = surface.upstream.requests
    assert "somebody" not in str(seen.headers)
    assert seen.header("openai-beta") is None


def test_beta_features_are_bounded(gateway: Gateway, upstream: Upstream) -> None:
    surface = Surface(gateway, upstream, "messages")
    surface.ask({}, **{"anthropic-beta": "context-1m-2025-08-07"})
    assert upstream.last.header("anthropic-beta") == "context-1m-2025-08-07"
    asked = len(upstream.requests)
    refused = surface.ask({}, **{"anthropic-beta": "a," * 1_500})
    assert (refused.status_code, "anthropic-beta" in refused.text) == (400, True)
    assert len(upstream.requests) == asked

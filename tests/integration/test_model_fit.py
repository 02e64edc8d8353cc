"""What an operator says of a model and of a server reaches the provider: the cap on its output in every dialect, and
thinking that is switched in a chat template."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.support.processes import Gateway, expect
from tests.support.upstream import Upstream, completion, reply

DETECTED: Final = {
    "data": [
        {"id": "seen", "openai": {"openai": {"openai": {"owned_by": "vllm"}}}},
        {"id": "deeper", "openai": {"openai": {"openai": {"openai": {"owned_by": "vllm"}}}}},
        {"id": "torn", "owned_by": "vllm", "openai": {"owned_by": "sglang"}},
        {"id": "plain", "owned_by": "somebody"},
    ]
}
OFF: Final = {"thinking": False, "enable_thinking": False}
MARK: Final = "You are a security monitor for autonomous AI coding agents.\n## Context"

Talk = dict[str, Any]


def _limit(body: Talk, dialect: str) -> Any:
    return {
        "openai": body.get("max_completion_tokens"),
        "openai-responses": body.get("max_output_tokens"),
        "anthropic": body.get("max_tokens"),
        "gemini": body.get("generationConfig", {}).get("maxOutputTokens"),
    }[dialect]


def _callers(model: str, most: int) -> dict[str, tuple[str, Talk]]:
    said = [{"role": "user", "content": "hi"}]
    gemini = {
        "contents": [{"parts": [{"text": "hi"}]}],
        "generationConfig": {"maxOutputTokens": most},
    }
    return {
        "openai": (
            "/v1/chat/completions",
            {"model": model, "messages": said, "max_completion_tokens": most},
        ),
        "openai-responses": (
            "/v1/responses",
            {"model": model, "input": "hi", "store": False, "max_output_tokens": most},
        ),
        "anthropic": ("/v1/messages", {"model": model, "messages": said, "max_tokens": most}),
        "gemini": (f"/v1beta/models/{model}:generateContent", gemini),
    }


@pytest.mark.parametrize("dialect", ["openai", "openai-responses", "anthropic", "gemini"])
def test_a_cap_is_held_whoever_asks(gateway: Gateway, upstream: Upstream, dialect: str) -> None:
    node = gateway.add_node(f"cap-{dialect}-{upstream.port}", upstream.url, dialect=dialect)
    gateway.add_connection(node["id"], f"sk-capped-{dialect}-canary")
    model = f"{node['prefix']}/tall"
    upstream.script(reply({"error": {"message": "no"}}, 400))
    cap = {"provider": node["id"], "modelId": "tall", "maxOutputTokenOverride": 50}
    expect(gateway.admin.put("/api/provider-models", json=cap), 200)
    for most, got in [(9, 9), (5_000, 50)]:
        for path, body in _callers(model, most).values():
            assert gateway.caller.post(path, json=body).status_code == 400
            assert _limit(upstream.last.json(), dialect) == got, (path, upstream.last.json())
    cleared = {**cap, "maxOutputTokenOverride": None}
    expect(gateway.admin.put("/api/provider-models", json=cleared), 200)
    for path, body in _callers(model, 5_000).values():
        gateway.caller.post(path, json=body)
        assert _limit(upstream.last.json(), dialect) == 5_000, path


def test_a_cap_holds_for_text_completions(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream)
    cap = {"provider": lane.node["id"], "modelId": "m", "maxOutputTokenOverride": 50}
    expect(gateway.admin.put("/api/provider-models", json=cap), 200)
    asked = {"model": lane.model, "prompt": "hi", "max_tokens": 80}
    expect(gateway.caller.post("/v1/completions", json=asked), 200)
    assert upstream.last.json()["max_tokens"] == 50


@pytest.fixture
def asked(gateway: Gateway, upstream: Upstream) -> Callable[..., Talk]:
    """Sends one chat or messages request through a server whose list was read; what arrived."""
    lane = gateway.add_lane(upstream)
    (connection,) = lane.connections
    path = f"/api/providers/{connection['id']}"
    upstream.script(reply(DETECTED), reply(completion()))
    expect(gateway.admin.post(f"{path}/test"), 200)

    def ask(model: str, *, path: str = "/v1/chat/completions", **fields: Any) -> Talk:
        body = {
            "model": f"{lane.prefix}/{model}",
            "messages": [{"role": "user", "content": "hi"}],
            **fields,
        }
        headers = {"x-gateway-no-cache": "true"}
        expect(gateway.caller.post(path, json=body, headers=headers), 200)
        arrived: Talk = upstream.last.json()
        return arrived

    def pin(control: str | None) -> None:
        body = {"providerSpecificData": {"reasoningControl": control}}
        expect(gateway.admin.put(path, json=body), 200)

    ask.pin = pin  # type: ignore[attr-defined]
    return ask


def test_an_effort_of_none_is_said_to_the_template(asked: Callable[..., Talk]) -> None:
    assert asked("seen", reasoning_effort="none")["chat_template_kwargs"] == OFF
    for model in ("deeper", "torn", "plain"):
        arrived = asked(model, reasoning_effort="none")
        assert arrived["reasoning_effort"] == "none", model
        assert "chat_template_kwargs" not in arrived, model
    assert asked("seen", reasoning_effort="low")["reasoning_effort"] == "low"
    own = {"enable_thinking": True}
    arrived = asked("seen", reasoning_effort="none", chat_template_kwargs=own)
    assert arrived["chat_template_kwargs"] == own
    assert "reasoning_effort" not in arrived


def test_a_pin_goes_before_what_was_found(asked: Callable[..., Talk]) -> None:
    asked.pin("chat-template")  # type: ignore[attr-defined]
    assert asked("plain", reasoning_effort="none")["chat_template_kwargs"] == OFF
    asked.pin("openai")  # type: ignore[attr-defined]
    assert "chat_template_kwargs" not in asked("seen", reasoning_effort="none")
    asked.pin(None)  # type: ignore[attr-defined]
    assert asked("seen", reasoning_effort="none")["chat_template_kwargs"] == OFF


def test_a_classifier_of_a_coding_tool_does_not_think_unasked(asked: Callable[..., Talk]) -> None:
    def classify(model: str, **fields: Any) -> Talk:
        system = [{"type": "text", "text": MARK}]
        return asked(model, path="/v1/messages", max_tokens=64, system=system, **fields)

    assert classify("seen")["chat_template_kwargs"] == OFF
    assert "chat_template_kwargs" not in classify("plain")
    arrived = classify("seen", thinking={"type": "enabled", "budget_tokens": 2_000})
    assert "chat_template_kwargs" not in arrived
    assert arrived["reasoning_effort"] == "low"
    plain = asked("seen", path="/v1/messages", max_tokens=64, system="Be brief.")
    assert "chat_template_kwargs" not in plain


def test_a_classifier_keeps_its_bytes_but_for_thinking_in_its_own_dialect(
    gateway: Gateway, upstream: Upstream
) -> None:
    node = gateway.add_node(f"classify-{upstream.port}", upstream.url, dialect="anthropic")
    gateway.add_connection(node["id"], "sk-classifier-canary")
    upstream.script(reply({"error": {"message": "no"}}, 400))
    body = {
        "model": f"{node['prefix']}/m",
        "max_tokens": 64,
        "system": MARK,
        "messages": [{"role": "user", "content": "ls"}],
    }
    gateway.caller.post("/v1/messages", json=body)
    expected = {**body, "model": "m", "thinking": {"type": "disabled"}}
    assert upstream.last.body == json.dumps(expected, separators=(",", ":")).encode()

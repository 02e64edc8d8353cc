"""An operator's facts change the requests that providers get, and the calls that models accept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import httpx
import pytest

from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Upstream, completion, reply

MODELS: Final = "/api/provider-models"
CHAT: Final = "/v1/chat/completions"
LEFT_OUT: Final = "x-gateway-left-out"
TURN: Final = [{"role": "user", "content": "hi"}]
RESPONSE: Final = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "output": [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "hello", "annotations": []}],
        }
    ],
    "usage": {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13},
}


@pytest.fixture
def state(gateway: Gateway, lane: Lane) -> Callable[..., None]:
    """States fields of the lane's model."""

    def put(model: str = "m", **fields: Any) -> None:
        body = {"provider": lane.prefix, "modelId": model, **fields}
        expect(gateway.admin.put(MODELS, json=body), 200)

    return put


def sent(lane: Lane, path: str, body: dict[str, Any], **headers: str) -> tuple[Any, httpx.Response]:
    """The body that the provider got, and the answer."""
    lane.upstream.script(reply(completion()))
    answer = lane.gateway.caller.post(path, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return lane.upstream.last.json(), answer


def test_a_fact_changes_the_written_body_until_it_is_deleted(
    gateway: Gateway, lane: Lane, state: Callable[..., None]
) -> None:
    body = {"model": lane.model, "max_tokens": 64, "messages": TURN}
    before, _ = sent(lane, "/v1/messages", body)
    assert before["max_completion_tokens"] == 64
    state(facts={"capMember": "max_tokens", "system": False})
    stated, _ = sent(lane, "/v1/messages", {**body, "system": "Be brief."})
    assert stated["max_tokens"] == 64
    assert "max_completion_tokens" not in stated
    assert [turn["role"] for turn in stated["messages"]] == ["user"]
    query = {"provider": lane.prefix, "model": "m"}
    expect(gateway.admin.delete(MODELS, params=query), 200)
    after, _ = sent(lane, "/v1/messages", body)
    assert after == before


def test_a_fact_of_a_node_or_a_connection_holds_for_all_models(
    gateway: Gateway, lane: Lane, state: Callable[..., None]
) -> None:
    body = {"model": f"{lane.prefix}/unlisted", "max_tokens": 64, "messages": TURN}
    node = f"/api/provider-nodes/{lane.node['id']}"
    connection = f"/api/providers/{lane.connections[0]['id']}"
    expect(gateway.admin.put(node, json={"facts": {"capMember": "max_tokens"}}), 200)
    assert "max_tokens" in sent(lane, "/v1/messages", body)[0]
    own = {"providerSpecificData": {"facts": {"capMember": "max_completion_tokens"}}}
    expect(gateway.admin.put(connection, json=own), 200)
    assert "max_completion_tokens" in sent(lane, "/v1/messages", body)[0]
    state("unlisted", facts={"capMember": "max_tokens"})
    assert "max_tokens" in sent(lane, "/v1/messages", body)[0]


@pytest.mark.parametrize("path", [CHAT, "/v1/messages"])
def test_refused_members_are_left_out_in_every_dialect(
    lane: Lane, state: Callable[..., None], path: str
) -> None:
    body = {"model": lane.model, "max_tokens": 64, "messages": TURN, "temperature": 0.5}
    assert sent(lane, path, body)[0]["temperature"] == 0.5
    state(refuses=["temperature"])
    stated, answer = sent(lane, path, body)
    assert "temperature" not in stated
    assert answer.headers[LEFT_OUT] == "temperature"
    plain = {**body, "model": f"{lane.prefix}/other"}
    assert sent(lane, path, plain)[0]["temperature"] == 0.5
    state(refuses=None)
    assert sent(lane, path, body)[0]["temperature"] == 0.5


def test_a_refused_member_that_changes_the_answer_follows_inexpressible(
    lane: Lane, state: Callable[..., None]
) -> None:
    state(refuses=["response_format"])
    body = {"model": lane.model, "messages": TURN, "response_format": {"type": "json_object"}}
    refused = lane.gateway.caller.post(CHAT, json=body)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "response_format"
    stated, answer = sent(lane, CHAT, body, **{"X-Gateway-Inexpressible": "drop"})
    assert "response_format" not in stated
    assert answer.headers[LEFT_OUT] == "response_format"


@pytest.mark.parametrize(
    ("group", "parent", "key", "is_sent"),
    [
        (None, None, None, False),
        ("drop", None, None, True),
        (None, "drop", None, True),
        ("refuse", "drop", None, False),
        ("drop", None, "refuse", False),
        ("refuse", None, "drop", True),
    ],
)
def test_a_key_inherits_the_choice_of_its_group(
    gateway: Gateway,
    lane: Lane,
    state: Callable[..., None],
    group: str | None,
    parent: str | None,
    key: str | None,
    is_sent: bool,
) -> None:
    state(refuses=["response_format"])
    above = {"name": "above", "inexpressible": parent}
    made = expect(gateway.admin.post("/api/groups", json=above), 201)
    own = {"name": "team", "inexpressible": group, "parentId": made["id"]}
    team = expect(gateway.admin.post("/api/groups", json=own), 201)
    assert team["inexpressible"] == group
    text = gateway.create_key(groupId=team["id"], inexpressible=key)["key"]
    body = {"model": lane.model, "messages": TURN, "response_format": {"type": "json_object"}}
    lane.upstream.script(reply(completion()))
    headers = {"Authorization": f"Bearer {text}"}
    answer = gateway.caller.post(CHAT, json=body, headers=headers)
    assert answer.status_code == (200 if is_sent else 400), answer.text


def test_a_model_is_called_by_the_api_that_is_stated(
    gateway: Gateway, lane: Lane, upstream: Upstream, state: Callable[..., None]
) -> None:
    body = {"model": lane.model, "messages": TURN}
    state(apiType="responses")
    upstream.script(reply(RESPONSE))
    answer = expect(gateway.caller.post(CHAT, json=body), 200)
    assert answer["choices"][0]["message"]["content"] == "hello"
    assert upstream.last.target.endswith("/responses")
    state(apiType=None)
    sent(lane, CHAT, body)
    assert upstream.last.target.endswith("/chat/completions")

    other = gateway.add_lane(upstream, dialect="openai-responses")
    fields = {"provider": other.prefix, "modelId": "m", "apiType": "chat"}
    expect(gateway.admin.put(MODELS, json=fields), 200)
    sent(other, CHAT, {**body, "model": other.model})
    assert upstream.last.target.endswith("/chat/completions")
    upstream.script(reply(RESPONSE))
    expect(gateway.caller.post(CHAT, json={**body, "model": f"{other.prefix}/n"}), 200)
    assert upstream.last.target.endswith("/responses")


def test_the_api_of_a_built_in_model_is_overridden(
    gateway: Gateway, upstream: Upstream, built_in: Any
) -> None:
    built_in("openai")
    model = {"provider": "openai", "modelId": "gpt-5-pro"}
    body = {"model": "openai/gpt-5-pro", "messages": TURN}
    try:
        expect(gateway.admin.put(MODELS, json={**model, "apiType": "chat"}), 200)
        upstream.script(reply(completion()))
        expect(gateway.caller.post(CHAT, json=body), 200)
        assert upstream.last.target.endswith("/chat/completions")
    finally:
        query = {"provider": "openai", "model": "gpt-5-pro"}
        expect(gateway.admin.delete(MODELS, params=query), 200)
    upstream.script(reply(RESPONSE))
    expect(gateway.caller.post(CHAT, json=body), 200)
    assert upstream.last.target.endswith("/responses")


@pytest.mark.parametrize("fields", [{}, {"isHidden": True}], ids=["listed", "hidden"])
@pytest.mark.parametrize("by", ["prefix", "id"])
def test_a_model_accepts_only_the_calls_of_its_stated_type(
    gateway: Gateway, lane: Lane, state: Callable[..., None], fields: dict[str, Any], by: str
) -> None:
    """It is in no list, or called by the node's id: the type holds all the same."""
    state("encoder", type="embedding", **fields)
    name = lane.prefix if by == "prefix" else lane.node["id"]
    before = len(lane.upstream.requests)
    body = {"model": f"{name}/encoder", "messages": TURN}
    for path, more in (
        (CHAT, {}),
        ("/v1/messages", {"max_tokens": 9}),
        ("/ollama/api/chat", {}),
        ("/v1/completions", {"prompt": "x"}),
        ("/v1/rerank", {"query": "a", "documents": ["b"]}),
    ):
        refused = gateway.caller.post(path, json={**body, **more})
        assert refused.status_code == 400, refused.text
        assert "`type`" in refused.text
    assert len(lane.upstream.requests) == before
    vectors: dict[str, Any] = {"object": "list", "model": "encoder", "usage": {"prompt_tokens": 1}}
    vectors |= {"data": [{"object": "embedding", "index": 0, "embedding": [0.5]}]}
    lane.upstream.script(reply(vectors))
    body = {"model": f"{name}/encoder", "input": "x"}
    expect(gateway.caller.post("/v1/embeddings", json=body), 200)
    assert len(lane.upstream.requests) == before + 1
    state("encoder", type=None)
    sent(lane, CHAT, {"model": f"{name}/encoder", "messages": TURN})


def test_a_combo_passes_over_a_model_that_does_not_chat(
    gateway: Gateway, lane: Lane, state: Callable[..., None]
) -> None:
    state("encoder", type="embedding")
    steps = [f"{lane.prefix}/encoder", lane.model]
    made = {"name": f"chats-{lane.prefix}", "models": steps}
    expect(gateway.admin.post("/api/combos", json=made), 201)
    body, _ = sent(lane, CHAT, {"model": made["name"], "messages": TURN})
    assert body["model"] == "m"


def test_a_node_of_embeddings_takes_no_chats(gateway: Gateway, lane: Lane) -> None:
    node = f"/api/provider-nodes/{lane.node['id']}"
    expect(gateway.admin.put(node, json={"apiType": "embeddings"}), 200)
    body = {"model": f"{lane.prefix}/anything", "messages": TURN}
    refused = gateway.caller.post(CHAT, json=body)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "model")
    expect(gateway.admin.put(node, json={"apiType": "chat"}), 200)
    sent(lane, CHAT, body)

"""Agents and a real model call behind them: skills that a model writes, tasks that an operator gives."""

from __future__ import annotations

import json

from tests.support.agents import key_id, make_agent
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Upstream, completion, reply

WRITTEN = {"name": "haiku-poet", "description": "Writes haiku.", "prompt": "You write haiku."}


def says(text: str) -> list[object]:
    """A model's answer with this text."""
    document = completion()
    document["choices"][0]["message"]["content"] = text
    return reply(document)


def test_a_model_writes_a_skill(gateway: Gateway, lane: Lane, upstream: Upstream) -> None:
    """An answer that is no skill is asked for once more; what is saved answers at once."""
    upstream.script(
        says("LocalNode you are:"), says(f"```json\n{json.dumps(WRITTEN)}\n```"), model="m"
    )
    body = {
        "description": "An agent that writes haiku",
        "model": lane.model,
        "apiKeyId": key_id(gateway),
        "save": True,
    }
    made = expect(gateway.admin.post("/api/agent-skills/generate", json=body), 200)
    assert {name: made["skill"][name] for name in WRITTEN} == WRITTEN
    assert made["saved"]["path"] == "/agents/haiku-poet"
    asked = upstream.last.json()["messages"]
    assert "An agent that writes haiku" in asked[1]["content"]
    assert len(asked) == 4
    card = gateway.client().get("/agents/haiku-poet/.well-known/agent-card.json")
    assert card.json()["description"] == "Writes haiku."
    expect(gateway.admin.delete(f"/api/agent-skills/{made['saved']['id']}"), 200)


def test_a_model_that_writes_none_is_told_and_stores_nothing(
    gateway: Gateway, lane: Lane, upstream: Upstream
) -> None:
    body = {"description": "x", "model": lane.model, "apiKeyId": key_id(gateway)}
    for text in ("no", '["a"]', '{"name": "x"}', '{"name": "", "description": "d", "prompt": "p"}'):
        upstream.script(says(text), model="m")
        error = expect(gateway.admin.post("/api/agent-skills/generate", json=body), 502)["error"]
        assert error["code"] == "upstream_invalid"
    # Without a key nobody pays, and the gateway says so.
    keyless = gateway.admin.post(
        "/api/agent-skills/generate", json={"description": "x", "model": lane.model}
    )
    assert keyless.status_code == 401
    wrong = gateway.admin.post("/api/agent-skills/generate", json={"description": ""})
    assert wrong.status_code == 400


def test_an_operators_task_is_done(gateway: Gateway, lane: Lane, upstream: Upstream) -> None:
    upstream.script(says("It is fine."), model="m")
    agent = make_agent(gateway, lane.model)
    body = {"providerId": agent["slug"], "prompt": "Is it fine?"}
    made = expect(gateway.admin.post("/api/v1/agents/tasks", json=body), 201)

    def done() -> dict[str, object] | None:
        found = expect(gateway.admin.get(f"/api/v1/agents/tasks/{made['id']}"), 200)
        return found if found["status"] == "completed" else None

    found = eventually(done, "the task is done", within_s=15)
    assert found["result"]["summary"] == "It is fine."  # type: ignore[index]
    assert [each["type"] for each in found["activities"]] == ["message", "completion"]  # type: ignore[attr-defined]


def test_nobody_manages_agents_without_a_credential(gateway: Gateway) -> None:
    """401 without one; a plain key is 403, a key with `manage` passes."""
    plain = {"Authorization": f"Bearer {gateway.key}"}
    manage = gateway.create_key(name="agents", scopes=["manage"])["key"]
    client = gateway.client()
    for method, path in (
        ("GET", "/api/v1/agents/tasks"),
        ("POST", "/api/v1/agents/tasks"),
        ("GET", "/api/v1/agents/tasks/x"),
        ("POST", "/api/v1/agents/tasks/x"),
        ("DELETE", "/api/v1/agents/tasks/x"),
        ("GET", "/api/agent-skills"),
        ("POST", "/api/agent-skills/generate"),
        ("GET", "/api/agent-skills/x/raw"),
    ):
        body = {"json": {}} if method == "POST" else {}
        assert client.request(method, path, **body).status_code == 401, path
        assert client.request(method, path, headers=plain, **body).status_code == 403, path
        passed = client.request(method, path, headers={"X-API-Key": manage}, **body)
        assert passed.status_code in (200, 400, 404), path

"""PyPI's `mcp` client works on a reverse task over the socket, and finds it again after `kill -9`."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import jsonschema
import pytest

from fairlead.tasks.envelope import envelope_schema
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect

VALIDATOR = jsonschema.Draft202012Validator(envelope_schema())


@pytest.fixture(scope="module")
def gateway(owned_gateway: Gateway) -> Gateway:
    return owned_gateway


@pytest.fixture(scope="module")
def token(gateway: Gateway, owner: httpx.Client) -> str:
    token: str = expect(owner.post("/api/me/tokens", json={"name": "a"}), 201)["token"]
    gateway.canaries.append(token)
    return token


async def call(gateway: Gateway, token: str, mode: str, *calls: tuple[str, Any]) -> list[Any]:
    """What the tools answer; a call of None is what the answer before proposed."""
    import httpx2
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"authorization": f"Bearer {token}"}
    url = f"{gateway.url}/mcp/tasks"
    answers: list[Any] = []
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        assert len((await client.list_tools()).tools) == 4
        for tool, arguments in calls:
            invoke = {"tool": tool, "params": arguments}
            if tool == "follow":
                invoke = answers[-1]["continuation"]["invoke"]
            result = await client.call_tool(invoke["tool"], invoke["params"])
            assert not result.is_error, result
            VALIDATOR.validate(result.structured_content)
            answers.append(result.structured_content)
    return answers


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agent_works_on_a_task_and_it_outlives_a_crash(
    gateway: Gateway, token: str, mode: str
) -> None:
    task = f"task-{mode}"
    error = "ReferenceError: WebSocket is not defined"
    ask = {"action": "update", "taskId": task, "goal": "a goal", "currentStage": "Rebuild"}
    failed = {
        "taskId": task,
        "strategy": "rebuild-first",
        "execute": True,
        "executionOverrides": {"rebuild": {"status": "error", "error": error}},
    }
    answers = asyncio.run(
        call(
            gateway,
            token,
            mode,
            ("manage_reverse_task", ask),
            ("follow", None),
            ("orchestrate_reverse_task", failed),
            ("follow", None),
            ("follow", None),
        )
    )
    assert answers[1]["currentStage"] == "Rebuild"
    assert answers[2]["continuation"]["tool"] == "diff_env_requirements"
    assert answers[3]["missingCapabilities"] == ["WebSocket"]
    assert answers[4]["stopReason"] == "checkpoint_required"
    gateway.control.kill()
    eventually(gateway.manages, "control is back", within_s=20, every_s=0.1)
    gateway.remember_processes()
    resume = {"taskId": task, "execute": True, "resume": True}
    (again,) = asyncio.run(call(gateway, token, mode, ("orchestrate_reverse_task", resume)))
    assert (again["strategy"], again["stopReason"]) == ("env-fix", "stalled")
    assert again["steps"][0]["status"] == "ok"

"""`/mcp/tasks` and `/api/tasks/*`: the four tools for agents and for programs, in one shape."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from fairlead.mcp.tool import Toolbox
from fairlead.tasks.envelope import envelope_schema
from fairlead.tasks.tools import SERVER

from .conftest import PASSWORD, static_token

pytestmark = pytest.mark.anyio

VALIDATOR = jsonschema.Draft202012Validator(envelope_schema())
TOOLS = [
    "manage_reverse_task",
    "orchestrate_reverse_task",
    "get_rebuild_health_report",
    "diff_env_requirements",
]


async def route(owner: Any, tool: str, body: dict[str, Any], status: int = 200) -> dict[str, Any]:
    answer = await owner.http.post(f"/api/tasks/{tool}", json=body, headers=owner.session)
    assert answer.status_code == status, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def agent(owner: Any, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    said = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    answer = await owner.send("/mcp/tasks", said, authorization=f"Bearer {owner.static}")
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    assert result["isError"] is False, result
    told: dict[str, Any] = result["structuredContent"]
    return told


async def test_the_tools_are_listed_with_their_shapes(owner) -> None:
    bearer = f"Bearer {owner.static}"
    said = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = await owner.send("/mcp/tasks", said, authorization=bearer)
    tools = answer.json()["result"]["tools"]
    assert [tool["name"] for tool in tools] == TOOLS
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        assert tool["outputSchema"]["required"] == [
            "schemaVersion",
            "outcome",
            "detailLevel",
            "continuation",
        ]
    assert isinstance(SERVER.toolbox, Toolbox)


async def test_an_agent_follows_what_is_proposed(owner) -> None:
    """Over MCP and over the route, every answer valid, every proposal taken as it stands."""
    ask = {"action": "update", "taskId": "shop", "goal": "find the signature"}
    answer = await agent(owner, "manage_reverse_task", ask)
    for number in range(8):
        VALIDATOR.validate(answer)
        invoke = answer["continuation"]["invoke"]
        call = agent if number % 2 else route
        answer = await call(owner, invoke["tool"], invoke["params"])
        assert answer.get("errorCode") != "validation_error"
    assert answer["stopReason"] == "stalled"
    simple = await owner.send(
        "/mcp/tasks",
        {"tool": "manage_reverse_task", "input": {"action": "list"}},
        authorization=f"Bearer {owner.static}",
    )
    VALIDATOR.validate(simple.json()["data"])
    assert simple.json()["data"]["total"] == 1


async def test_every_tool_answers_with_the_envelope(owner) -> None:
    await route(owner, "manage_reverse_task", {"action": "update", "taskId": "t", "goal": "g"})
    asks = {
        "manage_reverse_task": {"action": "get", "taskId": "t"},
        "orchestrate_reverse_task": {"taskId": "t", "outputMode": "compact"},
        "get_rebuild_health_report": {"taskId": "t"},
        "diff_env_requirements": {
            "taskId": "t",
            "runtimeError": "fetch is not defined",
            "observedCapabilities": [],
        },
    }
    assert list(asks) == TOOLS
    for tool, ask in asks.items():
        by_route, by_agent = await route(owner, tool, ask), await agent(owner, tool, ask)
        VALIDATOR.validate(by_route)
        assert by_route == by_agent


async def test_bad_input_is_answered_with_an_envelope_that_names_the_field(owner) -> None:
    """Over the route, over the static endpoint and over MCP: an agent reads one shape, whatever it sent."""
    for tool, body, field in (
        ("manage_reverse_task", {"action": "dance"}, "action"),
        ("manage_reverse_task", {"action": 5, "outputMode": "compact"}, "action"),
        ("get_rebuild_health_report", {"taskId": "../x"}, "taskId"),
        ("get_rebuild_health_report", {"taskId": "t", "unknown": 1}, "unknown"),
        ("get_rebuild_health_report", {}, "taskId"),
        ("diff_env_requirements", {"runtimeError": "x"}, "observedCapabilities"),
    ):
        by_route = await route(owner, tool, body, 400)
        by_agent = await agent(owner, tool, body)
        said = {"tool": tool, "input": body}
        answer = await owner.send("/mcp/tasks", said, authorization=f"Bearer {owner.static}")
        for envelope in (by_route, by_agent, answer.json()["data"]):
            VALIDATOR.validate(envelope)
            assert (envelope["outcome"], envelope["errorCode"]) == ("blocked", "validation_error")
            assert field in envelope["responseSummary"]
    for text in ("", "[1]", "{", "5"):
        answer = await owner.http.post(
            "/api/tasks/manage_reverse_task",
            content=text,
            headers={**owner.session, "content-type": "application/json"},
        )
        assert answer.status_code == 400, answer.text
        VALIDATOR.validate(answer.json())


async def test_tasks_are_for_people_who_are_signed_in_and_each_has_their_own(owner) -> None:
    await route(owner, "manage_reverse_task", {"action": "update", "taskId": "t", "goal": "g"})
    answer = await owner.http.post("/api/tasks/manage_reverse_task", json={"action": "list"})
    assert answer.status_code == 401
    said = {"tool": "manage_reverse_task", "input": {"action": "list"}}
    assert (await owner.send("/mcp/tasks", said)).status_code == 401
    body = {"email": "other@example.org", "name": "Other", "currentPassword": PASSWORD}
    made = await owner.http.post("/api/users", json=body, headers=owner.session)
    owner.static = await static_token(owner, made.json()["id"])
    stranger = await agent(owner, "manage_reverse_task", {"action": "list"})
    assert stranger["total"] == 0


async def test_the_schema_is_there_for_everybody(owner) -> None:
    answer = await owner.http.get("/api/tasks/envelope.schema.json")
    assert (answer.status_code, answer.json()) == (200, envelope_schema())

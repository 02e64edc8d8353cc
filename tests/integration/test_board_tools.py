"""The tools over real sockets, by the protocol's own client from PyPI, unchanged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead.board.tools import TOOLS as BOARD
from fairlead.gateway.tools import TOOLS as GATEWAY
from fairlead.usage.tools import TOOLS as USAGE
from tests.support.processes import Gateway, expect, start_gateway
from tests.support.tool_client import ToolClient

PASSWORD = "correct horse battery staple"


@pytest.fixture(scope="module")
def gateway(owned_gateway: Gateway) -> Gateway:
    return owned_gateway


@pytest.fixture(scope="module")
def cookie(owner: httpx.Client) -> str:
    return owner.cookies["auth_token"]


@pytest.fixture(scope="module")
def static_token(gateway: Gateway, cookie: str) -> str:
    client = gateway.client(headers={"cookie": f"auth_token={cookie}", "origin": gateway.url})
    token: str = expect(client.post("/api/me/tokens", json={"name": "test"}), 201)["token"]
    gateway.canaries.append(token)
    return token


@pytest.fixture(scope="module")
def access_token(gateway: Gateway, cookie: str) -> str:
    async def grant() -> str:
        async with httpx.AsyncClient(base_url=gateway.url, trust_env=False) as http:
            tool = ToolClient(http, gateway.url)
            assert (await tool.register()).status_code == 201
            token: str = (await tool.tokens(cookie))["access_token"]
            return token

    token = asyncio.run(grant())
    gateway.canaries.append(token)
    return token


class Used:
    """A client that remembers which tools it called; a tool that fails is a failed test."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.called: set[str] = set()

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, (tool, result)
        assert json.loads(result.content[0].text) == result.structured_content
        self.called.add(tool)
        return result.structured_content


async def use_everything(call: Used, other_user: str) -> None:
    """A life of a project by every tool of the board."""
    await call("people_list")
    project = (await call("projects_create", name="Refit"))["project"]
    here = {"projectId": project["id"]}
    assert (await call("projects_get", **here))["project"]["name"] == "Refit"
    await call("projects_update", **here, changes={"description": "Spring"})
    assert project["id"] in {each["id"] for each in (await call("projects_list"))["projects"]}
    member = (await call("members_add", **here, userId=other_user))["member"]
    await call("members_update", memberId=member["id"], role="viewer")
    assert len((await call("members_list", **here))["members"]) == 2
    await call("members_remove", memberId=member["id"])
    sprint = (await call("sprints_create", **here, name="One", startsOn="2027-01-04"))["sprint"]
    await call("sprints_update", sprintId=sprint["id"], changes={"status": "active"})
    assert (await call("sprints_get", sprintId=sprint["id"]))["sprint"]["status"] == "active"
    tag = (await call("tags_create", **here, name="deck"))["tag"]
    await call("tags_update", tagId=tag["id"], changes={"color": "#1a7f37"})
    assert (await call("tags_get", tagId=tag["id"]))["tag"]["color"] == "#1a7f37"
    assert len((await call("tags_list", **here))["tags"]) == 1
    first = (await call("todos_create", **here, title="Sand", tags=["deck"]))["todo"]
    second = (await call("todos_create", **here, title="Varnish", sprintId=sprint["id"]))["todo"]
    await call("todos_update", todoId=first["id"], changes={"dueOn": "2027-01-05"})
    moved = await call("todos_move", todoId=second["id"], before=first["id"], status="in_progress")
    assert moved["todo"]["status"] == "in_progress"
    listed = (await call("todos_list", **here))["todos"]
    assert [todo["title"] for todo in listed] == ["Varnish", "Sand"]
    board = (await call("board_get", **here))["columns"]
    assert [todo["title"] for todo in board["in_progress"]] == ["Varnish"]
    assert (await call("todos_get", todoId=first["id"]))["todo"]["dueOn"] == "2027-01-05"
    await call("todos_delete", todoId=first["id"])
    await call("tags_delete", tagId=tag["id"])
    assert len((await call("sprints_list", **here))["sprints"]) == 1
    await call("sprints_delete", sprintId=sprint["id"])
    await call("projects_delete", **here)


async def with_client(
    url: str, token: str, mode: str, work: Callable[[Any], Awaitable[None]]
) -> str:
    """Runs `work` with a connected client; the revision that they settled on."""
    import httpx2
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        await work(client)
        return str(client.protocol_version)


def add_user(gateway: Gateway, cookie: str, name: str) -> str:
    client = gateway.client(headers={"cookie": f"auth_token={cookie}", "origin": gateway.url})
    body = {"email": f"{name}@example.org", "name": name, "currentPassword": PASSWORD}
    user: str = expect(client.post("/api/users", json=body), 201)["id"]
    return user


@pytest.mark.parametrize(("mode", "revision"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_the_client_lists_and_calls_every_tool(
    gateway: Gateway, cookie: str, static_token: str, access_token: str, mode: str, revision: str
) -> None:
    other = add_user(gateway, cookie, f"other-{mode}")
    endpoints = (
        ("/mcp/rpc", access_token, BOARD),
        ("/mcp", static_token, (*BOARD, *GATEWAY, *USAGE)),
    )
    for path, token, expected in endpoints:

        async def work(client: Any, expected: Any = expected) -> None:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == [tool.name for tool in expected]
            call = Used(client)
            await use_everything(call, other)
            for tool in names:
                if tool.startswith("gateway_"):
                    await call(tool)
            assert call.called == set(names)

        settled = asyncio.run(with_client(f"{gateway.url}{path}", token, mode, work))
        assert settled == revision, path
    gateway.assert_keeps_secrets()


@pytest.mark.one_node(
    reason="behind a proxy the host of a request is not held to be a name of this machine"
)
def test_the_relay_hands_on_what_it_must_not_judge(
    gateway: Gateway, static_token: str, access_token: str
) -> None:
    """The statuses and bodies are the endpoint's, not the relay's; the contract tests have them all."""
    client = gateway.client()
    metadata = f'resource_metadata="{gateway.url}/.well-known/oauth-protected-resource/mcp/rpc"'
    json_type = {"content-type": "application/json"}
    for headers, status, challenge in (
        ({}, 401, f"Bearer {metadata}"),
        ({"authorization": "Basic eDp5"}, 401, f'Bearer error="invalid_token", {metadata}'),
        (
            {"authorization": f"Bearer {gateway.key}"},
            401,
            f'Bearer error="invalid_token", {metadata}',
        ),
        (
            {"authorization": f"Bearer {static_token}"},
            401,
            f'Bearer error="invalid_token", {metadata}',
        ),
        ({"origin": "http://evil.example"}, 403, None),
        ({"host": "evil.example"}, 421, None),
        ({"host": "evil.example", "origin": "http://evil.example"}, 421, None),
    ):
        answer = client.post("/mcp/rpc", content=b"{", headers=json_type | headers)
        assert (answer.status_code, answer.content) == (status, b""), headers
        assert "content-type" not in answer.headers
        assert answer.headers.get("www-authenticate") == challenge
    bearer = {"authorization": f"Bearer {access_token}"}
    for method in ("GET", "DELETE", "PUT", "PATCH", "OPTIONS"):
        answer = client.request(method, "/mcp/rpc", headers=bearer)
        assert (answer.status_code, answer.headers["allow"], answer.content) == (405, "POST", b"")
    answer = client.post("/mcp/rpc", content=b"{", headers=bearer | json_type)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)
    answer = client.post("/mcp/rpc", content=b"{}", headers=bearer | {"content-type": "text/plain"})
    assert answer.status_code == 415
    notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = client.post("/mcp/rpc", json=notification, headers=bearer)
    assert (answer.status_code, answer.content) == (202, b"")
    big = b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (1024 * 1024) + b'"}'
    assert client.post("/mcp/rpc", content=big, headers=bearer | json_type).status_code == 413
    answer = client.post("/mcp", json={"tool": "projects_list"}, headers=bearer)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "AUTH_REQUIRED")


def test_a_session_calls_tools_from_its_own_pages_only(gateway: Gateway, cookie: str) -> None:
    client = gateway.client(headers={"cookie": f"auth_token={cookie}"})
    call = {"tool": "projects_list", "input": {}}
    assert client.post("/mcp", json=call).status_code == 403
    assert client.post("/mcp", json=call, headers={"x-fairlead": "1"}).json()["ok"] is True
    foreign = {"x-fairlead": "1", "origin": "http://evil.example"}
    assert client.post("/mcp", json=call, headers=foreign).status_code == 403


def test_the_board_is_there_after_a_crash(tmp_path: Path) -> None:
    with start_gateway(tmp_path, INITIAL_PASSWORD=PASSWORD) as gateway:
        made = expect(gateway.admin.post("/api/board/projects", json={"name": "Refit"}), 201)
        path = f"/api/board/projects/{made['project']['id']}"
        for title in ("a", "b"):
            todo = expect(gateway.admin.post(f"{path}/todos", json={"title": title}), 201)["todo"]
        move = f"/api/board/todos/{todo['id']}/move"
        expect(gateway.admin.post(move, json={"before": _first(gateway, path)}), 200)
        gateway.kill_all()
        gateway.start()
        listed = expect(gateway.admin.get(f"{path}/todos"), 200)
        assert [todo["title"] for todo in listed["todos"]] == ["b", "a"]


def _first(gateway: Gateway, path: str) -> str:
    first: str = expect(gateway.admin.get(f"{path}/todos"), 200)["todos"][0]["id"]
    return first

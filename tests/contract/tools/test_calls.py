"""The tools as they are listed and called."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.board.tools import TOOLS as BOARD
from fairlead.control.tools import RPC, STATIC
from fairlead.identity.users import insert_user, new_user

from .conftest import static_token

pytestmark = pytest.mark.anyio


async def test_every_tool_is_typed_and_says_what_it_does(owner) -> None:
    listed = (await owner.rpc("tools/list")).json()["result"]
    assert "nextCursor" not in listed
    tools = {tool["name"]: tool for tool in listed["tools"]}
    assert list(tools) == [tool.name for tool in BOARD]
    for name, tool in tools.items():
        assert tool["description"].endswith("."), name
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False
        hints = tool["annotations"]
        reads = name.split("_")[1] in ("list", "get")
        deletes = name.split("_")[1] in ("delete", "remove")
        assert (hints["readOnlyHint"], hints["destructiveHint"]) == (reads, deletes), name
        assert hints["openWorldHint"] is False
    assert {"limit", "cursor"} <= tools["todos_list"]["inputSchema"]["properties"].keys()
    assert "nextCursor" in tools["todos_list"]["outputSchema"]["properties"]


async def test_what_goes_wrong_in_a_tool_is_for_the_model_to_mend(owner) -> None:
    for name, arguments, code, words in (
        ("projects_create", {}, "VALIDATION_ERROR", "name is required"),
        ("projects_create", {"name": ""}, "VALIDATION_ERROR", "at least 1 character"),
        ("projects_list", {"page": 2}, "VALIDATION_ERROR", "page is no argument of this tool"),
        ("projects_list", {"cursor": "x"}, "VALIDATION_ERROR", "cursor must be"),
        ("projects_get", {"projectId": "x"}, "NOT_FOUND", "There is no project with this id."),
        ("todos_update", {"todoId": "x", "changes": {}}, "VALIDATION_ERROR", "names no field"),
    ):
        answer = await owner.rpc("tools/call", {"name": name, "arguments": arguments})
        result = answer.json()["result"]
        assert (answer.status_code, result["isError"]) == (200, True)
        told = result["structuredContent"]
        assert told["code"] == code
        assert words in told["message"]
        assert told.keys() == {"code", "message", "details"}
        assert result["content"] == [{"type": "text", "text": told["message"]}]


async def test_lists_go_on_where_they_were_left_whatever_is_moved_meanwhile(owner) -> None:
    async def call(tool: str, **arguments: Any) -> Any:
        said = {"name": tool, "arguments": arguments}
        result = (await owner.rpc("tools/call", said)).json()["result"]
        assert not result["isError"], result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    project_id = (await call("projects_create", name="Refit"))["project"]["id"]
    ids = [
        (await call("todos_create", projectId=project_id, title=f"{n}"))["todo"]["id"]
        for n in range(7)
    ]
    first = await call("todos_list", projectId=project_id, limit=3)
    assert [todo["title"] for todo in first["todos"]] == ["0", "1", "2"]
    await call("todos_move", todoId=ids[0], after=ids[6])
    await call("todos_delete", todoId=ids[1])
    rest = await call("todos_list", projectId=project_id, limit=3, cursor=first["nextCursor"])
    assert [todo["title"] for todo in rest["todos"]] == ["3", "4", "5"]
    last = await call("todos_list", projectId=project_id, limit=3, cursor=rest["nextCursor"])
    assert [todo["title"] for todo in last["todos"]] == ["6", "0"]
    assert last["nextCursor"] is None
    for name in ("a", "b", "c"):
        await call("tags_create", projectId=project_id, name=name)
    tags = await call("tags_list", projectId=project_id, limit=2)
    assert [tag["name"] for tag in tags["tags"]] == ["a", "b"]
    tags = await call("tags_list", projectId=project_id, limit=2, cursor=tags["nextCursor"])
    assert ([tag["name"] for tag in tags["tags"]], tags["nextCursor"]) == (["c"], None)


async def test_the_gateways_tools_are_for_those_who_manage_it_and_not_for_tool_clients(
    owner,
) -> None:
    listed = (await owner.rpc("tools/list")).json()["result"]["tools"]
    assert not any(tool["name"].startswith("gateway_") for tool in listed)
    assert len(STATIC.toolbox.tools) > len(RPC.toolbox.tools)
    user = new_user("ada@example.org", "ada", "member", None)
    await owner.app.state.services.state.record(lambda con: insert_user(con, user))
    for token, manages in ((owner.static, True), (await static_token(owner, user.id), False)):
        bearer = {"authorization": f"Bearer {token}"}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        answer = await owner.legacy(message, **bearer)
        names = {tool["name"] for tool in answer.json()["result"]["tools"]}
        wanted = {"gateway_models", "gateway_health", "gateway_usage"}
        assert wanted & names == (wanted if manages else set())
        for name in wanted:
            answer = await owner.legacy({"tool": name, "input": {}}, **bearer)
            assert answer.status_code == (200 if manages else 404), answer.text

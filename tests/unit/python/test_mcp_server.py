"""The protocol's server by itself: pages of tools, names, and what a defect in a tool looks like."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel
from starlette.requests import Request as HttpRequest

from fairlead.errors import Conflict, UpstreamReset
from fairlead.mcp.http import serve_message
from fairlead.mcp.message import Request, RpcError
from fairlead.mcp.revision import STATELESS
from fairlead.mcp.server import PAGE, Server
from fairlead.mcp.tool import Call, Tool, toolbox
from fairlead.records.people import Person

pytestmark = pytest.mark.anyio

CALL = Call(services=None, person=Person("p", "Ada", "ada@example.org", manages=False))  # type: ignore[arg-type]


class Nothing(BaseModel):
    pass


def tool(name: str, failure: Exception | None = None, **hints: bool) -> Tool[Any]:
    async def run(call: Call, given: Nothing) -> Nothing:
        if failure is not None:
            raise failure
        return given

    return Tool(name, name, "Does nothing.", Nothing, Nothing, run, **hints)


def server(*tools: Tool[Any]) -> Server:
    return Server("test", "Test", "", toolbox(tools))


async def test_a_long_list_of_tools_comes_in_parts_that_leave_out_none() -> None:
    names = [f"t{n}" for n in range(2 * PAGE + 7)]
    many = server(*map(tool, names), tool("hidden", needs_manage=True))
    found: list[str] = []
    params: dict[str, Any] = {}
    for _ in range(3):
        result = await many.answer(Request(1, "tools/list", params), STATELESS, CALL)
        found += [each["name"] for each in result["tools"]]
        params = {"cursor": result.get("nextCursor")}
    assert found == names
    assert params == {"cursor": None}
    for cursor in ("", "o", "bw", "x" * 500, "b-1", 7):
        with pytest.raises(RpcError):
            await many.answer(Request(1, "tools/list", {"cursor": cursor}), STATELESS, CALL)


@pytest.mark.parametrize("names", [["a", "a"], ["a.b"], ["A"], ["x" * 65], [""]])
def test_names_are_those_that_every_client_takes_and_each_is_there_once(names) -> None:
    with pytest.raises(ValueError, match="names of tools"):
        server(*map(tool, names))


async def test_a_failure_that_is_expected_is_told_one_that_is_not_is_kept() -> None:
    one = server(
        tool("taken", Conflict("It is taken.", param="name")),
        tool("other", UpstreamReset("sk-secret was refused")),
    )

    async def call(name: str) -> dict[str, Any]:
        return await one.answer(Request(1, "tools/call", {"name": name}), "2025-11-25", CALL)

    told = (await call("taken"))["structuredContent"]
    assert told == {"code": "CONFLICT", "message": "It is taken.", "details": {"param": "name"}}
    told = (await call("other"))["structuredContent"]
    assert told == {"code": "INTERNAL", "message": "The tool failed.", "details": {}}


async def test_a_defect_is_an_internal_error_without_its_words() -> None:
    said = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "broken"}}
    answer = await serve_message(
        server(tool("broken", ZeroDivisionError("sk-secret"))), posted(said), CALL
    )
    assert answer.status_code == 500
    body = json.loads(bytes(answer.body))
    assert (body["id"], body["error"]["code"]) == (9, -32603)
    assert "sk-secret" not in str(body)


def posted(said: Any) -> HttpRequest:
    body = json.dumps(said).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(b"content-type", b"application/json")]
    return HttpRequest({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive)

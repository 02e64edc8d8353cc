"""`/mcp/rpc` and `/mcp`: every answer that has a rule, by its status, headers and body."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from fairlead.board.tools import TOOLS as BOARD
from fairlead.control.app import build
from fairlead.control.tools import RPC, STATIC
from fairlead.identity.users import insert_user, new_user
from fairlead.mcp.revision import HANDSHAKE, STATELESS, SUPPORTED
from fairlead.settings import ControlConfig
from fairlead.store.static_tokens import insert_static_token, make_static_token
from tests.support.tool_client import ToolClient

from .conftest import LINK_TOKEN, PASSWORD

pytestmark = pytest.mark.anyio

HOST = "127.0.0.1:20128"
ORIGIN = f"http://{HOST}"
METADATA = f'resource_metadata="{ORIGIN}/.well-known/oauth-protected-resource/mcp/rpc"'
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
CLIENT = {"name": "test", "version": "1"}


@dataclass
class Doors:
    """Both endpoints; `http` speaks as the relay does for a stranger on this machine."""

    app: FastAPI
    http: httpx.AsyncClient
    access: str = ""
    static: str = ""
    session: dict[str, str] = field(default_factory=dict)

    async def send(
        self, path: str, said: Any, *, method: str = "POST", **headers: str
    ) -> httpx.Response:
        content = said if isinstance(said, bytes) else json.dumps(said).encode()
        named = JSON | {name.replace("_", "-"): value for name, value in headers.items()}
        if path == "/mcp/rpc" and "authorization" not in named:
            named["authorization"] = f"Bearer {self.access}"
        return await self.http.request(method, path, content=content, headers=named)

    async def rpc(self, method: str, params: Any = None, **headers: str) -> httpx.Response:
        said = {"jsonrpc": "2.0", "id": 1, "method": method}
        return await self.send(
            "/mcp/rpc", said | ({} if params is None else {"params": params}), **headers
        )

    async def stateless(
        self, method: str, params: dict[str, Any] | None = None, **bent: Any
    ) -> httpx.Response:
        meta = {
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": CLIENT,
        } | bent.pop("meta", {})
        headers = {"mcp_protocol_version": STATELESS, "mcp_method": method}
        if params and "name" in params:
            headers["mcp_name"] = params["name"]
        headers = {name: value for name, value in (headers | bent).items() if value is not None}
        meta = {name: value for name, value in meta.items() if value is not None}
        return await self.rpc(method, {**(params or {}), "_meta": meta}, **headers)

    async def legacy(self, said: Any, **headers: str) -> httpx.Response:
        return await self.send("/mcp", said, **headers)


@pytest.fixture
def settings() -> dict[str, Any]:
    return {}


@pytest.fixture
async def doors(config: ControlConfig, settings: dict[str, Any]) -> AsyncIterator[Doors]:
    app = build(config.model_copy(update=settings))
    headers = {
        "x-fairlead-link": LINK_TOKEN,
        "x-fairlead-principal": '{"kind": "anonymous", "id": null, "scopes": []}',
        "x-fairlead-peer": "127.0.0.1",
        "x-fairlead-host": HOST,
        "x-fairlead-request-id": "req-1",
    }
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://control", headers=headers
        ) as http,
    ):
        yield Doors(app, http)


@pytest.fixture
async def owner(doors: Doors) -> Doors:
    """The owner with a session, a static token and a tool client's access token."""
    answer = await doors.http.post("/api/auth/login", json={"password": PASSWORD})
    cookie = answer.cookies["auth_token"]
    doors.http.cookies.clear()
    who = (await doors.http.get("/api/auth/me", headers=_session(doors, "?"))).status_code
    assert who == 401
    tool = ToolClient(doors.http, ORIGIN)
    await tool.register()
    doors.access = (await tool.tokens(cookie))["access_token"]
    services = doors.app.state.services
    user_id = await services.state.read(
        lambda con: con.execute("SELECT id FROM users").fetchone()[0]
    )
    doors.session = _session(doors, user_id, "manage")
    doors.static = await static_token(doors, user_id)
    return doors


def _session(doors: Doors, user_id: str, *scopes: str) -> dict[str, str]:
    principal = {"kind": "session", "id": user_id, "scopes": scopes}
    return {"x-fairlead-principal": json.dumps(principal)}


async def static_token(doors: Doors, user_id: str) -> str:
    text, token = make_static_token(user_id, "test")
    state = doors.app.state.services.state
    await state.record(lambda con: insert_static_token(con, token, text))
    return text


def is_empty(answer: httpx.Response) -> bool:
    return answer.content == b"" and "content-type" not in answer.headers


# ------------------------------------------------------------------- /mcp/rpc before any message


async def test_without_credentials_there_is_a_challenge_and_nothing_else(owner) -> None:
    for method in ("POST", "GET", "DELETE", "PUT", "PATCH", "OPTIONS"):
        answer = await owner.http.request(method, "/mcp/rpc", headers=JSON)
        assert answer.status_code == 401, method
        assert is_empty(answer)
        assert answer.headers["www-authenticate"] == f"Bearer {METADATA}"
    # Neither a cookie, nor a static token, nor a token in the address is a credential here.
    for answer in (
        await owner.http.post("/mcp/rpc", json={}, headers=owner.session),
        await owner.http.post(f"/mcp/rpc?access_token={owner.access}", json={}),
    ):
        assert (answer.status_code, is_empty(answer)) == (401, True)
        assert answer.headers["www-authenticate"] == f"Bearer {METADATA}"


async def test_a_bearer_that_is_no_good_is_an_invalid_token_whatever_the_cookie(owner) -> None:
    for shown in ("Bearer nonsense", f"Bearer {owner.static}", "Basic eDp5", "Bearer"):
        for extra in ({}, owner.session):
            answer = await owner.http.post(
                "/mcp/rpc", json={}, headers={"authorization": shown} | extra
            )
            assert (answer.status_code, is_empty(answer)) == (401, True), shown
            challenge = answer.headers["www-authenticate"]
            assert challenge == f'Bearer error="invalid_token", {METADATA}'


async def test_pages_of_other_origins_are_refused_before_anybody_is_looked_at(owner) -> None:
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:20128"},
        {"origin": "http://127.0.0.1:20129"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        for method in ("POST", "GET", "OPTIONS"):
            answer = await owner.http.request(method, "/mcp/rpc", headers=headers)
            assert (answer.status_code, is_empty(answer)) == (403, True), headers
            assert "www-authenticate" not in answer.headers
            assert "access-control-allow-origin" not in answer.headers
    answer = await owner.rpc("ping", origin=ORIGIN)
    assert answer.status_code == 200


async def test_a_name_that_is_not_the_gateways_is_refused(owner) -> None:
    for host in ("evil.example", "evil.example:20128", "127.0.0.1.evil.example", "10.0.0.9:20128"):
        answer = await owner.rpc("ping", x_fairlead_host=host, origin=f"http://{host}")
        assert answer.status_code == 421, host
    assert (await owner.rpc("ping", x_fairlead_host="localhost:20128")).status_code == 401


async def test_other_methods_are_refused_with_the_one_there_is(owner) -> None:
    for method in ("GET", "DELETE", "PUT", "PATCH", "OPTIONS"):
        answer = await owner.send("/mcp/rpc", b"", method=method)
        assert (answer.status_code, is_empty(answer)) == (405, True)
        assert answer.headers["allow"] == "POST"


async def test_one_spelling_is_the_endpoint_the_other_leads_there(owner) -> None:
    for method in ("GET", "POST"):
        answer = await owner.http.request(method, "/mcp/rpc/", headers=JSON)
        assert (answer.status_code, answer.headers["location"]) == (308, "/mcp/rpc")


async def test_media_types(owner) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert (await owner.rpc("ping", content_type=kind)).status_code == 415, kind
    assert (await owner.rpc("ping", content_type="application/json; charset=utf-8")).is_success
    for accept, expected in (
        ("application/json, text/event-stream", "application/json"),
        ("text/event-stream, application/json", "application/json"),
        ("*/*", "application/json"),
        ("application/json;q=0, text/event-stream", "text/event-stream; charset=utf-8"),
        ("text/event-stream", "text/event-stream; charset=utf-8"),
    ):
        answer = await owner.rpc("ping", accept=accept)
        assert (answer.status_code, answer.headers["content-type"]) == (200, expected), accept
    event = (await owner.rpc("ping", accept="text/event-stream")).text
    assert event == 'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'
    answer = await owner.rpc("ping", accept="text/html")
    assert (answer.status_code, is_empty(answer)) == (406, True)


@pytest.mark.parametrize("settings", [{"service_trust_proxy": True}])
async def test_behind_a_proxy_that_says_nothing_it_fails_closed(doors) -> None:
    answer = await doors.rpc("ping", authorization="Bearer x")
    assert (answer.status_code, is_empty(answer)) == (503, True)
    said = {"x_forwarded_proto": "https", "x_forwarded_host": "board.example.org"}
    answer = await doors.rpc("ping", authorization="Bearer x", **said)
    assert answer.status_code == 401
    assert '"https://board.example.org/.well-known/' in answer.headers["www-authenticate"]
    answer = await doors.rpc("ping", authorization="Bearer x", origin=ORIGIN, **said)
    assert answer.status_code == 403


# -------------------------------------------------------------------------------- the messages


NO_MESSAGES: list[tuple[Any, int, Any]] = [
    (b"{", -32700, None),
    (b"", -32700, None),
    (b"\xff", -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":NaN}', -32700, None),
    (b"[" * 5000, -32700, None),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
    (b"[]", -32600, None),
    (b'"ping"', -32600, None),
    ({"id": 7, "method": "ping"}, -32600, 7),
    ({"jsonrpc": "1.0", "id": "x", "method": "ping"}, -32600, "x"),
    ({"jsonrpc": "2.0", "id": 7}, -32600, 7),
    ({"jsonrpc": "2.0", "id": 7, "method": 5}, -32600, 7),
    ({"jsonrpc": "2.0", "id": 7, "method": ""}, -32600, 7),
    ({"jsonrpc": "2.0", "id": 7, "result": {}}, -32600, 7),
    ({"jsonrpc": "2.0", "id": None, "method": "ping"}, -32600, None),
    ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, -32600, None),
    ({"jsonrpc": "2.0", "id": True, "method": "ping"}, -32600, None),
    ({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": "x"}, -32600, 7),
    ({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}, -32602, 7),
    ({"jsonrpc": "2.0", "method": "notifications/x", "params": 5}, -32600, None),
    ({"jsonrpc": "1.0", "method": "notifications/x"}, -32600, None),
]


async def test_what_is_no_message_is_told_so(owner) -> None:
    for said, code, message_id in NO_MESSAGES:
        answer = await owner.send("/mcp/rpc", said)
        assert answer.status_code == 400, said
        body = answer.json()
        assert (body["error"]["code"], body["id"]) == (code, message_id), said
        assert body["jsonrpc"] == "2.0"


async def test_notifications_are_accepted_and_do_nothing(owner) -> None:
    for method in ("notifications/initialized", "notifications/cancelled", "tools/call"):
        said = {"jsonrpc": "2.0", "method": method, "params": {"name": "projects_create"}}
        for headers in ({}, {"mcp_protocol_version": "2025-11-25"}):
            answer = await owner.send("/mcp/rpc", said, **headers)
            assert (answer.status_code, is_empty(answer)) == (202, True)
    made = await owner.legacy({"tool": "projects_list"}, authorization=f"Bearer {owner.static}")
    assert made.json()["data"]["projects"] == []


async def test_the_handshake_settles_on_a_revision(owner) -> None:
    for wanted in (*HANDSHAKE, "2024-11-05", "2099-01-01", STATELESS):
        params = {"protocolVersion": wanted, "capabilities": {}, "clientInfo": CLIENT}
        answer = await owner.rpc("initialize", params)
        assert "mcp-session-id" not in answer.headers
        result = answer.json()["result"]
        assert result["protocolVersion"] == (wanted if wanted in HANDSHAKE else HANDSHAKE[-1])
        assert result["capabilities"] == {"tools": {"listChanged": False}}
        assert result["serverInfo"]["name"] == "fairlead"


async def test_the_handshake_names_its_client(owner) -> None:
    right = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
    for bent in (
        {"clientInfo": None},
        {"clientInfo": {"name": "x"}},
        {"clientInfo": {"name": "", "version": "1"}},
        {"clientInfo": {"name": "x", "version": ""}},
        {"clientInfo": {"name": "x", "version": 1}},
        {"protocolVersion": 5},
    ):
        error = (await owner.rpc("initialize", right | bent)).json()["error"]
        assert error["code"] == -32602


async def test_a_revision_that_is_not_served_is_told_which_are(owner) -> None:
    for version in ("2024-11-05", "1999-01-01", "x", ""):
        answer = await owner.rpc("ping", mcp_protocol_version=version)
        assert answer.status_code == 400, version
        error = answer.json()["error"]
        assert error["code"] == -32022
        assert error["data"] == {"supported": list(SUPPORTED), "requested": version}
        answer = await owner.send(
            "/mcp/rpc",
            {"jsonrpc": "2.0", "method": "notifications/x"},
            mcp_protocol_version=version,
        )
        assert answer.status_code == 400
    answer = await owner.stateless(
        "server/discover",
        mcp_protocol_version="2027-01-01",
        meta={"io.modelcontextprotocol/protocolVersion": "2027-01-01"},
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32022)
    for version in HANDSHAKE:
        assert (await owner.rpc("ping", mcp_protocol_version=version)).json()["result"] == {}
    assert (await owner.rpc("ping")).json()["result"] == {}


async def test_the_stateless_revision_discovers_lists_and_calls(owner) -> None:
    answer = await owner.stateless("server/discover")
    assert answer.status_code == 200
    result = answer.json()["result"]
    assert result["supportedVersions"] == list(SUPPORTED)
    assert (result["resultType"], result["cacheScope"]) == ("complete", "private")
    assert result["ttlMs"] > 0
    listed = (await owner.stateless("tools/list")).json()["result"]
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
    called = await owner.stateless("tools/call", {"name": "projects_list", "arguments": {}})
    assert called.json()["result"]["resultType"] == "complete"
    assert called.json()["result"]["structuredContent"] == {"projects": [], "nextCursor": None}


async def test_the_stateless_revision_holds_headers_and_body_together(owner) -> None:
    call = {"name": "projects_list", "arguments": {}}
    for method, params, bent, code in (
        ("tools/list", None, {"mcp_method": None}, -32020),
        ("tools/list", None, {"mcp_method": "tools/call"}, -32020),
        ("tools/call", call, {"mcp_name": None}, -32020),
        ("tools/call", call, {"mcp_name": "todos_list"}, -32020),
        ("tools/call", call, {"mcp_name": "=?base64?!?="}, -32020),
        ("tools/list", None, {"mcp_protocol_version": None}, -32020),
        ("tools/list", None, {"mcp_protocol_version": "2025-11-25"}, -32020),
        (
            "tools/list",
            None,
            {"meta": {"io.modelcontextprotocol/clientCapabilities": None}},
            -32602,
        ),
        ("tools/list", None, {"meta": {"io.modelcontextprotocol/clientCapabilities": 1}}, -32602),
        ("tools/list", None, {"meta": {"io.modelcontextprotocol/protocolVersion": None}}, -32602),
    ):
        answer = await owner.stateless(method, params, **bent)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, code), bent
    encoded = {"mcp_name": "=?base64?cHJvamVjdHNfbGlzdA==?="}
    assert (await owner.stateless("tools/call", call, **encoded)).status_code == 200
    for gone in ("initialize", "ping", "resources/list", "subscriptions/listen"):
        answer = await owner.stateless(gone)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601), gone
    answer = await owner.stateless("tools/call", {"name": "nothing"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)
    assert (await owner.rpc("server/discover")).status_code == 400
    twice = [
        ("mcp-method", "tools/list"), ("mcp-method", "tools/list"),
        ("authorization", f"Bearer {owner.access}"), *JSON.items(),
    ]  # fmt: skip
    said = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = await owner.http.post("/mcp/rpc", json=said, headers=twice)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)


async def test_unknown_methods_and_tools_of_the_earlier_revisions(owner) -> None:
    answer = await owner.rpc("resources/list")
    assert (answer.status_code, answer.json()["error"]["code"]) == (200, -32601)
    for params in (
        {},
        {"name": 5},
        {"name": "nothing"},
        {"name": "projects_list", "arguments": []},
    ):
        assert (await owner.rpc("tools/call", params)).json()["error"]["code"] == -32602
    for cursor in ("x", "bzk5OTk", 5):
        answer = await owner.rpc("tools/list", {"cursor": cursor})
        assert answer.json()["error"]["code"] == -32602


# ------------------------------------------------------------------------------------ the tools


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


# ----------------------------------------------------------------------------------------- /mcp


async def test_the_bootstrap_endpoint_takes_a_session_or_a_static_token_only(owner) -> None:
    call = {"tool": "projects_list", "input": {}}
    for shown in (f"Bearer {owner.access}", "Bearer flb_unknown", "Bearer", "Basic eDp5"):
        for extra in ({}, {**owner.session, "x-fairlead": "1"}):
            answer = await owner.legacy(call, authorization=shown, **extra)
            assert answer.status_code == 401
            assert answer.json() == {
                "ok": False,
                "error": {
                    "code": "AUTH_REQUIRED", "message": "Authentication required", "details": {},
                },
            }  # fmt: skip
            assert "www-authenticate" not in answer.headers
    answer = await owner.legacy(call)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "AUTH_REQUIRED")
    for right in (
        {"authorization": f"Bearer {owner.static}"},
        {**owner.session, "x-fairlead": "1"},
    ):
        answer = await owner.legacy(call, **right)
        assert answer.status_code == 200
        assert answer.json() == {
            "ok": True, "data": {"projects": [], "nextCursor": None}, "meta": {},
        }  # fmt: skip


async def test_a_cookie_alone_changes_nothing(owner) -> None:
    call = {"tool": "projects_create", "input": {"name": "x"}}
    for extra in ({}, {"x-fairlead": "0"}):
        answer = await owner.legacy(call, **owner.session, **extra)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "FORBIDDEN")
    for origin in ("http://evil.example", "null"):
        sent = {**owner.session, "x-fairlead": "1", "origin": origin}
        assert (await owner.legacy(call, **sent)).status_code == 403
    listed = await owner.legacy({"tool": "projects_list"}, authorization=f"Bearer {owner.static}")
    assert listed.json()["data"]["projects"] == []


async def test_the_bootstrap_endpoint_tells_what_it_can(owner) -> None:
    for path in ("/mcp", "/mcp/"):
        answer = await owner.http.get(path)
        assert answer.status_code == 200
        said = answer.json()
        assert (said["ok"], said["meta"]) == (True, {"adapterVersion": 1})
        assert said["data"]["auth"]["authenticated"] is False
        assert said["data"]["implementedTools"] == []
    bearer = {"authorization": f"Bearer {owner.static}"}
    said = (await owner.http.get("/mcp", headers=bearer)).json()["data"]
    assert said["auth"]["authenticated"] is True
    assert "gateway_health" in said["implementedTools"]
    assert (await owner.http.get("/mcp", headers={"authorization": "Bearer x"})).status_code == 401
    # Clients of the protocol ask for a stream there, and are told that there is none.
    answer = await owner.http.get("/mcp", headers={**bearer, "accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")
    assert (await owner.http.delete("/mcp", headers=bearer)).status_code == 405


async def test_the_simple_form_says_what_is_wrong(owner) -> None:
    bearer = {"authorization": f"Bearer {owner.static}"}
    for said, status, code in (
        (b"{", 400, "VALIDATION_ERROR"),
        (b"[]", 400, "VALIDATION_ERROR"),
        ({}, 400, "VALIDATION_ERROR"),
        ({"tool": "projects_list", "input": []}, 400, "VALIDATION_ERROR"),
        ({"tool": "projects_list", "more": 1}, 400, "VALIDATION_ERROR"),
        ({"tool": "nothing"}, 404, "NOT_FOUND"),
        ({"tool": "projects_get", "input": {"projectId": "x"}}, 404, "NOT_FOUND"),
        ({"tool": "projects_create", "input": {}}, 400, "VALIDATION_ERROR"),
    ):
        answer = await owner.legacy(said, **bearer)
        assert answer.status_code == status, said
        error = answer.json()["error"]
        assert (answer.json()["ok"], error["code"]) == (False, code)
        assert error.keys() == {"code", "message", "details"}
    dotted = await owner.legacy({"tool": "projects.list", "input": {}}, **bearer)
    assert dotted.json()["ok"] is True


async def test_static_tokens_are_made_listed_and_revoked_by_their_person(owner) -> None:
    me = "/api/me/tokens"
    made = await owner.http.post(me, json={"name": "laptop"}, headers=owner.session)
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    text = made.json()["token"]
    assert text.startswith("flb_")
    bearer = {"authorization": f"Bearer {text}"}
    assert (await owner.legacy({"tool": "projects_list"}, **bearer)).status_code == 200
    listed = (await owner.http.get(me, headers=owner.session)).json()
    assert [each["name"] for each in listed["items"]] == ["laptop", "test"]
    assert text not in json.dumps(listed)
    stored = await owner.app.state.services.state.read(
        lambda con: con.execute("SELECT * FROM static_tokens").fetchall()
    )
    assert text not in repr(stored)
    gone = await owner.http.delete(f"{me}/{made.json()['id']}", headers=owner.session)
    assert (gone.status_code, gone.content) == (204, b"")
    assert (await owner.legacy({"tool": "projects_list"}, **bearer)).status_code == 401
    again = await owner.http.delete(f"{me}/{made.json()['id']}", headers=owner.session)
    assert again.status_code == 404
    listed = (await owner.http.get(me, headers=owner.session)).json()["items"]
    assert [each["revokedAt"] is not None for each in listed] == [True, False]
    # Nobody else's.
    user = new_user("ada@example.org", "ada", "member", None)
    await owner.app.state.services.state.record(lambda con: insert_user(con, user))
    other = _session(owner, user.id)
    assert (await owner.http.get(me, headers=other)).json()["items"] == []
    answer = await owner.http.delete(f"{me}/{listed[1]['id']}", headers=other)
    assert answer.status_code == 404
    # Its person may not sign in any more: neither may the token.
    held = await static_token(owner, user.id)
    assert (
        await owner.legacy({"tool": "projects_list"}, authorization=f"Bearer {held}")
    ).is_success
    await owner.app.state.services.state.record(
        lambda con: con.execute("UPDATE users SET is_active = false WHERE id = ?", [user.id])
    )
    answer = await owner.legacy({"tool": "projects_list"}, authorization=f"Bearer {held}")
    assert answer.status_code == 401

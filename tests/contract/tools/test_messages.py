"""What each message to `/mcp/rpc` is answered, in each revision of the protocol."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.mcp.revision import HANDSHAKE, STATELESS, SUPPORTED

from .conftest import CLIENT, JSON, is_empty

pytestmark = pytest.mark.anyio


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
        ("mcp-method", "tools/list"),
        ("mcp-method", "tools/list"),
        ("authorization", f"Bearer {owner.access}"),
        *JSON.items(),
    ]
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

"""Fields that nothing reads: refused with what to do, and what is stored of them does no harm."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.management import Management

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

NODE = {
    "type": "openai-compatible",
    "name": "Lab",
    "prefix": "lab",
    "baseUrl": "http://127.0.0.1:8000/v1",
}


async def _refused(management: Management, method: str, path: str, body: Any, name: str) -> None:
    message, param = await management.refused(method, path, body)
    assert param == name
    assert message.startswith(name)
    assert "no effect" in message


async def test_a_node_takes_no_icon(management: Management) -> None:
    path = "/api/provider-nodes"
    await _refused(management, "POST", path, {**NODE, "iconUrl": "https://a/b.png"}, "iconUrl")
    node = (await management.ask("POST", path, {**NODE, "apiType": "responses"}, expect=201))[
        "node"
    ]
    assert node["ineffective"] == []
    one = f"{path}/{node['id']}"
    sql = "UPDATE provider_nodes SET icon_url = 'https://a/b.png'"
    await management.services.state.commit(lambda con: con.execute(sql) and None)
    assert (await management.ask("GET", one))["node"]["ineffective"] == ["iconUrl"]
    back = {"name": "Other", "apiType": "rerank", "iconUrl": "https://a/b.png"}
    assert (await management.ask("PUT", one, back))["node"]["name"] == "Other"


@pytest.mark.parametrize(
    ("scope", "reason"),
    [
        ("read:cache", "the caches are for people who have signed in"),
        ("write:cache", "the caches are for people who have signed in"),
        ("execute:completions", "any key may call models"),
        ("execute:search", "any key may search"),
        ("mcp:connect", "tool clients connect with separate access tokens"),
        (
            "policy:bypass-provider-quota",
            "the `quotaWindowThresholds` of a connection hold for every key",
        ),
    ],
)
async def test_a_scope_of_other_gateways_is_refused_with_what_stands_in_its_place(
    management: Management, scope: str, reason: str
) -> None:
    message, param = await management.refused("POST", "/api/keys", {"name": "k", "scopes": [scope]})
    assert param == "scopes"
    assert f"`{scope}` would open nothing: {reason}" in message
    key = await management.ask("POST", "/api/keys", {"name": "k"}, expect=201)
    one = f"/api/keys/{key['id']}"
    assert (await management.refused("PATCH", one, {"scopes": [scope]}))[1] == "scopes"
    assert (await management.ask("GET", one))["scopes"] == []


async def test_a_key_says_what_of_it_is_not_in_force(management: Management) -> None:
    path = "/api/keys"
    new = {
        "name": "k",
        "scopes": ["manage", "self:usage"],
        "allowedEndpoints": ["chat", "scraping"],
    }
    key = await management.ask("POST", path, new, expect=201)
    assert key["ineffective"] == []
    message, param = await management.refused(
        "POST", path, {"name": "k", "scopes": ["mcp:connect"]}
    )
    assert (param, "`mcp:connect` would open nothing" in message) == ("scopes", True)
    message, param = await management.refused(
        "POST", path, {"name": "k", "allowedEndpoints": ["agents"]}
    )
    assert param == "allowedEndpoints"
    assert "agents" in message
    one = f"{path}/{key['id']}"
    sql = (
        "UPDATE keys SET allowed_endpoints = ['chat', 'agents'], scopes = ['manage', 'mcp:connect']"
    )
    await management.services.state.commit(lambda con: con.execute(sql) and None)
    stored = await management.ask("GET", one)
    assert stored["ineffective"] == ["scopes:mcp:connect", "allowedEndpoints:agents"]
    back = {name: stored[name] for name in ("allowedEndpoints", "scopes")}
    back["chaosModeEnabled"] = True
    assert (await management.ask("PATCH", one, back))["chaosModeEnabled"] is True

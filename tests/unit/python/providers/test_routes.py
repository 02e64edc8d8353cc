"""`/api/providers` from the outside."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.management import Management
from tests.support.upstream import Gate, Upstream, reply

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

PATH = "/api/providers"
KEY = "sk-canary-0123456789"


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as running:
        running.script(reply({"data": [{"id": "m", "owned_by": "lab", "context_length": 4096}]}))
        yield running


async def make(management: Management, **fields: Any) -> Any:
    body = {"provider": "openai", "name": "main", "apiKey": KEY, **fields}
    return (await management.ask("POST", PATH, body, expect=201))["connection"]


async def make_node(management: Management, up: Upstream, **fields: Any) -> Any:
    body = {
        "type": "openai-compatible",
        "name": "Lab",
        "prefix": "lab",
        "baseUrl": up.url,
        **fields,
    }
    return (await management.ask("POST", "/api/provider-nodes", body, expect=201))["node"]


async def test_a_connection_is_made_listed_read_changed_and_deleted(management: Management) -> None:
    connection = await make(management)
    assert connection["apiKey"] == "***6789"
    assert (connection["priority"], connection["isActive"]) == (50, True)
    assert connection["testStatus"] is None
    assert (connection["state"], connection["stateUntil"]) == ("active", None)

    listed = await management.ask("GET", PATH)
    assert listed == {"connections": [connection], "total": 1, "limit": 50, "offset": 0}

    path = f"{PATH}/{connection['id']}"
    changed = (await management.ask("PUT", path, {"priority": 1, "isActive": False}))["connection"]
    assert changed == {
        **connection,
        "priority": 1,
        "isActive": False,
        "state": "deactivated",
        "updatedAt": changed["updatedAt"],
    }
    assert (await management.ask("GET", path))["connection"] == changed

    assert "message" in await management.ask("DELETE", path)
    for method in ("GET", "DELETE"):
        await management.ask(method, path, expect=404)
    await management.ask("PUT", path, {"name": "x"}, expect=404)
    await management.ask("POST", f"{path}/test", expect=404)
    await management.ask("GET", f"{path}/models", expect=404)


async def test_lists_are_paged(management: Management) -> None:
    made = [(await make(management, name=f"c{n}"))["id"] for n in range(3)]

    page = await management.ask("GET", PATH, limit=1, offset=1)

    assert [each["id"] for each in page["connections"]] == [made[1]]
    assert page["total"] == 3


async def test_a_provider_is_named_in_three_ways(management: Management, up: Upstream) -> None:
    node = await make_node(management, up)

    for name in ("lab", node["id"]):
        assert (await make(management, provider=name))["provider"] == node["id"]
    assert (await make(management, provider="groq"))["provider"] == "groq"
    body = {"provider": "nobody", "name": "x", "apiKey": KEY}
    assert (await management.refused("POST", PATH, body))[1] == "provider"


async def test_a_node_may_need_no_key_and_a_built_in_provider_does(
    management: Management, up: Upstream
) -> None:
    await make_node(management, up)

    bare = (await management.ask("POST", PATH, {"provider": "lab", "name": "x"}, expect=201))[
        "connection"
    ]
    assert (bare["authType"], bare["apiKey"]) == ("none", None)
    for body in (
        {"provider": "openai", "name": "x"},
        {"provider": "openai", "name": "x", "authType": "none"},
        {"provider": "lab", "name": "x", "authType": "apikey"},
        {"provider": "lab", "name": "x", "authType": "none", "apiKey": KEY},
    ):
        assert (await management.refused("POST", PATH, body))[1] == "apiKey"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"name": " "}, "name"),
        ({"priority": 0}, "priority"),
        ({"priority": 101}, "priority"),
        ({"priority": "1"}, "priority"),
        ({"isActive": 1}, "isActive"),
        ({"maxConcurrent": 0}, "maxConcurrent"),
        ({"weight": 1001}, "weight"),
        ({"requestsPerMinute": "60"}, "requestsPerMinute"),
        ({"tokensPerMinute": 0}, "tokensPerMinute"),
        ({"minGapMs": 60_001}, "minGapMs"),
        (
            {"queueDepth": 5, "providerSpecificData": {"learnLimits": False}},
            "queueDepth",
        ),
        ({"maxConcurrent": 5, "queueDepth": 10_001}, "queueDepth"),
        ({"maxConcurrent": 5, "queueTimeoutMs": 5}, "queueTimeoutMs"),
        ({"maxConcurrent": 5, "queueDepth": 5, "queueTimeoutMs": True}, "queueTimeoutMs"),
        ({"apiKey": "a b"}, "apiKey"),
        ({"apiKey": "a\r\nx: y"}, "apiKey"),
        ({"apiKey": "ä"}, "apiKey"),
        ({"apiKey": ""}, "apiKey"),
        ({"apiKey": "k" * 100_001}, "apiKey"),
        ({"authType": "oauth"}, "authType"),
        ({"defaultModel": "a b"}, "defaultModel"),
        ({"defaultModel": "m" * 301}, "defaultModel"),
        ({"id": "mine"}, "id"),
        ({"testStatus": "active"}, "testStatus"),
        ({"credentialsSealed": "x"}, "credentialsSealed"),
        ({"providerSpecificData": {"planet": "x"}}, "providerSpecificData.planet"),
        ({"providerSpecificData": {"region": "x/../y"}}, "providerSpecificData.region"),
        (
            {"providerSpecificData": {"baseUrl": "http://0xa9fea9fe/"}},
            "providerSpecificData.baseUrl",
        ),
        (
            {"providerSpecificData": {"reasoningControl": "loud"}},
            "providerSpecificData.reasoningControl",
        ),
        (
            {"providerSpecificData": {"timeouts": {"idleMs": 1}}},
            "providerSpecificData.timeouts.idleMs",
        ),
        (
            {"providerSpecificData": {"prices": {"m": {"input": -1, "output": 1}}}},
            "providerSpecificData.prices.m.input",
        ),
    ],
)
async def test_bodies_that_are_refused_name_the_field(
    management: Management, fields: dict[str, Any], param: str
) -> None:
    body = {"provider": "openai", "name": "main", "apiKey": KEY, **fields}

    message, named = await management.refused("POST", PATH, body)

    assert named == param
    assert KEY not in message
    assert (await management.ask("GET", PATH))["total"] == 0


async def test_both_ends_of_a_range_are_taken(management: Management) -> None:
    await make(management, priority=1, apiKey="k")
    await make(
        management, priority=100, apiKey="k" * 100_000, name="x" * 200, defaultModel="m" * 300
    )


async def test_a_change_needs_a_field_and_knows_no_other(management: Management) -> None:
    path = f"{PATH}/{(await make(management))['id']}"

    assert (await management.refused("PUT", path, {}))[0] == "No valid fields to update"
    for unknown in ("id", "provider", "createdAt", "testStatus", "__proto__"):
        assert (await management.refused("PUT", path, {unknown: "x", "name": "y"}))[1] == unknown
    for field in ("name", "priority", "isActive", "authType", "providerSpecificData"):
        assert (await management.refused("PUT", path, {field: None}))[1] == field
    assert (await management.ask("GET", path))["connection"]["name"] == "main"


async def test_provider_specific_data_is_changed_field_by_field(management: Management) -> None:
    first = {"baseUrl": "https://proxy.example/v1/", "timeouts": {"idleMs": 500}}
    connection = await make(management, providerSpecificData=first)
    path = f"{PATH}/{connection['id']}"

    async def change(sent: dict[str, Any]) -> Any:
        # The key goes with the address, so it is sent again when that moves.
        body = {"providerSpecificData": sent} | ({"apiKey": KEY} if "baseUrl" in sent else {})
        changed = await management.ask("PUT", path, body)
        return changed["connection"]["providerSpecificData"]

    data = await change({"reasoningControl": "chat-template"})
    assert data["reasoningControl"] == "chat-template"
    assert data["baseUrl"] == "https://proxy.example/v1"
    data = await change({"baseUrl": None, "prices": {"m": {"input": 0.1, "output": 0.7}}})
    assert data["baseUrl"] is None
    assert data["timeouts"]["idleMs"] == 500
    assert data["prices"]["m"]["input"] == 0.1
    assert (await change({"reasoningControl": None}))["reasoningControl"] is None


async def test_a_key_is_sealed_kept_changed_and_never_shown(
    management: Management, up: Upstream
) -> None:
    await make_node(management, up)
    connection = await make(management, provider="lab", apiKey=f" {KEY}\n")
    path = f"{PATH}/{connection['id']}"

    await management.ask("POST", f"{path}/test")
    assert up.last.bearer == KEY
    sent_back = {"apiKey": connection["apiKey"], "name": "renamed"}
    assert (await management.ask("PUT", path, sent_back))["connection"]["apiKey"] == "***6789"
    only_masked = {"apiKey": connection["apiKey"]}
    assert (await management.refused("PUT", path, only_masked))[0] == "No valid fields to update"
    await management.ask("POST", f"{path}/test")
    assert up.last.bearer == KEY

    await management.ask("PUT", path, {"apiKey": "sk-canary-another-one"})
    await management.ask("POST", f"{path}/test")
    assert up.last.bearer == "sk-canary-another-one"

    cleared = await management.ask("PUT", path, {"authType": "none"})
    assert cleared["connection"]["apiKey"] is None
    await management.ask("POST", f"{path}/test")
    assert up.last.bearer is None
    again = await management.ask("PUT", path, {"apiKey": KEY})
    assert again["connection"]["authType"] == "apikey"

    for file in management.services.data_dir.rglob("*"):
        assert not file.is_file() or b"sk-canary" not in file.read_bytes(), file
    assert "canary" not in (await management.client.get(PATH)).text


async def test_short_keys_show_nothing_of_themselves(management: Management) -> None:
    assert (await make(management, apiKey="sk-12345678"))["apiKey"] == "***"


async def test_a_test_keeps_what_it_found(management: Management, up: Upstream) -> None:
    await make_node(management, up)
    connection = await make(management, provider="lab")
    path = f"{PATH}/{connection['id']}"
    local = await management.ask("GET", f"{path}/models")
    assert (local["source"], local["models"]) == ("local_catalog", [])

    found = await management.ask("POST", f"{path}/test")

    assert found["valid"] is True
    assert found["diagnosis"] == {"type": "ok"}
    assert (found["error"], found["warning"], found["statusCode"]) == (None, None, 200)
    assert isinstance(found["latencyMs"], int)
    listed = await management.ask("GET", f"{path}/models")
    assert listed["source"] == "upstream"
    assert listed["connectionId"] == connection["id"]
    assert listed["models"][0]["id"] == "m"
    assert listed["models"][0]["contextLength"] == 4096
    after = (await management.ask("GET", path))["connection"]
    assert after["testStatus"] == "active"
    assert after["lastTested"] == found["testedAt"]
    assert after["lastErrorAt"] is None

    up.script(reply({}, 401))
    failed = await management.ask("POST", f"{path}/test")
    assert failed["diagnosis"] == {"type": "auth"}
    after = (await management.ask("GET", path))["connection"]
    assert after["testStatus"] == "error"
    assert after["lastError"] == failed["error"]
    assert after["lastErrorAt"] == failed["testedAt"]
    assert (await management.ask("GET", f"{path}/models"))["source"] == "upstream"


async def test_another_key_or_address_forgets_the_test(
    management: Management, up: Upstream
) -> None:
    node = await make_node(management, up)
    connection = await make(management, provider="lab")
    path = f"{PATH}/{connection['id']}"
    changes = [
        (path, {"apiKey": "sk-another-one"}),
        (path, {"providerSpecificData": {"baseUrl": up.url}}),
        (f"/api/provider-nodes/{node['id']}", {"baseUrl": f"{up.url}/2"}),
    ]
    for target, change in changes:
        await management.ask("POST", f"{path}/test")
        assert (await management.ask("GET", path))["connection"]["testStatus"] == "active"

        await management.ask("PUT", target, change)

        after = (await management.ask("GET", path))["connection"]
        assert (after["testStatus"], after["models"]) == (None, None)


async def test_a_test_that_was_overtaken_by_a_change_keeps_nothing(
    management: Management, up: Upstream
) -> None:
    gate = Gate()
    up.script([gate, *reply({"data": [{"id": "old"}]})])
    await make_node(management, up)
    path = f"{PATH}/{(await make(management, provider='lab'))['id']}"

    testing = asyncio.ensure_future(management.ask("POST", f"{path}/test"))
    await asyncio.to_thread(gate.reached.wait, 5)
    await management.ask("PUT", path, {"apiKey": "sk-another-one"})
    gate.open()

    assert (await testing)["valid"] is True
    assert (await management.ask("GET", path))["connection"]["models"] is None


async def test_validating_stores_nothing(management: Management, up: Upstream) -> None:
    await make_node(management, up, customHeaders={"x-team": "blue"})
    body = {"provider": "lab", "apiKey": KEY}

    found = await management.ask("POST", f"{PATH}/validate", body)

    assert found == {"valid": True, "error": None, "warning": None, "method": "models"}
    assert up.last.bearer == KEY
    assert up.last.header("x-team") == "blue"
    up.script(reply({}, 401))
    assert (await management.ask("POST", f"{PATH}/validate", body))["valid"] is False
    elsewhere = {"provider": "openai", "apiKey": KEY, "providerSpecificData": {"baseUrl": up.url}}
    assert (await management.ask("POST", f"{PATH}/validate", elsewhere))["valid"] is False
    assert (await management.ask("GET", PATH))["total"] == 0
    assert (await management.refused("POST", f"{PATH}/validate", {"provider": "lab", "x": 1}))[
        1
    ] == "x"


async def test_headers_of_a_node_reach_its_connections(
    management: Management, up: Upstream
) -> None:
    node = await make_node(management, up)
    path = f"{PATH}/{(await make(management, provider='lab'))['id']}"

    async def header_seen(headers: dict[str, str] | None) -> str | None:
        await management.ask("PUT", f"/api/provider-nodes/{node['id']}", {"customHeaders": headers})
        await management.ask("POST", f"{path}/test")
        assert up.last.bearer == KEY
        return up.last.header("x-team")

    assert await header_seen({"X-Team": "blue"}) == "blue"
    assert await header_seen({"X-Team": "***"}) == "blue"
    assert await header_seen(None) is None

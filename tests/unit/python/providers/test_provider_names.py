"""A provider is named by its id or by a node's prefix, wherever one is named; another name is refused."""

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


@pytest.fixture
async def node(management: Management) -> str:
    made = await management.ask("POST", "/api/provider-nodes", NODE, expect=201)
    body = {"provider": "lab", "name": "one", "apiKey": "sk-lab-canary"}
    await management.ask("POST", "/api/providers", body, expect=201)
    node_id: str = made["node"]["id"]
    return node_id


async def test_prices_are_set_shown_and_taken_back_by_the_prefix(
    management: Management, node: str
) -> None:
    path, price = "/api/pricing", {"input": 1, "output": 2}
    told = await management.ask("PUT", path, {"lab": {"m": price}})
    assert told["lab"]["m"]["input"] == 1
    for name in ("lab", node):
        shown = await management.ask("GET", path, provider=name)
        assert shown[name]["m"]["source"] == "operator"
    assert "lab/m" in {one["model"] for one in management.snapshot()["prices"]}
    assert list(await management.ask("GET", path)) == [node]
    for method in ("GET", "DELETE"):
        message, param = await management.refused(method, path, provider="nobody")
        assert (param, "nobody" in message) == ("provider", True)
    assert (await management.refused("PUT", path, {"nobody": {"m": price}}))[1] == "nobody"
    assert (await management.ask("DELETE", path, provider="lab"))["deleted"] == 1


async def test_account_strategies_are_kept_by_the_id(management: Management, node: str) -> None:
    body: dict[str, Any] = {"accountStrategies": {"lab": "sticky", "openai": "weighted"}}
    told = await management.ask("PATCH", "/api/settings", body)
    assert told["accountStrategies"] == {node: "sticky", "openai": "weighted"}
    assert management.snapshot()["account_strategies"]["providers"][node] == "sticky"
    body = {"accountStrategies": {"nobody": "sticky"}}
    assert (await management.refused("PATCH", "/api/settings", body))[1] == "accountStrategies"


async def test_a_token_limit_of_a_prefix_counts(management: Management, node: str) -> None:
    key = await management.ask("POST", "/api/keys", {"name": "k"}, expect=201)
    limit = {"apiKeyId": key["id"], "scopeType": "provider", "tokenLimit": 5}
    path = "/api/usage/token-limits"
    told = await management.ask("POST", path, {**limit, "scopeValue": "lab"}, expect=201)
    assert told["scopeValue"] == node
    assert (await management.refused("POST", path, {**limit, "scopeValue": "x"}))[1] == "scopeValue"


@pytest.mark.parametrize(
    "path",
    [
        "/api/usage/history",
        "/api/usage/logs",
        "/api/usage/request-logs",
        "/api/usage/model-latency-stats",
        "/api/models/catalog",
        "/api/provider-models",
        "/api/pricing",
    ],
)
async def test_a_filter_takes_either_name_and_no_other(
    management: Management, node: str, path: str
) -> None:
    for name in (node, "lab", "openai"):
        await management.ask("GET", path, provider=name)
    message, param = await management.refused("GET", path, provider="nobody")
    assert (param, "prefix" in message) == ("provider", True)


async def test_failures_are_forgotten_by_the_prefix(management: Management, node: str) -> None:
    assert node
    await management.ask("POST", "/api/resilience/reset", {"provider": "lab"})
    body = {"provider": "lab", "model": "m"}
    await management.ask("DELETE", "/api/resilience/model-cooldowns", body)
    message, _ = await management.refused(
        "POST", "/api/resilience/reset", {"provider": "nobody"}, expect=400
    )
    assert "There is no provider" in message

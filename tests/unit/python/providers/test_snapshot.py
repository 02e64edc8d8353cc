"""What the relay gets: active connections, each model once, a price under each prefix."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from fairlead.gateway.providers.catalogue import catalogue
from tests.support.management import Management
from tests.support.upstream import Upstream, reply

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

KEY = "sk-0123456789abc"


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


async def make(management: Management, provider: str, **fields: Any) -> Any:
    body = {"provider": provider, "name": "c", **fields}
    return (await management.ask("POST", "/api/providers", body, expect=201))["connection"]


async def make_node(management: Management, base_url: str, **fields: Any) -> Any:
    body = {
        "type": "openai-compatible",
        "name": "Lab",
        "prefix": "lab",
        "baseUrl": base_url,
        **fields,
    }
    return (await management.ask("POST", "/api/provider-nodes", body, expect=201))["node"]


def opened(management: Management, connection: dict[str, Any]) -> Any:
    sealed = base64.b64decode(connection["credentials_sealed"])
    return json.loads(management.services.state.sealer.unseal(connection["id"], sealed))


async def test_a_connection_of_a_built_in_provider(management: Management) -> None:
    made = await make(management, "openai", apiKey=KEY, priority=7)

    (connection,) = management.snapshot()["connections"]

    assert opened(management, connection) == {"api_key": KEY, "headers": {}}
    assert {name: connection[name] for name in connection if name != "credentials_sealed"} == {
        "id": made["id"],
        "name": "c",
        "provider": "openai",
        "prefixes": ["openai"],
        "dialect": "openai",
        "base_url": "https://api.openai.com/v1",
        "chat_path": None,
        "auth": "bearer",
        "aws": None,
        "chat_template_all": False,
        "chat_template_models": [],
        "replays_reasoning": False,
        "output_caps": {},
        "endpoints": {},
        "usual_endpoints": None,
        "priority": 7,
        "weight": 1,
        "limits": {},
        "quota_thresholds": {},
        "timeouts": {
            "connect_ms": 5000,
            "header_ms": 120_000,
            "first_token_ms": 120_000,
            "idle_ms": 300_000,
            "answer_ms": 600_000,
        },
        "paths": {},
        "apis": [],
        "facts": "openai",
        "inexpressible": None,
        "revision": connection["revision"],
    }
    assert connection["revision"] > 0


async def test_models_and_prices_come_from_the_catalogue(management: Management) -> None:
    await make(management, "openai", apiKey=KEY)
    await make(management, "openai", apiKey=KEY, defaultModel="brand-new")

    snapshot = management.snapshot()

    known = {f"openai/{model.id}": model for model in catalogue()["openai"].models}
    priced = {name for name, model in known.items() if model.price is not None}
    listed = {model["id"]: model for model in snapshot["models"]}
    today = datetime.now(UTC).date()
    served = {
        name
        for name, model in known.items()
        if model.retires_on is None or model.retires_on > today
    }
    assert len(served) > 100
    assert listed.keys() == {*served, "openai/brand-new"}
    assert len(listed) == len(snapshot["models"])
    assert listed["openai/gpt-4o"] == {
        "id": "openai/gpt-4o",
        "provider": "openai",
        "created": 0,
        "owned_by": "openai",
        "context_length": 128_000,
        "max_output_tokens": 16_384,
        "name": None,
        "mode": "chat",
        "capabilities": [
            "documents",
            "parallel_tools",
            "prompt_cache",
            "structured_output",
            "tools",
            "vision",
        ],
    }
    prices = {price["model"]: price for price in snapshot["prices"]}
    assert prices.keys() == priced
    assert prices["openai/gpt-4o"] == {
        "model": "openai/gpt-4o",
        "input": 2_500_000,
        "output": 10_000_000,
        "cached_input": 1_250_000,
        "cache_write": None,
        "tiers": [{"service": "batch", "input": 1_250_000, "output": 5_000_000}],
    }


async def test_a_connection_of_a_node(management: Management, up: Upstream) -> None:
    node = await make_node(
        management,
        up.url,
        type="anthropic-compatible",
        chatPath="/chat",
        customHeaders={"x-team": "blue"},
        timeouts={"idleMs": 1000, "connectMs": 100},
    )
    prices = {"llama": {"input": 0.1, "output": 0.25, "cachedInput": 0.0000004}}
    await make(
        management,
        "lab",
        apiKey=KEY,
        defaultModel="small",
        providerSpecificData={"prices": prices, "timeouts": {"idleMs": 2000}},
    )

    snapshot = management.snapshot()

    (connection,) = snapshot["connections"]
    assert connection["provider"] == node["id"]
    assert connection["prefixes"] == ["lab", node["id"]]
    assert (connection["dialect"], connection["auth"]) == ("anthropic", "x-api-key")
    assert (connection["base_url"], connection["chat_path"]) == (up.url, "/chat")
    assert connection["timeouts"]["idle_ms"] == 2000
    assert connection["timeouts"]["connect_ms"] == 100
    assert opened(management, connection) == {"api_key": KEY, "headers": {"x-team": "blue"}}
    assert [model["id"] for model in snapshot["models"]] == ["lab/llama", "lab/small"]
    assert snapshot["prices"] == [
        {
            "model": f"{prefix}/llama",
            "input": 100_000,
            "output": 250_000,
            "cached_input": 0,
            "cache_write": None,
        }
        for prefix in sorted(["lab", node["id"]])
    ]


async def test_who_wants_back_what_it_thought(management: Management) -> None:
    said = {"providerSpecificData": {"reasoningReplay": True}}
    unsaid = {"providerSpecificData": {"reasoningReplay": False}}
    for provider, fields in [
        ("openai", {}),
        ("openai", said),
        ("deepseek", {}),
        ("deepseek", unsaid),
        ("anthropic", said),
    ]:
        await make(management, provider, apiKey=KEY, **fields)
    found = [
        (each["provider"], each["replays_reasoning"])
        for each in management.snapshot()["connections"]
    ]
    assert sorted(found) == [
        ("anthropic", False),
        ("deepseek", False),
        ("deepseek", True),
        ("openai", False),
        ("openai", True),
    ]


async def test_without_key_and_headers_nothing_is_sealed(
    management: Management, up: Upstream
) -> None:
    await make_node(management, up.url)
    await make(management, "lab")

    (connection,) = management.snapshot()["connections"]

    assert (connection["auth"], connection["credentials_sealed"]) == ("none", None)


async def test_only_active_connections_are_in_it(management: Management) -> None:
    made = await make(management, "openai", apiKey=KEY)
    path = f"/api/providers/{made['id']}"

    await management.ask("PUT", path, {"isActive": False})
    snapshot = management.snapshot()
    assert (snapshot["connections"], snapshot["models"], snapshot["prices"]) == ([], [], [])

    await management.ask("PUT", path, {"isActive": True})
    assert len(management.snapshot()["connections"]) == 1
    await management.ask("DELETE", path)
    assert management.snapshot()["connections"] == []


async def test_the_more_preferred_connection_is_right_about_a_price(management: Management) -> None:
    def priced(usd: float) -> dict[str, Any]:
        return {"prices": {"gpt-4o": {"input": usd, "output": usd}}}

    await make(management, "openai", apiKey=KEY, providerSpecificData=priced(1))
    await make(management, "openai", apiKey=KEY, priority=10, providerSpecificData=priced(2))

    prices = {price["model"]: price["input"] for price in management.snapshot()["prices"]}

    assert prices["openai/gpt-4o"] == 2_000_000
    assert prices["openai/gpt-4.1"] == 2_000_000


async def test_a_tested_connection_serves_what_its_provider_lists(
    management: Management, up: Upstream
) -> None:
    pricing = {"prompt": "0.000001", "completion": "0.000002"}
    listed = [{"id": "gpt-4o", "created": 9}, {"id": "new", "pricing": pricing}]
    up.script(reply({"data": listed}))
    made = await make(management, "openai", apiKey=KEY, providerSpecificData={"baseUrl": up.url})

    await management.ask("POST", f"/api/providers/{made['id']}/test")

    snapshot = management.snapshot()
    models = {model["id"]: model for model in snapshot["models"]}
    assert models.keys() == {"openai/gpt-4o", "openai/new"}
    assert models["openai/gpt-4o"]["created"] == 9
    assert models["openai/gpt-4o"]["context_length"] == 128_000
    prices = {price["model"]: price for price in snapshot["prices"]}
    assert prices["openai/new"]["output"] == 2_000_000


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE provider_connections SET provider_specific = '{' WHERE name = 'bad'",
        "UPDATE provider_connections SET models = '[7]' WHERE name = 'bad'",
        "UPDATE provider_nodes SET type = 'unheard-of'",
        "UPDATE provider_nodes SET timeouts = ''",
    ],
)
async def test_a_record_that_cannot_be_read_holds_no_other_back(
    management: Management, damage: str
) -> None:
    node = await make_node(management, "http://127.0.0.1:9/v1")
    await make(management, node["id"], name="bad")
    await management.services.state.database.write(lambda con: con.execute(damage).fetchall())

    good = await make(management, "openai", name="good", apiKey=KEY)

    assert [each["id"] for each in management.snapshot()["connections"]] == [good["id"]]

"""`/api/provider-models` and `/api/models/catalog` from the outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.management import Management
from tests.support.upstream import Upstream, reply

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

PATH = "/api/provider-models"


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as running:
        entries = [{"id": "large", "owned_by": "vllm"}, {"id": "small", "owned_by": "somebody"}]
        running.script(reply({"data": entries}))
        yield running


async def make(management: Management, up: Upstream, **specific: Any) -> tuple[str, str]:
    """A node `lab` with one connection: their ids."""
    node = {"type": "openai-compatible", "name": "Lab", "prefix": "lab", "baseUrl": up.url}
    made = (await management.ask("POST", "/api/provider-nodes", node, expect=201))["node"]
    body = {"provider": made["id"], "name": "main", "providerSpecificData": specific}
    connection = await management.ask("POST", "/api/providers", body, expect=201)
    return made["id"], connection["connection"]["id"]


def listed(management: Management) -> dict[str, Any]:
    return {model["id"]: model for model in management.snapshot()["models"]}


async def test_an_override_survives_what_the_provider_says_next(
    management: Management, up: Upstream
) -> None:
    _, connection = await make(management, up)
    body = {"provider": "lab", "modelId": "large", "maxOutputTokenOverride": 4096}
    row = (await management.ask("PUT", PATH, body))["model"]
    assert (row["isCustom"], row["maxOutputTokenOverride"]) == (False, 4096)

    await management.ask("POST", f"/api/providers/{connection}/test")
    assert listed(management)["lab/large"]["max_output_tokens"] == 4096
    (connection,) = management.snapshot()["connections"]
    assert connection["output_caps"] == {"large": 4096}
    seen = await management.ask("GET", PATH, provider="lab")
    assert seen["models"] == []
    assert seen["modelOutputOverrides"] == {"large": 4096}

    cleared = {**body, "maxOutputTokenOverride": None}
    await management.ask("PUT", PATH, cleared)
    assert (await management.ask("GET", PATH, provider="lab"))["modelOutputOverrides"] == {}
    assert listed(management)["lab/large"]["max_output_tokens"] is None
    assert management.snapshot()["connections"][0]["output_caps"] == {}


async def test_a_custom_model_is_listed_hidden_shown_and_deleted(
    management: Management, up: Upstream
) -> None:
    await make(management, up)
    body = {"provider": "lab", "modelId": "mine", "modelName": "Mine", "contextWindowOverride": 9}
    row = (await management.ask("POST", PATH, body, expect=201))["model"]
    assert row["isCustom"]
    assert listed(management)["lab/mine"]["context_length"] == 9
    assert "custom model" in (await management.refused("POST", PATH, body, expect=409))[0]

    hide = {"provider": "lab", "modelIds": ["mine"], "isHidden": True}
    assert (await management.ask("PATCH", PATH, hide))["changed"] == 1
    assert "lab/mine" not in listed(management)
    catalogue = await management.ask("GET", "/api/models/catalog", provider="lab")
    (entry,) = [
        model
        for models in catalogue["providers"][0]["models"].values()
        for model in models
        if model["id"] == "lab/mine"
    ]
    assert (entry["name"], entry["isHidden"], entry["isCustom"]) == ("Mine", True, True)

    await management.ask("PATCH", PATH, {**hide, "isHidden": False})
    assert "lab/mine" in listed(management)
    await management.ask("DELETE", PATH, provider="lab", model="mine")
    assert "lab/mine" not in listed(management)
    await management.refused("DELETE", PATH, expect=404, provider="lab", model="mine")


async def test_a_model_is_added_when_its_provider_lists_it(
    management: Management, up: Upstream
) -> None:
    path = f"{PATH}/validate-and-add"
    node, _ = await make(management, up)
    body = {"provider": "lab", "modelId": "large"}
    added = await management.ask("POST", path, body, expect=201)
    assert (added["listed"], added["warning"]) == (True, None)

    message, param = await management.refused("POST", path, {**body, "modelId": "huge"})
    assert (param, "strict" in message) == ("modelId", True)
    assert (await management.ask("GET", PATH, provider=node))["total"] == 1
    loose = {**body, "modelId": "huge", "strict": False}
    assert (await management.ask("POST", path, loose, expect=201))["listed"] is False

    up.script(reply({}, 401))
    _, param = await management.refused("POST", path, {**body, "modelId": "other"})
    assert param == "provider"
    assert (await management.ask("GET", PATH, provider=node))["total"] == 2


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"maxOutputTokenOverride": 0}, "maxOutputTokenOverride"),
        ({"maxOutputTokenOverride": -5}, "maxOutputTokenOverride"),
        ({"maxOutputTokenOverride": 1.5}, "maxOutputTokenOverride"),
        ({"maxOutputTokenOverride": "4"}, "maxOutputTokenOverride"),
        ({"modelId": "a b"}, "modelId"),
        ({"modelId": "m" * 241}, "modelId"),
        ({"provider": "nobody", "isHidden": True}, "provider"),
        ({"isHidden": 1}, "isHidden"),
        ({"more": 1}, "more"),
        ({}, None),
    ],
)
async def test_what_is_wrong_is_named(
    management: Management, fields: dict[str, Any], param: str | None
) -> None:
    body = {"provider": "openai", "modelId": "gpt-4o", **fields}
    assert (await management.refused("PUT", PATH, body))[1] == param


async def test_reasoning_is_switched_in_templates_where_the_list_says_so(
    management: Management, up: Upstream
) -> None:
    node, connection = await make(management, up)
    path = f"/api/providers/{connection}"

    def control() -> tuple[bool, list[str]]:
        (one,) = management.snapshot()["connections"]
        return one["chat_template_all"], one["chat_template_models"]

    assert control() == (False, [])
    await management.ask("POST", f"{path}/test")
    assert control() == (False, ["large"])

    for pinned, expected in (("chat-template", (True, [])), ("openai", (False, []))):
        await management.ask("PUT", path, {"providerSpecificData": {"reasoningControl": pinned}})
        assert control() == expected
    await management.ask("PUT", path, {"providerSpecificData": {"reasoningControl": None}})
    assert control() == (False, ["large"])

    # Another address: what was found out is not about it.
    body = {"baseUrl": f"{up.url}/other"}
    await management.ask("PUT", f"/api/provider-nodes/{node}", body)
    assert control() == (False, [])


async def test_the_catalogue_has_all_that_is_built_in(management: Management) -> None:
    whole = await management.ask("GET", "/api/models/catalog")
    openai = next(each for each in whole["providers"] if each["id"] == "openai")
    model = next(each for each in openai["models"]["chat"] if each["id"] == "openai/gpt-4o")
    told = {name: price for name, price in model["price"].items() if price is not None}
    (batch,) = told.pop("tiers")
    assert (batch["service"], batch["input"], batch["output"]) == ("batch", 1.25, 5)
    assert told == {"input": 2.5, "output": 10, "cachedInput": 1.25}
    (cohere,) = [each for each in whole["providers"] if each["id"] == "cohere"]
    assert {each["price"]["perQuery"] for each in cohere["models"]["rerank"]} == {0.002, 0.0025}
    codex = next(each for each in openai["models"]["chat"] if each["id"] == "openai/gpt-5-codex")
    assert (codex["retiresOn"], model["retiresOn"]) == ("2026-07-23", None)
    assert (model["contextLength"], "vision" in model["capabilities"]) == (128_000, True)
    assert openai["models"]["embedding"]
    assert (openai["connected"], len(whole["providers"]) >= 40) == (False, True)
    assert (await management.ask("GET", "/api/models/catalog", connected=True))["total"] == 0


async def test_the_catalogue_is_searched_and_comes_in_pages(
    management: Management, up: Upstream
) -> None:
    async def ids(**query: Any) -> list[str]:
        told = await management.ask("GET", "/api/models/catalog", **query)
        return [
            model["id"]
            for provider in told["providers"]
            for models in provider["models"].values()
            for model in models
        ]

    await make(management, up)
    await management.ask(
        "POST", PATH, {"provider": "lab", "modelId": "x", "modelName": "Ünikum"}, expect=201
    )
    assert await ids(q="üNI") == ["lab/x"]
    assert await ids(connected=True) == ["lab/x"]
    assert all("gpt-4o" in each for each in await ids(q="GPT-4o"))
    assert await ids(q="no such model") == []
    kinds = await management.ask("GET", "/api/models/catalog", type="rerank")
    assert {kind for each in kinds["providers"] for kind in each["models"]} == {"rerank"}
    able = await ids(provider="openai", capability="vision")
    assert "openai/gpt-4o" in able
    assert "openai/gpt-3.5-turbo" not in able
    whole = sorted(await ids(provider="openai"))
    for limit in (1, 7, 500):
        walked: list[str] = []
        after = None
        while True:
            query = {"limit": limit, "provider": "openai"} | ({"after": after} if after else {})
            page = await management.ask("GET", "/api/models/catalog", **query)
            assert page["total"] == len(whole)
            walked += sorted(
                model["id"]
                for provider in page["providers"]
                for models in provider["models"].values()
                for model in models
            )
            after = page["next"]
            if after is None or len(walked) > 3 * limit > 20:
                break
        assert walked == whole[: len(walked)]
    _, param = await management.refused("GET", "/api/models/catalog", after="nowhere")
    assert param == "after"

"""What an operator states about models, as the API takes and shows it and as the relay gets it."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.gateway.providers.facts import Facts
from tests.support.management import Management

pytestmark = pytest.mark.anyio

MODELS = "/api/provider-models"
NODES = "/api/provider-nodes"
FACTS = {
    "capMember": "max_tokens",
    "outputLeast": 16,
    "seedMember": "random_seed",
    "stopMost": 4,
    "userMost": 64,
    "toolNames": {"most": 40, "letters": "word"},
    "callIds": {"most": 9, "letters": "alphanumeric"},
    "refusedInTurns": ["reasoning"],
    "thinking": "effort",
    "efforts": ["low", "high"],
    "budgetLeast": 1024,
    "budgetMost": 9000,
    "thinksByDefault": True,
    "toolsNeedThinkingOff": False,
    "thinkingNeedsStream": False,
    "samplers": "without_thinking",
    "parametersRequired": True,
    "forcedTools": "refused",
    "prefill": "prefix",
    "blankTexts": "refused",
    "schemas": "closed",
    "logprobs": "count",
    "metadataNeedsStore": True,
    "cacheMarks": 4,
    "cacheLeast": 1024,
    "promptCacheKeyMost": 64,
    "cacheRetentions": ["24h"],
    "serviceTiers": [],
    "streamingUsage": "always",
    "media": ["image/png"],
    "mediaUrls": False,
    "system": True,
    "toolsWithSchema": False,
    "outputs": ["text"],
    "bindsThinking": False,
}


async def connect(management: Management, provider: str, **specific: Any) -> str:
    body = {"provider": provider, "name": "c", "apiKey": "sk-0123456789abc"}
    body |= {"providerSpecificData": specific}
    made = await management.ask("POST", "/api/providers", body, expect=201)
    return str(made["connection"]["id"])


async def make_node(management: Management, **fields: Any) -> str:
    body = {"type": "openai-compatible", "name": "Lab", "prefix": "lab"}
    body |= {"baseUrl": "http://127.0.0.1:9/v1", **fields}
    return str((await management.ask("POST", NODES, body, expect=201))["node"]["id"])


async def override(management: Management, **fields: Any) -> Any:
    body = {"provider": "lab", "modelId": "m", **fields}
    return (await management.ask("PUT", MODELS, body))["model"]


def table(management: Management) -> Any:
    """The facts of the only connection."""
    snapshot = management.snapshot()
    (connection,) = snapshot["connections"]
    return snapshot["facts"].get(connection["facts"])


async def test_every_fact_can_be_stated_and_reads_back(management: Management) -> None:
    await make_node(management)
    await connect(management, "lab")

    row = await override(management, facts=FACTS, refuses=["seed"], apiType="responses")

    assert row["facts"] == FACTS
    stated = table(management)["overrides"]["models"]["m"]
    assert stated.keys() == Facts.model_fields.keys() - {"source"}
    assert (stated["refused"], stated["strips_refused"]) == (["seed"], True)
    assert (stated["api_type"], stated["user_most"]) == ("responses", 64)
    # An answer can be sent back.
    unsettable = {"provider", "modelId", "isCustom", "ineffective", "createdAt", "updatedAt"}
    again = {name: value for name, value in row.items() if name not in unsettable}
    assert (await override(management, **again))["facts"] == FACTS


async def test_facts_that_are_not_sent_stay_and_null_restores_the_catalogue(
    management: Management,
) -> None:
    await make_node(management)
    await connect(management, "lab")
    await override(management, facts={"userMost": 64, "system": False})
    row = await override(management, facts={"userMost": None, "prefill": "prefix"})
    assert {name: value for name, value in row["facts"].items() if value is not None} == {
        "system": False,
        "prefill": "prefix",
    }
    assert table(management)["overrides"]["models"] == {"m": {"system": False, "prefill": "prefix"}}
    await override(management, facts=None)
    assert table(management) is None
    assert (await management.ask("GET", MODELS))["total"] == 0


async def test_a_node_a_connection_and_a_model_override_one_another(management: Management) -> None:
    node = await make_node(
        management,
        type="anthropic-compatible",
        facts={"userMost": 1, "stopMost": 1, "system": True},
    )
    own = await connect(management, "lab", facts={"stopMost": 2, "userMost": 2}, refuses=["top_k"])
    await override(management, facts={"userMost": 3})

    found = table(management)
    assert found["families"], "the maker's facts are below"
    assert found["overrides"] == {
        "all": {
            "user_most": 2,
            "stop_most": 2,
            "system": True,
            "refused": ["top_k"],
            "strips_refused": True,
        },
        "models": {"m": {"user_most": 3}},
    }
    shown = (await management.ask("GET", f"/api/providers/{own}"))["connection"]
    specific = shown["providerSpecificData"]
    assert (specific["refuses"], specific["facts"]["stopMost"]) == (["top_k"], 2)
    cleared = {"providerSpecificData": {"facts": None, "refuses": None}}
    await management.ask("PUT", f"/api/providers/{own}", cleared)
    await management.ask("PUT", f"{NODES}/{node}", {"facts": {"stopMost": None}})
    assert table(management)["overrides"]["all"] == {"user_most": 1, "system": True}
    await management.ask("PUT", f"{NODES}/{node}", {"facts": None})
    await management.ask("DELETE", MODELS, provider="lab", model="m")
    assert management.snapshot()["connections"][0]["facts"] == "anthropic"


async def test_the_apis_of_a_cloud_have_the_overrides_too(management: Management) -> None:
    body = {
        "provider": "bedrock",
        "name": "c",
        "awsKeys": {"accessKeyId": "AKIA0123", "secretAccessKey": "s" * 20},
        "providerSpecificData": {"region": "eu-west-1", "facts": {"userMost": 5}},
    }
    await management.ask("POST", "/api/providers", body, expect=201)
    snapshot = management.snapshot()
    (connection,) = snapshot["connections"]
    names = {api["facts"] for api in connection["apis"]} | {connection["facts"]}
    assert len(names) > 1
    for name in names:
        assert snapshot["facts"][name]["overrides"]["all"] == {"user_most": 5}, name


async def test_connections_with_the_same_facts_share_a_table(management: Management) -> None:
    for _ in range(2):
        await connect(management, "openai", facts={"userMost": 5})
    await connect(management, "openai")
    snapshot = management.snapshot()
    names = [each["facts"] for each in snapshot["connections"]]
    assert len(set(names)) == 2
    assert snapshot["facts"].keys() == set(names)
    assert "overrides" not in snapshot["facts"]["openai"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"facts": {"userMost": -1}}, "facts.userMost"),
        ({"facts": {"userMost": "64"}}, "facts.userMost"),
        ({"facts": {"user_most": 64}}, "facts.user_most"),
        ({"facts": {"refused": ["seed"]}}, "facts.refused"),
        ({"facts": {"thinking": "sometimes"}}, "facts.thinking"),
        ({"facts": {"efforts": ["some"]}}, "facts.efforts"),
        ({"facts": {"system": "yes"}}, "facts.system"),
        ({"facts": {"toolNames": {"most": 4}}}, "facts.toolNames.letters"),
        ({"facts": {"budgetLeast": 9, "budgetMost": 8}}, "facts.budgetLeast"),
        ({"facts": []}, "facts"),
        ({"refuses": ["model"]}, "refuses"),
        ({"refuses": ["a b"]}, "refuses"),
        ({"refuses": "seed"}, "refuses"),
        ({"apiType": "telepathy"}, "apiType"),
    ],
)
async def test_a_wrong_fact_is_refused_with_its_name(
    management: Management, fields: dict[str, Any], param: str
) -> None:
    node = await make_node(management)
    own = await connect(management, "lab")
    model = {"provider": "lab", "modelId": "m", **fields}
    for method, path, body, prefix in (
        ("PUT", MODELS, model, ""),
        ("POST", MODELS, model, ""),
        ("PUT", f"{NODES}/{node}", fields, ""),
        ("PUT", f"/api/providers/{own}", {"providerSpecificData": fields}, "providerSpecificData."),
    ):
        message, named = await management.refused(method, path, body)
        assert (named or "").startswith(f"{prefix}{param}"), (path, named)
        assert message


@pytest.mark.parametrize(
    ("node", "api_type"),
    [
        ({"type": "anthropic-compatible"}, "responses"),
        ({"type": "gemini-compatible"}, "chat"),
        ({"chatPath": "/talk"}, "responses"),
    ],
)
async def test_an_api_without_effect_is_refused(
    management: Management, node: dict[str, Any], api_type: str
) -> None:
    await make_node(management, **node)
    body = {"provider": "lab", "modelId": "m", "apiType": api_type}
    message, param = await management.refused("PUT", MODELS, body)
    assert param == "apiType"
    assert "would have no effect" in message


async def test_a_model_of_chat_at_a_node_of_responses_has_an_api(management: Management) -> None:
    await make_node(management, apiType="responses")
    await connect(management, "lab")
    await override(management, apiType="chat")
    (connection,) = management.snapshot()["connections"]
    assert connection["dialect"] == "openai-responses"
    (api,) = connection["apis"]
    assert (api["models"], api["dialect"], api["base_url"]) == (
        ["m"],
        "openai",
        "http://127.0.0.1:9/v1",
    )


async def facts_of(management: Management, provider: str, model: str, **query: Any) -> Any:
    answer = await management.ask("GET", f"{MODELS}/facts", provider=provider, model=model, **query)
    return answer, {fact["name"]: fact for fact in (*answer["uses"], *answer["facts"])}


async def test_each_fact_in_force_is_shown_with_its_origin(management: Management) -> None:
    answer, facts = await facts_of(management, "openai", "gpt-5.2-codex")
    assert answer["connectionId"] is None
    assert [fact["name"] for fact in answer["facts"]][:2] == ["capMember", "outputLeast"]
    assert facts["apiType"]["value"] == "responses"
    assert facts["apiType"]["origin"] == "family"
    assert "gpt-5.2-codex*" in facts["apiType"]["patterns"]
    assert facts["userMost"]["origin"] == "catalogue"
    assert facts["userMost"]["source"]
    assert facts["seedMember"] == {
        "name": "seedMember",
        "value": None,
        "origin": "default",
        "source": None,
        "patterns": None,
    }
    # By `like`, Azure has the families of OpenAI.
    _, azure = await facts_of(management, "azure", "gpt-5.2-codex")
    assert azure["apiType"]["value"] == "responses"

    own = await connect(management, "openai", facts={"userMost": 9})
    body = {"provider": "openai", "modelId": "gpt-5.2-codex", "apiType": "chat", "type": "chat"}
    await management.ask("PUT", MODELS, {**body, "refuses": ["seed"]})
    answer, facts = await facts_of(management, "openai", "gpt-5.2-codex")
    assert answer["connectionId"] == own
    stated = {name: (fact["value"], fact["origin"]) for name, fact in facts.items()}
    assert stated["userMost"] == (9, "connection")
    assert stated["apiType"] == ("chat", "model")
    assert stated["refuses"] == (["seed"], "model")
    assert stated["type"] == ("chat", "model")
    await management.ask("DELETE", MODELS, provider="openai", model="gpt-5.2-codex")
    _, facts = await facts_of(management, "openai", "gpt-5.2-codex")
    assert facts["apiType"]["origin"] == "family"


async def test_uses_are_shown_with_their_origin(management: Management) -> None:
    await make_node(management, apiType="rerank", capabilities=["tools"], supportsVision=True)
    _, facts = await facts_of(management, "lab", "any")
    assert (facts["type"]["value"], facts["type"]["origin"]) == ("rerank", "node")
    assert facts["supportedEndpoints"]["value"] == ["rerank"]
    assert facts["capabilities"]["value"] == ["tools", "vision"]
    assert (facts["supportsVision"]["value"], facts["supportsVision"]["origin"]) == (True, "node")
    await override(management, supportsVision=False, type="chat")
    _, facts = await facts_of(management, "lab", "m")
    assert (facts["type"]["value"], facts["type"]["origin"]) == ("chat", "model")
    assert facts["capabilities"]["value"] == ["tools"]
    _, facts = await facts_of(management, "openai", "gpt-4o")
    assert facts["contextLength"]["origin"] == "catalogue"
    assert facts["contextLength"]["value"] == 128_000
    for query in ({"provider": "nobody", "model": "m"}, {"provider": "openai"}):
        await management.refused("GET", f"{MODELS}/facts", **query)
    query = {"provider": "openai", "model": "m", "connectionId": "none"}
    await management.refused("GET", f"{MODELS}/facts", expect=404, **query)

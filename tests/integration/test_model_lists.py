"""What `GET /v1/models` tells of each model, and which names it tells to whom."""

from __future__ import annotations

import secrets
from typing import Any

from tests.support.processes import Gateway, Lane, expect


def listed(gateway: Gateway, key: dict[str, Any]) -> dict[str, dict[str, Any]]:
    headers = {"Authorization": f"Bearer {key['key']}"}
    found = expect(gateway.caller.get("/v1/models", headers=headers), 200)["data"]
    return {one["id"]: one for one in found}


def test_a_model_is_told_with_its_kind_and_what_it_can_do(gateway: Gateway) -> None:
    connection = gateway.add_connection("cohere", "sk-upstream-canary-model-list")
    alias = f"alias-{secrets.token_hex(4)}"
    body = {"alias": alias, "model": "cohere/command-r-08-2024"}
    try:
        expect(gateway.admin.post("/api/models/alias", json=body), 200)
        models = listed(gateway, gateway.create_key())
        chat = models["cohere/command-r-08-2024"]
        assert (chat["type"], chat["aliases"]) == ("chat", [alias])
        assert "tools" in chat["capabilities"]
        assert chat["input_modalities"] == chat["output_modalities"] == ["text"]
        kinds = {one["type"] for name, one in models.items() if name.startswith("cohere/")}
        assert {"chat", "embedding", "rerank"} <= kinds
        one = expect(gateway.caller.get("/v1/models/cohere/command-r-08-2024"), 200)
        assert one == chat
    finally:
        gateway.admin.delete("/api/models/alias", params={"alias": alias})
        expect(gateway.admin.delete(f"/api/providers/{connection['id']}"), 200)


def test_channels_of_auto_are_told_by_catalog_scope(gateway: Gateway, lane: Lane) -> None:
    prices = {"prices": {"chat": {"input": 1, "output": 1}}}
    connection = f"/api/providers/{lane.connections[0]['id']}"
    expect(gateway.admin.put(connection, json={"providerSpecificData": prices}), 200)
    chat = f"{lane.prefix}/chat"
    everything = listed(gateway, gateway.create_key())
    assert {chat, "auto", "auto/coding:fast"} <= everything.keys()
    assert everything["auto"]["owned_by"] == "auto"
    combos = listed(gateway, gateway.create_key(catalogScope="combos"))
    assert "auto" in combos
    assert chat not in combos
    models = listed(gateway, gateway.create_key(catalogScope="models"))
    assert chat in models
    assert not [name for name in models if name.split("/")[0] == "auto"]
    without = listed(gateway, gateway.create_key(allowAutoCombos=False))
    assert chat in without
    assert "auto" not in without


def test_googles_list_comes_in_pages(gateway: Gateway, lane: Lane) -> None:
    whole = expect(gateway.caller.get("/v1beta/models"), 200)["models"]
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        params = {"pageSize": str(max(1, len(whole) // 2)), "pageToken": token}
        page = expect(gateway.caller.get("/v1beta/models", params=params), 200)
        found += page["models"]
        if not (token := page.get("nextPageToken", "")):
            break
    assert found == whole
    refused = gateway.caller.get("/v1beta/models", params={"pageSize": "no"})
    assert refused.status_code == 400
    assert "pageSize" in refused.json()["error"]["message"]


def test_a_model_is_what_its_operator_says(gateway: Gateway, lane: Lane) -> None:
    """The lists show its type and abilities, and only the calls that it takes are sent on."""
    models = {
        "only-embeds": {"supportedEndpoints": ["embeddings"]},
        "sees": {"supportsVision": True},
        "my-embed": {"type": "chat"},
        "plain-embed": {},
    }
    for name, fields in models.items():
        body = {"provider": lane.prefix, "modelId": name, **fields}
        expect(gateway.admin.post("/api/provider-models", json=body), 201)
    shown = listed(gateway, gateway.create_key())
    kinds = {name: shown[f"{lane.prefix}/{name}"]["type"] for name in models}
    assert kinds == {
        "only-embeds": "embedding",
        "sees": "chat",
        "my-embed": "chat",
        "plain-embed": "embedding",
    }
    assert "image" in shown[f"{lane.prefix}/sees"]["input_modalities"]
    version = {"anthropic-version": "2023-06-01"}
    names = f"?limit=1000&after_id={lane.prefix}/a&before_id={lane.prefix}/z"
    page = expect(gateway.caller.get(f"/v1/models{names}", headers=version), 200)
    assert [one["id"] for one in page["data"]] == [f"{lane.prefix}/my-embed", f"{lane.prefix}/sees"]
    before = len(lane.upstream.requests)
    for path, body in (
        ("/v1/chat/completions", lane.body(model=f"{lane.prefix}/only-embeds")),
        ("/v1/messages", {**lane.body(model=f"{lane.prefix}/only-embeds"), "max_tokens": 9}),
        ("/v1/responses", {"model": f"{lane.prefix}/only-embeds", "input": "x", "store": False}),
        ("/v1/rerank", {"model": f"{lane.prefix}/only-embeds", "query": "a", "documents": ["b"]}),
    ):
        refused = gateway.caller.post(path, json=body)
        assert refused.status_code == 400, refused.text
        assert "supportedEndpoints" in refused.text
    assert len(lane.upstream.requests) == before
    body = {"model": f"{lane.prefix}/only-embeds", "input": "x"}
    assert "supportedEndpoints" not in gateway.caller.post("/v1/embeddings", json=body).text
    assert len(lane.upstream.requests) == before + 1
    # A channel keeps 64 of all models; for this key, 64 of those that it may call.
    only = {"modelAccessMode": "restricted", "allowedModels": [f"{lane.prefix}/*", "auto/vision"]}
    key = gateway.create_key(**only)["key"]
    with gateway.client(headers={"Authorization": f"Bearer {key}"}) as caller:
        found = expect(caller.get("/v1/auto-combo/vision/candidates"), 200)["data"]
    named = {one["model"] for one in found}
    assert f"{lane.prefix}/sees" in named
    assert not {f"{lane.prefix}/only-embeds", f"{lane.prefix}/plain-embed"} & named

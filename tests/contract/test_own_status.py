"""What a key is told of itself and of what it may call: `/v1/me/status`, `/v1/combos` and candidates of `auto`."""

from __future__ import annotations

import secrets

from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.upstream import Upstream, completion, reply


def test_a_key_is_told_its_status(gateway: Gateway, upstream: Upstream) -> None:
    upstream.script(reply(completion(tokens_in=7, tokens_out=3)))
    lane = gateway.add_lane(upstream)
    made = gateway.create_key(
        name="self",
        scopes=["self:usage"],
        usageLimitEnabled=True,
        dailyUsageLimitUsd=5,
        rateLimits=[{"limit": 100, "window": 60}],
        allowedEndpoints=["chat"],
    )
    assert "scopes:self:usage" not in made["ineffective"]
    limit = {"apiKeyId": made["id"], "tokenLimit": 100_000, "scopeType": "global"}
    expect(gateway.admin.post("/api/usage/token-limits", json=limit), 201)
    with gateway.client(headers={"Authorization": f"Bearer {made['key']}"}) as caller:
        body = {"model": lane.model, "messages": [{"role": "user", "content": "hi"}]}
        expect(caller.post("/v1/chat/completions", json=body), 200)

        def find() -> dict | None:
            told = expect(caller.get("/v1/me/status"), 200)
            return told if told["usage"]["daily"]["requests"] else None

        told = eventually(find, "the request is counted", within_s=20, every_s=0.1)
    assert (told["object"], told["id"], told["name"]) == ("key.status", made["id"], "self")
    today = told["usage"]["daily"]
    assert (today["input_tokens"], today["output_tokens"], today["limit_usd"]) == (7, 3, 5.0)
    assert today["remaining_usd"] == 5.0 - today["spent_usd"]
    assert told["usage"]["weekly"]["limit_usd"] is None
    assert told["rate_limits"] == [{"limit": 100, "window_seconds": 60}]
    (tokens,) = told["token_limits"]
    assert (tokens["limit"], tokens["used"], tokens["remaining"]) == (100_000, 10, 99_990)
    assert told["access"]["allowed_endpoints"] == ["chat"]


def test_a_key_that_may_not_ask(gateway: Gateway) -> None:
    key = gateway.create_key()["key"]
    answer = gateway.client(headers={"Authorization": f"Bearer {key}"}).get("/v1/me/status")
    assert answer.status_code == 403
    assert "self:usage" in answer.json()["error"]["message"]
    assert gateway.client().get("/v1/me/status").status_code == 401


def test_combos_are_listed_without_what_is_the_operators(
    gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream)
    name, other = f"public-{secrets.token_hex(4)}", f"other-{secrets.token_hex(4)}"
    steps = [{"kind": "model", "model": lane.model, "weight": 7}]
    for each in (name, other):
        body = {"name": each, "models": steps, "strategy": "weighted"}
        expect(gateway.admin.post("/api/combos", json=body), 201)
    key = gateway.create_key(allowedCombos=[name])["key"]
    with gateway.client(headers={"Authorization": f"Bearer {key}"}) as caller:
        answer = caller.get("/v1/combos")
        told = expect(answer, 200)
    assert told["object"] == "list"
    assert [one["id"] for one in told["data"]] == [name]
    assert told["data"][0]["models"] == [lane.model]
    assert told["data"][0]["strategy"] == "weighted"
    assert lane.connections[0]["id"] not in answer.text
    assert 'weight"' not in answer.text


def test_candidates_of_a_channel(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream)
    known = {"provider": lane.prefix, "modelId": "coder", "modelName": "Coder"}
    expect(gateway.admin.post("/api/provider-models", json=known), 201)
    headers = {"Authorization": f"Bearer {gateway.key}"}
    with gateway.client(headers=headers) as caller:
        answer = caller.get("/v1/auto-combo/coding/candidates")
        told = expect(answer, 200)
        assert told["channel"] == "auto/coding"
        assert lane.connections[0]["id"] not in answer.text
        assert caller.get("/v1/auto-combo/auto/candidates").json()["channel"] == "auto"
        reachable = [one for one in told["data"] if one["reachable"]]
        assert len(reachable) == told["reachable"]
        assert [one["order"] for one in reachable] == list(range(1, len(reachable) + 1))
        missing = caller.get("/v1/auto-combo/nonsense/candidates")
        assert (missing.status_code, missing.json()["error"]["param"]) == (404, "channel")
    # This key may call one of them.
    only = {"modelAccessMode": "restricted", "allowedModels": [f"{lane.prefix}/*", "auto"]}
    narrow = gateway.create_key(**only)["key"]
    with gateway.client(headers={"Authorization": f"Bearer {narrow}"}) as caller:
        answer = caller.get("/v1/auto-combo/auto/candidates")
        candidates = {one["model"] for one in expect(answer, 200)["data"]}
        assert candidates == {f"{lane.prefix}/coder"}
    blind = gateway.create_key(blockedModels=[f"{lane.prefix}/*"])["key"]
    with gateway.client(headers={"Authorization": f"Bearer {blind}"}) as caller:
        assert lane.prefix not in caller.get("/v1/auto-combo/auto/candidates").text
    barred = gateway.create_key(allowAutoCombos=False)["key"]
    with gateway.client(headers={"Authorization": f"Bearer {barred}"}) as caller:
        assert caller.get("/v1/auto-combo/auto/candidates").status_code == 403

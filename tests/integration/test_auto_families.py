"""What a caller says about which target serves it: families of models, modes, and what one call may cost."""

from __future__ import annotations

import secrets
from collections import Counter
from typing import Any

import httpx
import pytest

from tests.support.chat import CHAT
from tests.support.processes import PROMPT, Gateway, expect
from tests.support.upstream import Upstream, completion, reply

# USD for a million tokens: with `max_tokens` 1000 an answer costs at most 0.01, 0.1 and 1 USD.
PRICES = {
    "claudette-mini": {"input": 0, "output": 10},
    "claudette-max": {"input": 0, "output": 100},
    "gptx-9": {"input": 0, "output": 1000},
}
BUDGET = "X-Gateway-Budget"
FALLBACK = "X-Gateway-Budget-Fallback"


class Models:
    """Three models of two families at one provider, each with its price, and one without."""

    def __init__(self, gateway: Gateway, upstream: Upstream) -> None:
        self.gateway, self.upstream = gateway, upstream
        self.lane = gateway.add_lane(upstream, connections=0)
        gateway.add_connection(
            self.lane.node["id"],
            "sk-upstream-canary-family",
            providerSpecificData={"prices": PRICES},
        )
        for model in (*PRICES, "claudette-free-of-price"):
            body = {"provider": self.lane.prefix, "modelId": model}
            expect(gateway.admin.post("/api/provider-models", json=body), 201)

    def name(self, model: str) -> str:
        return f"{self.lane.prefix}/{model}"

    def call(self, model: str, /, **headers: str) -> httpx.Response:
        body = {
            "model": model,
            "messages": [{"role": "user", "content": PROMPT}],
            "max_tokens": 1000,
        }
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.gateway.caller.post(CHAT, json=body, headers=sent)

    def served(self, model: str, /, **headers: str) -> str:
        answer = self.call(model, **headers)
        assert answer.status_code == 200, answer.text
        return answer.headers["x-gateway-model"]


@pytest.fixture
def models(gateway: Gateway, upstream: Upstream) -> Models:
    upstream.script(reply(completion()))
    return Models(gateway, upstream)


def test_a_family_is_served_by_its_own_models(models: Models) -> None:
    listed = {one["id"] for one in expect(models.gateway.caller.get("/v1/models"), 200)["data"]}
    assert {"auto", "auto/claudette", "auto/gptx"} <= listed
    assert models.served("auto/gptx") == "gptx-9"
    for _ in range(5):
        assert models.served("auto/claudette").startswith("claudette-")
    told = expect(models.gateway.caller.get("/v1/auto-combo/claudette/candidates"), 200)
    assert {one["model"] for one in told["data"]} == {
        models.name(model) for model in (*PRICES, "claudette-free-of-price") if "claude" in model
    }
    unknown = models.call("auto/nosuchfamily")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
    key = models.gateway.create_key(allowAutoCombos=False)["key"]
    with models.gateway.client(headers={"Authorization": f"Bearer {key}"}) as client:
        body = {"model": "auto/gptx", "messages": [{"role": "user", "content": PROMPT}]}
        assert client.post(CHAT, json=body).status_code == 403


def test_a_mode_weighs_one_call(models: Models) -> None:
    def mostly(**headers: str) -> str:
        # One call in twenty explores.
        return Counter(models.served("auto/claudette", **headers) for _ in range(9)).most_common(1)[
            0
        ][0]

    assert mostly(X_Gateway_Mode="cheap") == "claudette-mini"
    assert mostly(X_Gateway_Mode="quality") == "claudette-max"
    assert mostly(X_OmniRoute_Mode="quality-first") == "claudette-max"


@pytest.mark.parametrize("prefix", ["X-Gateway-", "X-OmniRoute-"])
def test_a_budget_leaves_out_what_may_cost_more(models: Models, prefix: str) -> None:
    name = f"c{secrets.token_hex(4)}"
    steps = [models.name(model) for model in ("gptx-9", "claudette-max", "claudette-mini")]
    expect(models.gateway.admin.post("/api/combos", json={"name": name, "models": steps}), 201)

    def served(usd: str, model: str = name) -> Any:
        return models.served(model, **{f"{prefix}Budget": usd})

    assert served("1") == "gptx-9"
    assert served("0.5") == "claudette-max"
    assert served("0.01") == "claudette-mini"
    before = len(models.upstream.requests)
    refused = models.call(name, **{f"{prefix}Budget": "0.009999"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (402, "call_too_dear")
    assert refused.json()["error"]["param"] == BUDGET
    assert "0.010000" in refused.json()["error"]["message"], "what the cheapest may cost"
    assert len(models.upstream.requests) == before, "nobody was asked"
    fallback = {f"{prefix}Budget": "0.009999", f"{prefix}Budget-Fallback": "cheapest"}
    assert models.served(name, **fallback) == "claudette-mini"


def test_a_budget_holds_for_every_kind_of_call(models: Models) -> None:
    one = models.name("gptx-9")
    assert models.call(one, X_Gateway_Budget="0.9").status_code == 402
    assert models.served(one, X_Gateway_Budget="1.0") == "gptx-9"
    assert (
        models.served(one, X_Gateway_Budget="0", X_Gateway_Budget_Fallback="cheapest") == "gptx-9"
    )
    unpriced = models.call(models.name("claudette-free-of-price"), X_Gateway_Budget="100")
    assert unpriced.status_code == 402
    assert "without a price" in unpriced.json()["error"]["message"]
    name = f"c{secrets.token_hex(4)}"
    steps = [models.name(model) for model in ("claudette-max", "claudette-mini")]
    chain = {"name": name, "strategy": "pipeline", "models": steps}
    expect(models.gateway.admin.post("/api/combos", json=chain), 201)
    assert models.call(name, X_Gateway_Budget="0.109").status_code == 402, "both steps count"
    assert models.call(name, X_Gateway_Budget="0.11").status_code == 200
    with models.gateway.client(headers=dict(models.gateway.caller.headers)) as caller:
        message = {
            "model": one,
            "max_tokens": 1000,
            "messages": [{"role": "user", "content": PROMPT}],
        }
        refused = caller.post("/v1/messages", json=message, headers={BUDGET: "0.9"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (402, "billing_error")


@pytest.mark.parametrize(
    ("headers", "param"),
    [
        ({"X-Gateway-Mode": "best"}, "X-Gateway-Mode"),
        ({BUDGET: "much"}, BUDGET),
        ({BUDGET: "-1"}, BUDGET),
        ({BUDGET: "nan"}, BUDGET),
        ({BUDGET: "1", FALLBACK: "dearest"}, FALLBACK),
        ({FALLBACK: "cheapest"}, FALLBACK),
    ],
)
def test_what_is_no_wish_is_refused(models: Models, headers: dict[str, str], param: str) -> None:
    answer = models.call(models.name("gptx-9"), **headers)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert not models.upstream.requests

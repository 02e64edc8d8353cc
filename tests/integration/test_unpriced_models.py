"""Models without a price, where a key may spend only so many dollars: let through, or refused and nobody is asked."""

from __future__ import annotations

import secrets
from typing import Any, Final

from tests.support.chat import CHAT
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Upstream, completion, reply

MONEY: Final = {"usageLimitEnabled": True, "dailyUsageLimitUsd": 5}
PRICE: Final = {"input": 1, "output": 2}


def call(gateway: Gateway, key: dict[str, Any], body: dict[str, Any], path: str = CHAT) -> Any:
    return gateway.caller.post(path, json=body, headers={"Authorization": f"Bearer {key['key']}"})


def priced(gateway: Gateway, lane: Lane) -> None:
    expect(gateway.admin.patch("/api/pricing", json={lane.node["id"]: {"m": PRICE}}), 200)


def test_a_key_with_a_limit_in_dollars_refuses_what_has_no_price(
    gateway: Gateway, upstream: Upstream, lane: Lane
) -> None:
    upstream.script(reply(completion()))
    allowing = gateway.create_key(**MONEY)
    unlimited = gateway.create_key(unpricedModels="refuse")
    key = gateway.create_key(**MONEY, unpricedModels="refuse")
    assert call(gateway, allowing, lane.body()).status_code == 200, "as the settings say"
    assert call(gateway, unlimited, lane.body()).status_code == 200, "no limit in dollars holds"
    asked = len(upstream.requests)

    refused = call(gateway, key, lane.body())
    assert refused.status_code == 403
    error = refused.json()["error"]
    assert (error["code"], error["param"]) == ("unpriced_model", "unpricedModels")
    assert f"`{lane.model}` has no price" in error["message"]
    assert "`dailyUsageLimitUsd`" in error["message"]
    assert "PUT /api/pricing" in error["message"]
    told = call(gateway, key, lane.body(max_tokens=9), "/v1/messages").json()
    assert told["error"]["type"] == "permission_error", "in the dialect of the caller"
    assert told["type"] == "error"
    assert len(upstream.requests) == asked, "nobody was asked"

    priced(gateway, lane)
    assert call(gateway, key, lane.body()).status_code == 200


def test_a_combo_goes_on_to_what_has_a_price(gateway: Gateway, upstream: Upstream) -> None:
    upstream.script(reply(completion()))
    lanes = [gateway.add_lane(upstream), gateway.add_lane(upstream)]
    priced(gateway, lanes[1])
    key = gateway.create_key(**MONEY, unpricedModels="refuse")
    combos = {}
    for strategy in ("priority", "pipeline"):
        combos[strategy] = f"unpriced-{secrets.token_hex(4)}"
        body = {"name": combos[strategy], "strategy": strategy, "models": [x.model for x in lanes]}
        expect(gateway.admin.post("/api/combos", json=body), 201)

    served = call(gateway, key, lanes[0].body(model=combos["priority"]))
    assert served.status_code == 200, served.text
    assert served.headers["x-gateway-provider"] == lanes[1].prefix
    refused = call(gateway, key, lanes[0].body(model=combos["pipeline"]))
    assert refused.status_code == 403, "a chain needs every step"
    assert lanes[0].model in refused.json()["error"]["message"]

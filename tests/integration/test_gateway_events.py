"""Every event of the gateway, told to a real listener, whichever way the call came that it is about."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import standardwebhooks

from tests.support.chat import CHAT
from tests.support.inference import EXAMPLES
from tests.support.listener import Listener
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import (
    CLOSE,
    DONE,
    SSE_HEAD,
    Gate,
    Upstream,
    chunk,
    completion,
    delta,
    finish,
    reply,
    stream,
)

EVENTS = (
    "request.completed",
    "request.failed",
    "provider.error",
    "provider.recovered",
    "quota.exceeded",
    "combo.switched",
    "budget.reached",
    "test.ping",
)
BUSY = reply({"error": {"message": "busy"}}, status=503)
USED_UP = [
    ("anthropic-ratelimit-unified-5h-utilization", "1.0"),
    ("anthropic-ratelimit-unified-5h-reset", "4102444800"),
]
# What a provider is asked for, and forms of it that differ from the rest.
CALLS = [route for route, example in EXAMPLES.items() if example.body and not example.is_free]


class Notices:
    """What a listener was told, and by whom."""

    def __init__(self, gateway: Gateway, listener: Listener) -> None:
        self.gateway = gateway
        self.listener = listener
        body = {"url": f"{listener.url}/ok", "events": list(EVENTS)}
        created = expect(gateway.admin.post("/api/webhooks", json=body), 201)
        gateway.canaries.append(created["secret"])
        self.webhook_id = created["webhook"]["id"]
        self._verifier = standardwebhooks.Webhook(created["secret"])

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The data of all events of a kind; each is signed, and none comes twice."""
        received = self.listener.received()
        for one in received:
            self._verifier.verify(one.body, one.headers)
        ids = [one.message_id for one in received]
        assert len(ids) == len(set(ids))
        return [one.event["data"] for one in received if one.event["type"] == kind]

    def one(self, kind: str, **data: Any) -> dict[str, Any]:
        """The one event of this kind that says so."""

        def probe() -> list[dict[str, Any]]:
            return [each for each in self.events(kind) if data.items() <= each.items()]

        found = eventually(probe, f"{kind} {data}", within_s=15, every_s=0.1)
        assert len(found) == 1, found
        return found[0]


@pytest.fixture(scope="module")
def told(loopback_gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notices]:
    with Listener(tmp_path_factory.mktemp("told")) as listener:
        told = Notices(loopback_gateway, listener)
        yield told
        expect(loopback_gateway.admin.delete(f"/api/webhooks/{told.webhook_id}"), 200)


@pytest.fixture(scope="module")
def gateway(loopback_gateway: Gateway) -> Gateway:
    return loopback_gateway


def request_id(answer: httpx.Response) -> str:
    return answer.headers["x-gateway-request-id"]


@pytest.mark.parametrize("route", CALLS)
def test_a_call_is_told_of_by_whichever_route_it_came(
    told: Notices, upstream: Upstream, route: str
) -> None:
    everything = {"data": [], "results": [], "pages": [], "text": "hi", "name": "operations/o1"}
    example = EXAMPLES[route]
    lane = told.gateway.add_lane(upstream, dialect=example.dialect)
    upstream.script(reply({**completion(), **everything}))
    method, path = route.split(" ")
    path = (example.path or path).replace("{model}", lane.model)
    assert example.body is not None
    sent: dict[str, Any] = {"json": example.body(lane.model)}
    if example.file:
        file = {example.file: ("a.bin", b"abc", "application/octet-stream")}
        sent = {"data": sent["json"], "files": file}
    answer = told.gateway.caller.request(method, path, **sent)
    kind = "request.completed" if answer.status_code == 200 else "request.failed"
    data = told.one(kind, requestId=request_id(answer))
    assert (data["status"], data["model"]) == (answer.status_code, lane.model)
    assert data["provider"] == lane.node["id"]


def test_a_call_is_told_of_however_it_ends(told: Notices, lane: Lane) -> None:
    gateway = told.gateway
    fixed = lane.body(temperature=0)
    kept = [gateway.caller.post(CHAT, json=fixed) for _ in range(2)]
    assert kept[1].headers["x-gateway-cache"] == "HIT"
    same = {"Idempotency-Key": secrets.token_hex(8)}
    repeats = [gateway.caller.post(CHAT, json=lane.body(), headers=same) for _ in range(2)]
    assert repeats[1].headers["x-gateway-idempotent"] == "true"
    for answer in (*kept, *repeats):
        told.one("request.completed", requestId=request_id(answer))

    lane.upstream.script(
        stream(delta("a"), finish(), DONE),
        [SSE_HEAD, chunk(delta("a")), CLOSE],
        [SSE_HEAD, chunk(delta("a")), Gate()],
    )
    body = lane.body(stream=True)
    whole = gateway.caller.post(CHAT, json=body)
    told.one("request.completed", requestId=request_id(whole), outcome="completed")
    cut = gateway.caller.post(CHAT, json=body)
    told.one("request.failed", requestId=request_id(cut), outcome="upstream_failed")
    with gateway.caller.stream("POST", CHAT, json=body) as left:
        next(left.iter_bytes())
    told.one("request.failed", requestId=request_id(left), outcome="client_gone")

    refused = gateway.caller.post(CHAT, json=lane.body(model="nobody/knows"))
    told.one("request.failed", requestId=request_id(refused), outcome="refused")
    blocked = gateway.create_key(blockedModels=[lane.model])["key"]
    answer = gateway.caller.post(
        CHAT, json=lane.body(), headers={"Authorization": f"Bearer {blocked}"}
    )
    told.one("request.failed", requestId=request_id(answer), status=403)


@pytest.mark.parametrize("path", ["plain", "stream", "messages", "embeddings"])
def test_a_provider_that_fails_and_serves_again_is_told_of(
    told: Notices, lane: Lane, path: str
) -> None:
    route = {"messages": "/v1/messages", "embeddings": "/v1/embeddings"}.get(path, CHAT)
    body = EXAMPLES[f"POST {route}"].body
    assert body is not None
    sent = body(lane.model) | ({"stream": True} if path == "stream" else {})
    well = (
        stream(delta("a"), finish(), DONE)
        if path == "stream"
        else reply(completion() | {"data": []})
    )
    lane.upstream.script(reply({}, 500), well)
    connection = {name: lane.connections[0][name] for name in ("id", "name", "provider")}
    assert told.gateway.caller.post(route, json=sent).status_code == 502
    told.one("provider.error", **connection, errorKind="upstream_status")
    assert told.gateway.caller.post(route, json=sent).status_code == 200
    told.one("provider.recovered", **connection)


def test_a_limit_that_is_met_is_told_of(told: Notices, lane: Lane) -> None:
    for route in ("POST /v1/chat/completions", "POST /v1/embeddings"):
        limited = told.gateway.create_key(rateLimits=[{"limit": 1, "window": 86_400}])
        body = EXAMPLES[route].body
        assert body is not None
        path, headers = route.split(" ")[1], {"Authorization": f"Bearer {limited['key']}"}
        told.gateway.caller.post(path, json=body(lane.model), headers=headers)
        for _ in range(2):
            again = told.gateway.caller.post(path, json=body(lane.model), headers=headers)
            assert again.status_code == 429
        data = told.one("quota.exceeded", scope="key", id=limited["id"])
        assert data["reason"] == "rate_limited"


def test_a_budget_that_is_spent_in_part_is_told_of(told: Notices, upstream: Upstream) -> None:
    # An answer has three tokens: 3,000 micro-dollars of 5,000.
    lane = told.gateway.add_lane(upstream, connections=0)
    prices = {"prices": {"m": {"input": 0, "output": 1000}}}
    told.gateway.add_connection(
        lane.node["id"], "sk-upstream-canary-b", providerSpecificData=prices
    )
    key = told.gateway.create_key(usageLimitEnabled=True, monthlyUsageLimitUsd=0.005)
    upstream.script(reply(completion()))
    headers = {"Authorization": f"Bearer {key['key']}"}
    body = lane.body(max_tokens=4)
    expect(told.gateway.caller.post(CHAT, json=body, headers=headers), 200)
    data = told.one("budget.reached", id=key["id"])
    assert (data["field"], data["percent"]) == ("monthlyUsageLimitUsd", 50)
    assert (data["spentUsdMicros"], data["limitUsdMicros"]) == (3000, 5000)


@pytest.mark.parametrize("path", [CHAT, "/v1/messages"])
def test_a_connection_whose_quota_is_used_up_is_told_of(
    told: Notices, lane: Lane, path: str
) -> None:
    lane.upstream.script(reply(completion(), headers=USED_UP))
    body = EXAMPLES[f"POST {path}"].body
    assert body is not None
    expect(told.gateway.caller.post(path, json=body(lane.model)), 200)
    data = told.one("quota.exceeded", scope="connection", id=lane.connections[0]["id"])
    assert (data["provider"], data["reason"]) == (lane.node["id"], "quota-exhausted")
    assert data["resetsAt"] is not None


@pytest.mark.parametrize("path", ["plain", "stream", "messages", "responses", "embeddings"])
def test_a_combo_that_goes_on_to_another_target_is_told_of(
    told: Notices, upstream: Upstream, path: str
) -> None:
    gateway = told.gateway
    lanes = [gateway.add_lane(upstream) for _ in range(2)]
    name = f"c{secrets.token_hex(4)}"
    models = [f"{lane.prefix}/m{at}" for at, lane in enumerate(lanes)]
    expect(gateway.admin.post("/api/combos", json={"name": name, "models": models}), 201)
    well = (
        stream(delta("a"), finish(), DONE)
        if path == "stream"
        else reply(completion() | {"data": []})
    )
    upstream.script(BUSY, model="m0")
    upstream.script(well, model="m1")
    route = CHAT if path in {"plain", "stream"} else f"/v1/{path}"
    body = EXAMPLES[f"POST {route}"].body
    assert body is not None
    sent = body(name) | ({"stream": True} if path == "stream" else {})
    answer = gateway.caller.post(route, json=sent)
    assert answer.status_code == 200, answer.text
    data = told.one("combo.switched", requestId=request_id(answer))
    assert (data["combo"], data["strategy"], data["attempts"]) == (name, "priority", 2)
    assert (data["model"], data["provider"]) == ("m1", lanes[1].node["id"])


def test_a_test_is_told_of(told: Notices) -> None:
    path = f"/api/webhooks/{told.webhook_id}/test"
    assert told.gateway.admin.post(path).status_code < 300
    assert told.one("test.ping")["message"]

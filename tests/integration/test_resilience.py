"""States of connections with real processes: what is held against whom, what a worker's end does not undo, and what an
operator's word does. S7, S16 and S17 of the catalogue of faults.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import PROMPT, Gateway, Lane, expect
from tests.support.tls import NO_AUTHORITIES
from tests.support.upstream import Gate, Upstream, completion, reply

OK = reply(completion())
PATH = "/api/resilience"
NO_CREDITS = reply({"error": {"message": "You exceeded it", "code": "insufficient_quota"}}, 429)
FAILED = reply({"error": {"message": "failed"}}, 500)
MISSING = reply({"error": {"message": "no such model"}}, 404)


def limited(seconds: str) -> Any:
    return reply({"error": {"message": "slow"}}, 429, [("Retry-After", seconds)])


def call(gateway: Gateway, model: str, path: str = CHAT, **headers: str) -> httpx.Response:
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": PROMPT}]}
    if path.startswith("/v1/messages"):
        body["max_tokens"] = 16
    return gateway.caller.post(path, json=body, headers=headers)


def shown(gateway: Gateway, connection_id: str) -> dict[str, Any]:
    found: dict[str, Any] = expect(gateway.admin.get(f"/api/providers/{connection_id}"), 200)
    connection: dict[str, Any] = found["connection"]
    return connection


def becomes(gateway: Gateway, connection_id: str, state: str) -> dict[str, Any]:
    """The connection, once control has heard that it is in this state: a worker tells it every two seconds."""

    def look() -> dict[str, Any] | None:
        connection = shown(gateway, connection_id)
        return connection if connection["state"] == state else None

    found = eventually(look, f"the state {state}", within_s=15, every_s=0.1)
    assert found is not None
    return found


@pytest.fixture
def own(gateways: Callable[..., Gateway]) -> Gateway:
    """A gateway with whose workers the test may do as it likes."""
    return gateways()


@pytest.fixture
def change_thresholds(gateway: Gateway) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Changes thresholds for one test, part by part as `PATCH /api/resilience` takes them."""
    before = expect(gateway.admin.get(PATH), 200)
    changed: set[str] = set()

    def change(thresholds: dict[str, Any]) -> None:
        changed.update(thresholds)
        expect(gateway.admin.patch(PATH, json=thresholds), 200)

    yield change
    expect(gateway.admin.patch(PATH, json={name: before[name] for name in changed}), 200)
    after = expect(gateway.admin.get(PATH), 200)
    assert {name: after[name] for name in changed} == {name: before[name] for name in changed}


# --- S17: one finds out for all


@pytest.mark.one_node(reason="each worker lets one of its callers find out")
def test_after_a_rest_that_was_asked_for_one_caller_finds_out_for_all(
    gateway: Gateway, lane: Lane, upstream: Upstream, change_thresholds: Callable[..., None]
) -> None:
    """However many callers there are at the end of a cooldown, they are one request until its answer is there."""
    # As long as it takes on a busy machine.
    change_thresholds({"probeWaitMs": 30_000})
    upstream.script(limited("1"))
    assert call(gateway, lane.model).status_code == 429
    gate = Gate()
    upstream.script([gate, *limited("60")], limited("60"))
    body = lane.body()
    headers = {"Authorization": f"Bearer {gateway.key}"}

    def one(_: int) -> int:
        with httpx.Client(trust_env=False, timeout=30, verify=NO_AUTHORITIES) as client:
            return client.post(f"{gateway.url}{CHAT}", json=body, headers=headers).status_code

    with ThreadPoolExecutor(48) as callers:

        def probe() -> bool:
            callers.submit(one, 0)
            return gate.reached.wait(0.2)

        eventually(probe, "the rest is over", within_s=10, every_s=0.05)
        before = len(upstream.requests)
        assert before == 2
        answers = [callers.submit(one, at) for at in range(40)]
        gate.open()
        statuses = {answer.result() for answer in answers}
    assert statuses == {429}
    assert len(upstream.requests) == before, "who waited was told, and asked nobody"


@pytest.mark.one_node(reason="each worker lets one of its callers find out")
def test_when_the_one_is_served_the_others_go(
    gateway: Gateway, lane: Lane, upstream: Upstream
) -> None:
    upstream.script(limited("1"), OK)
    assert call(gateway, lane.model).status_code == 429

    def again() -> bool:
        return call(gateway, lane.model).status_code == 200

    eventually(again, "served again", within_s=10, every_s=0.1)
    with ThreadPoolExecutor(8) as callers:
        answers = list(callers.map(lambda _: call(gateway, lane.model).status_code, range(16)))
    assert set(answers) == {200}


# --- providers and models


@pytest.mark.one_node(reason="each worker counts failures for itself")
def test_a_provider_that_fails_is_left_alone_until_one_finds_out(
    gateway: Gateway, upstream: Upstream, change_thresholds: Callable[..., None]
) -> None:
    """In force at once in the worker: the change is answered when it is."""
    lane = gateway.add_lane(upstream, connections=2)
    change = {"ownMachineBreaker": {"degradedAfter": 1, "openAfter": 2, "resetMs": 1500}}
    change_thresholds(change)
    upstream.script(FAILED, FAILED, OK)
    assert call(gateway, lane.model).status_code == 502
    refused = call(gateway, lane.model)
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "no_route"
    assert 1 <= int(refused.headers["retry-after"]) <= 2
    assert len(upstream.requests) == 2, "both connections, and then nobody"

    def opened() -> bool:
        breakers = expect(gateway.admin.get(PATH), 200)["breakers"]
        return [one["state"] for one in breakers if one["provider"] == lane.node["id"]] == ["open"]

    # Told within two seconds, and by then it may be half open.
    eventually(lambda: call(gateway, lane.model).status_code == 200, "it is back", within_s=10)
    assert len(upstream.requests) == 3
    upstream.script(FAILED)
    change_thresholds({"ownMachineBreaker": {"resetMs": 600_000}})
    for _ in range(2):
        call(gateway, lane.model)
    eventually(opened, "the open breaker is shown", within_s=10, every_s=0.1)
    expect(gateway.admin.post(f"{PATH}/reset", json={"provider": lane.node["id"]}), 200)
    upstream.script(OK)
    assert call(gateway, lane.model).status_code == 200, "forgotten when it is answered"


@pytest.mark.one_node(
    reason="a rest is told to other workers within half a second, and the next call is made at once"
)
def test_a_model_that_is_not_there_rests_alone_and_is_told_of(
    gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream, connections=2)
    upstream.script(MISSING, OK, model="gone")
    gone, fine = f"{lane.prefix}/gone", f"{lane.prefix}/fine"
    assert call(gateway, gone).status_code == 404
    assert call(gateway, fine).status_code == 200
    assert upstream.last.bearer == lane.secrets[0], "the connection serves its other models"
    assert call(gateway, gone).status_code == 200
    assert upstream.last.bearer == lane.secrets[1], "the model is asked for elsewhere"

    def listed() -> list[dict[str, Any]]:
        cooldowns = expect(gateway.admin.get(f"{PATH}/model-cooldowns"), 200)["cooldowns"]
        return [one for one in cooldowns if one["connection"] == lane.connections[0]["id"]]

    (one,) = eventually(listed, "the cooldown is listed", within_s=10, every_s=0.1)
    assert (one["provider"], one["model"], one["failures"]) == (lane.node["id"], "gone", 1)
    body = {"provider": lane.node["id"], "model": "gone"}
    expect(gateway.admin.request("DELETE", f"{PATH}/model-cooldowns", json=body), 200)
    assert call(gateway, gone).status_code == 200
    assert upstream.last.bearer == lane.secrets[0], "in force when it is answered"
    assert eventually(lambda: not listed(), "it is listed no more", within_s=10, every_s=0.1)


# --- states that outlive a worker


def test_a_connection_without_credits_is_out_until_an_operator_mends_it(
    own: Gateway, upstream: Upstream
) -> None:
    """Over `kill -9` of the worker, and of everything; a reset or another credential brings it back."""
    lane = own.add_lane(upstream)
    connection_id = lane.connections[0]["id"]
    upstream.script(NO_CREDITS, OK)
    assert call(own, lane.model).status_code == 429
    refused = call(own, lane.model)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "no_route")
    assert "operator" in refused.json()["error"]["message"]
    assert "retry-after" not in refused.headers
    assert len(upstream.requests) == 1
    mended = becomes(own, connection_id, "terminal")
    assert (mended["stateReason"], mended["stateUntil"]) == ("credits_exhausted", None)

    kept = own.data_dir / "snapshot.json"
    eventually(lambda: b'"terminal"' in kept.read_bytes(), "it is kept", within_s=10)
    worker = own.relay
    worker.kill()

    def answers() -> bool:
        try:
            return call(own, lane.model).status_code == 503
        except httpx.HTTPError:
            return False

    eventually(lambda: not worker.is_alive() and answers(), "a new worker knows", within_s=20)
    assert len(upstream.requests) == 1
    expect(own.admin.post(f"{PATH}/reset", json={"connection": connection_id}), 200)
    assert call(own, lane.model).status_code == 200
    becomes(own, connection_id, "active")

    upstream.script(NO_CREDITS, OK)
    assert call(own, lane.model).status_code == 429
    becomes(own, connection_id, "terminal")
    fresh = {"apiKey": "sk-upstream-canary-paid"}
    own.canaries.append(fresh["apiKey"])
    expect(own.admin.put(f"/api/providers/{connection_id}", json=fresh), 200)
    assert call(own, lane.model).status_code == 200
    becomes(own, connection_id, "active")


@pytest.mark.one_node(reason="each worker counts failures for itself")
def test_a_credential_that_is_refused_again_and_again_is_given_up(
    gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream)
    upstream.script(reply({"error": {"message": "no", "code": "invalid_api_key"}}, 401))
    for _ in range(3):
        assert call(gateway, lane.model).status_code == 502
    assert call(gateway, lane.model).status_code == 503
    assert len(upstream.requests) == 3
    assert becomes(gateway, lane.connections[0]["id"], "terminal")["stateReason"] == "expired"


QUOTA = [
    ("anthropic-ratelimit-unified-5h-utilization", "1.0"),
    ("anthropic-ratelimit-unified-5h-reset", "4102444800"),
]


@pytest.mark.one_node(reason="each worker knows what providers told itself")
def test_what_headers_say_of_quotas_moves_requests_elsewhere(
    gateway: Gateway, upstream: Upstream
) -> None:
    """Every surface: a count of tokens tells as much as an answer."""
    lane = gateway.add_lane(upstream, connections=2)
    upstream.script(reply(completion(), headers=QUOTA), key=lane.secrets[0])
    assert call(gateway, lane.model).status_code == 200
    assert call(gateway, lane.model, "/v1/messages").status_code == 200
    bearers = [seen.bearer for seen in upstream.requests]
    assert bearers == [lane.secrets[0], lane.secrets[1]]
    state = becomes(gateway, lane.connections[0]["id"], "quota-exhausted")
    assert state["stateUntil"] is not None
    upstream.script(limited("30"), key=lane.secrets[1])
    assert call(gateway, lane.model).status_code == 429
    assert call(gateway, lane.model).status_code == 429
    assert len(upstream.requests) == 3


@pytest.mark.one_node(reason="each worker knows what providers told itself")
def test_headroom_goes_by_what_providers_tell(gateway: Gateway, upstream: Upstream) -> None:
    lanes = [gateway.add_lane(upstream) for _ in range(2)]
    models = [f"{lane.prefix}/m{at}" for at, lane in enumerate(lanes)]

    def told(remaining: str) -> Any:
        headers = [
            ("x-ratelimit-limit-requests", "100"),
            ("x-ratelimit-remaining-requests", remaining),
            ("x-ratelimit-reset-requests", "50s"),
        ]
        return reply(completion(), headers=headers)

    upstream.script(told("10"), model="m0")
    upstream.script(told("90"), model="m1")
    for model in models:
        assert call(gateway, model).status_code == 200
    name = f"headroom-{lanes[0].prefix}"
    combo = {"name": name, "models": models, "strategy": "headroom"}
    expect(gateway.admin.post("/api/combos", json=combo), 201)
    for _ in range(3):
        assert call(gateway, name).status_code == 200
    assert [seen.json()["model"] for seen in upstream.requests[2:]] == ["m1"] * 3


# --- pins (S16) against states


@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/v1/messages/count_tokens"])
def test_a_pin_is_held_on_every_surface(gateway: Gateway, upstream: Upstream, path: str) -> None:
    """Rules 1, 2 and 4; a count of tokens goes where its request would."""
    lane = gateway.add_lane(upstream, connections=2)
    pin = {"X-Gateway-Connection": lane.connections[1]["id"]}
    answer = call(gateway, lane.model, path, **pin)
    assert answer.status_code == 200, answer.text
    if not path.endswith("count_tokens"):
        assert upstream.last.bearer == lane.secrets[1]
    wrong = call(gateway, lane.model, path, **{"X-Gateway-Connection": "made-up"})
    assert wrong.status_code == 400


@pytest.mark.one_node(
    reason="a rest is told to other workers within half a second, and the next call is made at once"
)
def test_a_pin_falls_back_while_its_connection_rests_for_whatever_reason(
    gateway: Gateway, upstream: Upstream
) -> None:
    """Rule 3 for cooling, an empty quota and a policy's block; rule 4 for what an operator must mend."""
    cases = {
        "cooling": limited("60"),
        "quota-exhausted": reply(completion(), headers=QUOTA),
        "policy-blocked": reply(completion(), headers=[(QUOTA[0][0], "0.99"), QUOTA[1]]),
        "terminal": NO_CREDITS,
    }
    for state, script in cases.items():
        lane = gateway.add_lane(upstream, connections=2)
        pin = {"X-Gateway-Connection": lane.connections[1]["id"]}
        upstream.script(script, key=lane.secrets[1])
        call(gateway, lane.model, **pin)
        assert upstream.last.bearer == lane.secrets[1], state
        after = call(gateway, lane.model, **pin)
        if state == "terminal":
            assert after.status_code == 400, state
            assert upstream.last.bearer == lane.secrets[1]
        else:
            assert after.status_code == 200, state
            assert upstream.last.bearer == lane.secrets[0], state


# --- sessions


@pytest.mark.one_node(
    reason="where a conversation was served is told to other workers within a second, and the next turn comes at once"
)
@pytest.mark.parametrize("header", ["X-Session-Id", "x_session_id"])
def test_a_session_stays_with_its_connection_and_leaves_one_that_rests(
    gateway: Gateway, upstream: Upstream, header: str
) -> None:
    lane = gateway.add_lane(upstream, connections=2)
    upstream.script(limited("1"), OK, key=lane.secrets[0])
    session = {header: "s1"}
    # The first connection rests, so the session begins on the second; it stays there when the first is back.
    assert call(gateway, lane.model, **session).status_code == 200
    assert upstream.last.bearer == lane.secrets[1]

    def back() -> bool:
        call(gateway, lane.model)
        return upstream.last.bearer == lane.secrets[0]

    eventually(back, "the first is back", within_s=10, every_s=0.1)
    assert call(gateway, lane.model, **session).status_code == 200
    assert upstream.last.bearer == lane.secrets[1]
    # A pin goes before a session.
    pin = {"X-Gateway-Connection": lane.connections[0]["id"]}
    assert call(gateway, lane.model, **session, **pin).status_code == 200
    assert upstream.last.bearer == lane.secrets[0]
    upstream.script(limited("60"), key=lane.secrets[0])
    call(gateway, lane.model, **session)
    assert call(gateway, lane.model, **session).status_code == 200
    assert upstream.last.bearer == lane.secrets[1]


def test_what_is_told_of_states_keeps_secrets(gateway: Gateway) -> None:
    told = json.dumps(
        [
            expect(gateway.admin.get(path), 200)
            for path in (PATH, f"{PATH}/model-cooldowns", "/api/monitoring/health")
        ]
    )
    assert not [canary for canary in gateway.canaries if canary in told]

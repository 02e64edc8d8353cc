"""Connections that are leased to one session, with real processes: who gets in meanwhile, and when a lease is lost."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.chat import CHAT
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Upstream, completion, reply

PATH = "/v1/session-leases"
OWNER = "X-Gateway-Lease-Owner"
GENERATION = "X-Gateway-Lease-Generation"
OK = reply(completion())


class Session:
    """A session with a secret name and a key that may lease."""

    def __init__(self, gateway: Gateway, **fields: Any) -> None:
        made = gateway.create_key(**{"scopes": ["lease:exclusive"], **fields})
        assert not [each for each in made["ineffective"] if each.startswith("scopes")]
        self.key = made["key"]
        self.owner = f"vlo_{secrets.token_urlsafe(32)}"
        self.http = gateway.client(headers={"Authorization": f"Bearer {self.key}"})

    def ask(self, action: str, **fields: Any) -> httpx.Response:
        return self.http.post(PATH, json={"action": action, **fields}, headers={OWNER: self.owner})

    def acquire(self, lane: Lane) -> dict[str, Any]:
        told: dict[str, Any] = expect(self.ask("acquire", model=lane.model), 200)
        return told

    def call(self, lane: Lane, generation: Any, **fields: Any) -> httpx.Response:
        headers = {OWNER: self.owner, GENERATION: str(generation)}
        return self.http.post(CHAT, json=lane.body(**fields), headers=headers)


@pytest.fixture
def lane(gateway: Gateway, upstream: Upstream) -> Lane:
    upstream.script(OK)
    return gateway.add_lane(upstream, connections=2)


def asked(lane: Lane) -> list[int]:
    credentials = [f"Bearer {secret}" for secret in lane.secrets]
    return [credentials.index(str(each.header("authorization"))) for each in lane.upstream.requests]


def test_a_leased_connection_is_one_sessions_alone(gateway: Gateway, lane: Lane) -> None:
    session = Session(gateway)
    lease = session.acquire(lane)
    assert (lease["state"], lease["ttlSeconds"], lease["renewAfterSeconds"]) == ("ACTIVE", 120, 30)
    assert [session.call(lane, lease["generation"]).status_code for _ in range(3)] == [200] * 3
    mine = set(asked(lane))
    assert len(mine) == 1
    before = len(lane.upstream.requests)
    for _ in range(3):
        assert gateway.caller.post(CHAT, json=lane.body()).status_code == 200
    assert not mine & set(asked(lane)[before:]), "others go over the other connection"
    again = session.acquire(lane)
    assert again["generation"] == lease["generation"], "a session has one lease"
    released = expect(session.ask("release", generation=lease["generation"], reason="done"), 200)
    assert released["state"] == "RELEASED"
    assert expect(session.ask("status"), 200)["state"] == "NONE"
    stale = session.call(lane, lease["generation"])
    assert (stale.status_code, stale.json()["error"]["code"]) == (409, "LEASE_FENCE_STALE")
    for action in ("renew", "release"):
        stale = session.ask(action, generation=lease["generation"])
        assert (stale.status_code, stale.json()["error"]["code"]) == (409, "LEASE_FENCE_STALE")


def test_who_comes_late_is_told_when_and_others_find_no_connection(
    gateway: Gateway, lane: Lane
) -> None:
    first, second, third = (Session(gateway) for _ in range(3))
    leases = [first.acquire(lane), second.acquire(lane)]
    assert leases[1]["generation"] > leases[0]["generation"]
    late = third.ask("acquire", model=lane.model)
    assert late.status_code == 429, late.text
    told = late.json()
    assert (told["state"], told["error"]["code"], told["error"]["type"]) == (
        "WAITING_FOR_CAPACITY",
        "LEASE_CAPACITY_UNAVAILABLE",
        "lease_error",
    )
    assert told["retryAfter"] == int(late.headers["retry-after"]) == 30
    refused = gateway.caller.post(CHAT, json=lane.body())
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "LEASE_CAPACITY_UNAVAILABLE"
    assert "retry-after" in refused.headers
    combo = f"c{secrets.token_hex(4)}"
    body = {"name": combo, "models": [lane.model]}
    expect(gateway.admin.post("/api/combos", json=body), 201)
    refused = gateway.caller.post(CHAT, json=lane.body(model=combo))
    assert refused.json()["error"]["code"] == "LEASE_CAPACITY_UNAVAILABLE"
    before = len(lane.upstream.requests)
    assert second.call(lane, leases[1]["generation"], model=combo).status_code == 200
    assert second.call(lane, leases[1]["generation"]).status_code == 200
    assert len(set(asked(lane)[before:])) == 1, "a combo keeps to the lease as well"
    expect(first.ask("release", generation=leases[0]["generation"]), 200)
    assert third.acquire(lane)["generation"] > leases[1]["generation"]
    expect(second.ask("renew", generation=leases[1]["generation"]), 200)


def test_fifty_at_once_get_as_many_leases_as_there_are_connections(
    gateway: Gateway, lane: Lane
) -> None:
    session = Session(gateway)
    owners = [f"vlo_{secrets.token_urlsafe(32)}" for _ in range(50)]

    def acquire(owner: str) -> int:
        body = {"action": "acquire", "model": lane.model}
        return session.http.post(PATH, json=body, headers={OWNER: owner}).status_code

    with ThreadPoolExecutor(20) as pool:
        statuses = list(pool.map(acquire, owners))
    assert sorted(statuses) == [200, 200] + [429] * 48


def test_what_is_wrong_is_refused_and_changes_nothing(gateway: Gateway, lane: Lane) -> None:
    session = Session(gateway)
    for fields, param in (
        ({"action": "take"}, "action"),
        ({"action": "acquire"}, "model"),
        ({"action": "acquire", "model": lane.model, "ttl": 9}, "ttl"),
        ({"action": "renew"}, "generation"),
        ({"action": "release", "generation": "1"}, "generation"),
        ({"action": "renew", "generation": 0}, "generation"),
    ):
        refused = session.http.post(PATH, json=fields, headers={OWNER: session.owner})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param), fields
    unknown = session.ask("acquire", model="nobody/m")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
    for owner in (None, "vlo_short", "x" * 47):
        headers = {} if owner is None else {OWNER: owner}
        body = {"action": "acquire", "model": lane.model}
        refused = session.http.post(PATH, json=body, headers=headers)
        assert refused.status_code == 400, refused.text
        assert refused.json()["error"]["param"] == OWNER.lower()
    for headers, param in (
        ({OWNER: session.owner}, GENERATION.lower()),
        ({GENERATION: "1"}, OWNER.lower()),
        ({OWNER: session.owner, GENERATION: "one"}, GENERATION.lower()),
    ):
        refused = session.http.post(CHAT, json=lane.body(), headers=headers)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
    stranger = gateway.caller.post(
        PATH, json={"action": "acquire", "model": lane.model}, headers={OWNER: session.owner}
    )
    assert (stranger.status_code, stranger.json()["error"]["param"]) == (403, "scopes")
    other = Session(gateway)
    lease = session.acquire(lane)
    other.owner = session.owner
    stolen = other.call(lane, lease["generation"])
    assert stolen.status_code == 409, "the name counts with its own key alone"


def test_a_key_leases_what_it_may_use(gateway: Gateway, lane: Lane) -> None:
    barred = Session(gateway, modelAccessMode="restricted", allowedModels=["other/*"])
    assert barred.ask("acquire", model=lane.model).status_code in (403, 404)
    second = lane.connections[1]["id"]
    narrow = Session(gateway, connectionAccessMode="restricted", allowedConnections=[second])
    lease = narrow.acquire(lane)
    assert narrow.call(lane, lease["generation"]).status_code == 200
    assert asked(lane)[-1] == 1

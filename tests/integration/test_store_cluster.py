"""Two relay workers over a cluster of Redis servers: limits, idempotency keys and kept answers, and a server that is
replaced by its replica while calls are made.
"""

from __future__ import annotations

import ssl
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect, start_gateway
from tests.support.shared_store import PASSWORD
from tests.support.side_work import SideWork
from tests.support.store_cluster import StoreCluster, store_cluster
from tests.support.upstream import Upstream, completion, reply

EPOCH = "fairlead:2:{limits}:epoch"
PRICES = {"m": {"input": 0, "output": 1000}}
TOKENS_OUT = 3
# 1,000 USD for a million output tokens: an answer of three costs 3,000 micro-dollars.
COST_USD = 0.003
CLIENTS = 8
LEASE_MS = 3_000
# Made once: reading the system's authorities takes longer than a call.
TLS = ssl.create_default_context()


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, StoreCluster]]:
    folder = tmp_path_factory.mktemp("clustered")
    with store_cluster(folder / "store", replicas=1) as store:
        settings = {"FAIRLEAD_SHARED_URL": store.url, "FAIRLEAD_FRONT": "native"}
        settings["FAIRLEAD_SHARED_LEASE_MS"] = str(LEASE_MS)
        with start_gateway(folder, "--workers", "2", **settings) as gateway:
            gateway.canaries.append(PASSWORD)
            yield gateway, store


def ask(
    gateway: Gateway, lane: Lane, key: str, *, once: str | None = None, **fields: Any
) -> httpx.Response:
    """One call over a connection of its own, which is either worker's."""
    headers = {"authorization": f"Bearer {key}"} | ({"idempotency-key": once} if once else {})
    body = lane.body(max_tokens=TOKENS_OUT) | fields
    return httpx.post(
        gateway.url + CHAT, json=body, headers=headers, trust_env=False, verify=TLS, timeout=30
    )


def flood(gateway: Gateway, lane: Lane, key: str, calls: int) -> Counter[Any]:
    def once(_: int) -> tuple[int, str]:
        answer = ask(gateway, lane, key)
        code = "" if answer.status_code == 200 else str(answer.json()["error"]["code"])
        return answer.status_code, code

    with ThreadPoolExecutor(CLIENTS) as pool:
        return Counter(pool.map(once, range(calls)))


def limited(gateway: Gateway, requests: int) -> str:
    limits = [{"limit": requests, "window": 86_400}]
    return str(gateway.create_key(name="limited", rateLimits=limits)["key"])


def priced(gateway: Gateway, upstream: Upstream) -> Lane:
    lane = gateway.add_lane(upstream, connections=0)
    secret = f"sk-upstream-canary-{lane.prefix}"
    prices = {"providerSpecificData": {"prices": PRICES}}
    lane.connections.append(gateway.add_connection(lane.node["id"], secret, **prices))
    upstream.script(reply(completion(tokens_in=7, tokens_out=TOKENS_OUT)), key=secret)
    return lane


def test_workers_go_together_over_a_cluster(
    clustered: tuple[Gateway, StoreCluster], upstream: Upstream
) -> None:
    gateway, _ = clustered
    lane = gateway.add_lane(upstream)
    upstream.script(reply(completion(tokens_in=7, tokens_out=TOKENS_OUT)))
    key = limited(gateway, 60)
    total: Counter[Any] = Counter()
    for _ in range(3):
        total += flood(gateway, lane, key, 40)
    assert total[200, ""] == 60, total
    free = str(gateway.create_key(name="free")["key"])
    before = len(upstream.requests)
    for number in range(4):
        told = ask(gateway, lane, free, once=f"k{number}")
        time.sleep(0.1)
        answers = [ask(gateway, lane, free, once=f"k{number}") for _ in range(4)]
        assert {answer.content for answer in answers} == {told.content}
    assert len(upstream.requests) == before + 4, "each once, at whichever worker"
    tiers: Counter[str] = Counter()
    for number in range(8):
        question: dict[str, Any] = {
            "temperature": 0,
            "messages": [{"role": "user", "content": f"q{number}"}],
        }
        ask(gateway, lane, free, **question)
        time.sleep(0.1)
        for _ in range(3):
            answer = ask(gateway, lane, free, **question)
            tiers[answer.headers["x-gateway-cache-tier"]] += 1
    assert len(upstream.requests) == before + 12, "each once, at whichever worker"
    assert tiers["shared"] >= 1, tiers
    removed = expect(gateway.admin.delete("/api/cache/stats"), 200)
    assert removed["shared"] == 8, "they lie at all servers"


@pytest.mark.slow
def test_limits_and_money_hold_while_their_slot_moves(
    clustered: tuple[Gateway, StoreCluster], upstream: Upstream
) -> None:
    """From server to server, key by key, over and over. Another server counts as one that may not know of the last
    leases: money waits for as long as these are good.
    """
    gateway, store = clustered
    lane = priced(gateway, upstream)
    allowed = 300
    money = {"usageLimitEnabled": True, "dailyUsageLimitUsd": allowed * COST_USD}
    paid, counted = str(gateway.create_key(**money)["key"]), limited(gateway, allowed)
    free = str(gateway.create_key(name="free")["key"])
    totals: dict[str, Counter[Any]] = {paid: Counter(), counted: Counter(), free: Counter()}
    moves = 0

    def move() -> None:
        nonlocal moves
        while not mover.is_over.wait(1.5 * LEASE_MS / 1000):
            store.move_slot_of(EPOCH)
            moves += 1

    def all_is_used() -> bool:
        for key, total in totals.items():
            total.update(flood(gateway, lane, key, 40))
        return (
            totals[paid][200, ""] >= allowed * 0.99 and totals[counted][200, ""] >= allowed * 0.99
        )

    with SideWork() as mover:
        mover.begin(move)
        eventually(all_is_used, "what the limits allow is used", within_s=90, every_s=0.05)
        eventually(lambda: moves >= 4, "the slot has moved more than once round", within_s=30)
        for key, total in totals.items():
            total.update(flood(gateway, lane, key, 100))
    assert totals[paid][200, ""] <= allowed, totals
    assert totals[counted][200, ""] <= allowed * 1.01, totals
    assert set(totals[free]) == {(200, "")}, "keys without limits notice nothing"
    # What is left is told to the new server by all within two seconds; until then a lease without room says so.
    unknown = (503, "limits_unknown")
    assert set(totals[counted]) <= {(200, ""), (429, "rate_limited"), unknown}, totals
    assert set(totals[paid]) <= {(200, ""), (429, "budget_exceeded"), unknown}, totals

    def is_let_through() -> bool:
        fresh = str(gateway.create_key(**money)["key"])
        return flood(gateway, lane, fresh, 16) == {(200, ""): 16}

    eventually(is_let_through, "money is let through again", within_s=5 * LEASE_MS / 1000)


@pytest.mark.slow
def test_a_server_that_is_replaced_by_its_replica_lets_no_money_over(
    clustered: tuple[Gateway, StoreCluster], upstream: Upstream
) -> None:
    gateway, store = clustered
    lane = priced(gateway, upstream)
    affordable = 400
    money = {"usageLimitEnabled": True, "dailyUsageLimitUsd": affordable * COST_USD}
    key = str(gateway.create_key(**money)["key"])
    free = str(gateway.create_key(name="free")["key"])
    total = flood(gateway, lane, key, 150)
    assert total[200, ""] == 150, total
    gone = store.primary_of(EPOCH)
    gone.stop()
    began = time.monotonic()
    alone = flood(gateway, lane, free, 100)
    assert alone == {(200, ""): 100}, "keys without limits notice nothing"
    during = flood(gateway, lane, key, 100)
    assert set(during) <= {(200, ""), (503, "limits_unknown"), (429, "budget_exceeded")}, during
    total += during

    def is_back() -> bool:
        found = flood(gateway, lane, key, 16)
        total.update(found)
        return found[200, ""] == 16 or (429, "budget_exceeded") in found

    eventually(is_back, "money is let through again", within_s=40, every_s=0.5)
    assert time.monotonic() - began < 60
    taken = store.primary_of(EPOCH)
    assert taken is not gone
    for _ in range(40):
        total += flood(gateway, lane, key, 32)
    assert total[200, ""] <= affordable, total
    assert total[200, ""] >= affordable * 0.9, total

"""Two nodes of two relay workers on one PostgreSQL and one Redis, behind HAProxy: what a caller sees is one gateway.

`pytest --store cluster` runs the tests of one gateway over such an instance. Here is what only several
workers can break.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support.balanced import BalancedGateway, start_balanced
from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import Lane, expect
from tests.support.tls import NO_AUTHORITIES
from tests.support.upstream import (
    DONE,
    SSE_HEAD,
    STALL,
    Gate,
    Upstream,
    chunk,
    completion,
    delta,
    finish,
    reply,
    stream,
)

if TYPE_CHECKING:
    from tests.support.postgresql import PostgresqlServer

CLIENTS = 8
# 1,000 USD for a million output tokens: an answer of three costs 3,000 micro-dollars.
PRICES = {"m": {"input": 0, "output": 1000}}
TOKENS_OUT = 3
COST_USD = 0.003


@pytest.fixture(scope="module")
def instance(
    postgresql: PostgresqlServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BalancedGateway]:
    with start_balanced(tmp_path_factory.mktemp("balanced")) as running:
        yield running
        running.assert_keeps_secrets()


@pytest.fixture
def lane(instance: BalancedGateway, upstream: Upstream) -> Lane:
    """A lane whose model has a price."""
    made = instance.add_lane(upstream, connections=0)
    secret = f"sk-upstream-canary-{made.prefix}"
    prices = {"providerSpecificData": {"prices": PRICES}}
    made.connections.append(instance.add_connection(made.node["id"], secret, **prices))
    upstream.script(reply(completion(tokens_in=7, tokens_out=TOKENS_OUT)))
    return made


def ask(
    instance: BalancedGateway, body: dict[str, Any], key: str, path: str = CHAT, **headers: str
) -> httpx.Response:
    """One call over a connection of its own, which is any worker's of either node."""
    return httpx.post(
        instance.url + path,
        json=body,
        headers={"Authorization": f"Bearer {key}", "Cache-Control": "no-store", **headers},
        trust_env=False,
        verify=NO_AUTHORITIES,
        timeout=30,
    )


def flood(instance: BalancedGateway, lane: Lane, key: str, calls: int) -> Counter[Any]:
    """Status and code of so many calls by several clients at once."""

    def once(_: int) -> tuple[int, str]:
        answer = ask(instance, lane.body(max_tokens=TOKENS_OUT), key)
        code = "" if answer.status_code == 200 else str(answer.json()["error"]["code"])
        return answer.status_code, code

    with ThreadPoolExecutor(CLIENTS) as pool:
        return Counter(pool.map(once, range(calls)))


def test_a_key_is_in_force_when_its_write_has_answered_and_not_after(
    instance: BalancedGateway, lane: Lane
) -> None:
    before = instance.balancer.served()
    for _ in range(3):
        made = instance.admin.post("/api/keys", json={"name": "shared"})
        key = expect(made, 201)
        instance.canaries.append(key["key"])
        assert flood(instance, lane, key["key"], 12) == {(200, ""): 12}
        gone = instance.admin.delete(f"/api/keys/{key['id']}")
        assert gone.is_success, gone.text
        assert [answer.headers.get("x-gateway-snapshot") for answer in (made, gone)] == [None] * 2
        assert flood(instance, lane, key["key"], 12) == {(401, "unauthenticated"): 12}
    after = instance.balancer.served()
    assert all(after[node] >= before[node] + 10 for node in ("one", "two")), (before, after)


def test_limits_of_requests_and_money_are_held_over_all_workers(
    instance: BalancedGateway, lane: Lane
) -> None:
    limits = [{"limit": 25, "window": 86_400}]
    counted = str(instance.create_key(name="counted", rateLimits=limits)["key"])
    money = {"usageLimitEnabled": True, "dailyUsageLimitUsd": 20 * COST_USD}
    paid = str(instance.create_key(name="paid", **money)["key"])
    found = flood(instance, lane, counted, 60)
    assert found == {(200, ""): 25, (429, "rate_limited"): 35}
    spent: Counter[Any] = Counter()

    def is_spent() -> bool:
        # What a worker has leased and does not use is another's a second later.
        spent.update(flood(instance, lane, paid, 16))
        return spent[200, ""] >= 20

    eventually(is_spent, "the budget is spent", within_s=15)
    spent.update(flood(instance, lane, paid, 24))
    assert spent[200, ""] == 20, spent
    assert set(spent) == {(200, ""), (429, "budget_exceeded")}


@pytest.mark.parametrize("path", [CHAT, "/v1/responses"])
def test_one_idempotency_key_is_one_call(instance: BalancedGateway, lane: Lane, path: str) -> None:
    """At whichever worker it is repeated, also where the answer is worked on in the background."""
    key = instance.create_key(name="once")["key"]
    body: dict[str, Any] = lane.body()
    if path != CHAT:
        lane.upstream.script(stream(delta("once"), finish(), DONE))
        body = {"model": lane.model, "input": "hi", "background": True}
    for number in range(3):
        headers = {"Idempotency-Key": f"once-{number}"}
        first = expect(ask(instance, body, key, path, **headers), 200)

        def repeated(first: Any = first, headers: dict[str, str] = headers) -> bool:
            # Where it is repeated before its end is known, it is said to be under way.
            answers = [ask(instance, body, key, path, **headers) for _ in range(6)]
            assert {answer.status_code for answer in answers} <= {200, 409}
            assert all(each.json() == first for each in answers if each.status_code == 200)
            return all(each.status_code == 200 for each in answers)

        eventually(repeated, "everybody has the one answer", within_s=4)
    eventually(lambda: len(lane.upstream.requests) == 3, "each was called once")


def test_a_caller_that_leaves_ends_its_call(instance: BalancedGateway, lane: Lane) -> None:
    gate = Gate()
    lane.upstream.script([SSE_HEAD, chunk(delta("one")), gate, STALL])
    with (
        instance.client(headers={"Authorization": f"Bearer {instance.key}"}) as caller,
        caller.stream("POST", CHAT, json=lane.body(stream=True)) as answer,
    ):
        assert answer.status_code == 200
        next(answer.iter_raw())
        gate.open()
    eventually(lambda: lane.upstream.last.gone_at, "the provider's call ends", within_s=3)


def test_usage_is_shown_by_both_nodes(instance: BalancedGateway, lane: Lane) -> None:
    key = instance.create_key(name="used")
    flood(instance, lane, key["key"], 10)
    for node in instance.nodes:
        eventually(
            lambda node=node: len(node.shown_records(model=lane.model)) == 10,
            "each request is shown once",
            within_s=20,
            every_s=0.1,
        )

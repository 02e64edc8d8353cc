"""What relay workers of two nodes tell each other over one Redis: idempotency keys, kept answers, rests of connections,
models that are locked out, places of sessions.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import FRONTS, Gateway, Lane, expect, start_gateway
from tests.support.prometheus import read_metrics
from tests.support.raw import RawClient
from tests.support.shared_store import PASSWORD, SharedStore, shared_store
from tests.support.tls import NO_AUTHORITIES
from tests.support.upstream import (
    Gate,
    Upstream,
    completion,
    delta,
    finish,
    reply,
    stream,
)

if TYPE_CHECKING:
    from tests.support.postgresql import PostgresqlServer

KEY = "bm9kZXMgb2Ygb25lIGRhdGFiYXNlIHNoYXJlIGEga2U="
Pair = tuple[Gateway, Gateway]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedStore]:
    with shared_store(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture(scope="module")
def pair(
    postgresql: PostgresqlServer, store: SharedStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    url = postgresql.migrated()
    settings = {
        "FAIRLEAD_DATABASE_URL": url,
        "FAIRLEAD_SECRET_KEY": KEY,
        "FAIRLEAD_SHARED_URL": store.url,
    }
    folder = tmp_path_factory.mktemp("pair")
    with contextlib.ExitStack() as stack:
        first, second = (
            stack.enter_context(start_gateway(folder, **settings, FAIRLEAD_FRONT=front))
            for front in FRONTS
        )
        for gateway in (first, second):
            gateway.canaries.append(PASSWORD)
        yield first, second
    postgresql.drop(url)


def ask(
    gateway: Gateway,
    key: str,
    body: dict[str, Any],
    *,
    once: str | None = None,
    session: str | None = None,
) -> httpx.Response:
    headers = {"authorization": f"Bearer {key}"}
    headers |= {"idempotency-key": once} if once else {}
    headers |= {"x-session-id": session} if session else {}
    return httpx.post(
        f"{gateway.url}{CHAT}", json=body, headers=headers, timeout=30, verify=NO_AUTHORITIES
    )


def test_a_request_that_is_repeated_at_another_node_gets_the_first_ones_answer(
    pair: Pair, upstream: Upstream
) -> None:
    first, second = pair
    lane, key = first.add_lane(upstream), first.create_key(name="once")["key"]
    upstream.script(reply(completion("first")), reply(completion("second")))
    told = ask(first, key, lane.body(), once="k1")

    def repeated() -> httpx.Response | None:
        # The answer is on its way to the store when the caller has it.
        answer = ask(second, key, lane.body(), once="k1")
        return answer if answer.status_code != 409 else None

    again = eventually(repeated, "the answer is kept", within_s=3)
    assert again.status_code == 200, again.text
    assert again.json() == told.json()
    assert again.headers["x-gateway-idempotent"] == "true"
    assert again.headers["x-gateway-request-id"] != told.headers["x-gateway-request-id"]
    assert len(upstream.requests) == 1
    other = ask(second, key, lane.body(temperature=0.5), once="k1")
    assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")
    stranger = first.create_key(name="stranger")["key"]
    assert ask(second, stranger, lane.body(), once="k1").json() != told.json()
    assert len(upstream.requests) == 2
    record = second.record(again.headers["x-gateway-request-id"])
    assert (record["outcome"], record["attempts"], record["model"]) == ("completed", 0, lane.model)


def test_a_form_that_is_repeated_at_another_node_is_recorded_with_its_model(
    pair: Pair, upstream: Upstream
) -> None:
    first, second = pair
    lane, key = first.add_lane(upstream), first.create_key(name="forms")["key"]
    upstream.script(reply({"text": "words"}))

    def send(gateway: Gateway) -> httpx.Response:
        return httpx.post(
            f"{gateway.url}/v1/audio/transcriptions",
            data={"model": lane.model},
            files={"file": ("a.wav", b"x" * 99)},
            headers={"authorization": f"Bearer {key}", "idempotency-key": "f1"},
            timeout=30,
            verify=NO_AUTHORITIES,
        )

    told = expect(send(first), 200)

    def repeated() -> httpx.Response | None:
        answer = send(second)
        return answer if answer.status_code != 409 else None

    again = eventually(repeated, "the answer is kept", within_s=3)
    assert (again.status_code, again.json(), len(upstream.requests)) == (200, told, 1)
    record = second.record(again.headers["x-gateway-request-id"])
    assert (record["outcome"], record["attempts"], record["model"]) == ("completed", 0, lane.model)


def test_a_stream_is_repeated_whole(pair: Pair, upstream: Upstream) -> None:
    first, second = pair
    lane, key = first.add_lane(upstream), first.create_key(name="streams")["key"]
    upstream.script(stream(delta("hel"), delta("lo"), finish()))
    body = lane.body(stream=True)
    told = ask(second, key, body, once="s1").text

    def repeated() -> str | None:
        answer = ask(first, key, body, once="s1")
        return answer.text if answer.status_code == 200 else None

    assert eventually(repeated, "the answer is kept", within_s=3) == told
    assert "[DONE]" in told
    assert len(upstream.requests) == 1


def fixed(lane: Lane, say: str, **fields: Any) -> dict[str, Any]:
    """A body whose answer is kept."""
    return lane.body(temperature=0, messages=[{"role": "user", "content": say}]) | fields


def lookups(gateway: Gateway, result: str) -> float:
    text = httpx.get(
        f"{gateway.url}/metrics", trust_env=False, timeout=20, verify=NO_AUTHORITIES
    ).text
    family = read_metrics(text).get("fairlead_shared_cache_lookups_total")
    return family.value(result=result) if family else 0.0


def left(store: SharedStore) -> int:
    """Kept answers in the store."""
    told = store.ask("EVAL", "return #redis.call('KEYS', 'fairlead:1:answer:*')", "0")
    assert told is not None
    return int(told.removeprefix(":"))


def test_an_answer_that_one_node_keeps_is_given_by_the_other(
    pair: Pair, store: SharedStore, upstream: Upstream
) -> None:
    first, second = pair
    lane, key = first.add_lane(upstream), first.create_key(name="kept")["key"]
    stranger = first.create_key(name="stranger of answers")["key"]
    upstream.script(reply(completion("first")), reply(completion("second")))
    before = left(store)
    told = ask(first, key, fixed(lane, "kept?"))
    assert told.headers["x-gateway-cache"] == "MISS"
    eventually(lambda: left(store) == before + 1, "it is left in the store", within_s=5)
    found = ask(second, key, fixed(lane, "kept?"))
    assert (found.headers["x-gateway-cache-tier"], found.content) == ("shared", told.content)
    streamed = ask(first, key, fixed(lane, "kept?", stream=True))
    assert streamed.headers["x-gateway-cache-tier"] == "exact"
    again = ask(second, key, fixed(lane, "kept?"))
    assert again.headers["x-gateway-cache-tier"] == "exact", "it is kept here, too"
    assert len(upstream.requests) == 1
    assert ask(second, stranger, fixed(lane, "kept?")).content != told.content
    assert len(upstream.requests) == 2
    eventually(lambda: lookups(second, "hit") >= 1, "it is counted", within_s=10)

    record = second.record(found.headers["x-gateway-request-id"])
    assert (record["cache"], record["cacheKind"], record["attempts"]) == ("hit", "shared", 0)


@pytest.mark.parametrize(
    ("off", "on"),
    [
        ({"semanticCacheEnabled": False}, {"semanticCacheEnabled": True}),
        ({"semanticCacheSharedMb": 0}, {"semanticCacheSharedMb": 64}),
    ],
)
def test_what_is_switched_off_forgets_what_was_kept_before(
    pair: Pair, store: SharedStore, upstream: Upstream, off: dict[str, Any], on: dict[str, Any]
) -> None:
    first, second = pair
    lane, key = first.add_lane(upstream), first.create_key(name="off and on")["key"]
    upstream.script(*(reply(completion(f"{number}")) for number in range(3)))
    before = left(store)
    told = ask(first, key, fixed(lane, "kept?"))
    eventually(lambda: left(store) == before + 1, "it is left in the store", within_s=5)
    expect(second.admin.patch("/api/settings", json=off), 200)
    expect(first.admin.patch("/api/settings", json=on), 200)
    again = ask(second, key, fixed(lane, "kept?"))
    assert (again.headers["x-gateway-cache"], again.content != told.content) == ("MISS", True)


def test_what_is_forgotten_at_one_node_is_forgotten_everywhere(
    pair: Pair, store: SharedStore, upstream: Upstream
) -> None:
    first, second = pair
    lane, key = first.add_lane(upstream), first.create_key(name="forgotten")
    upstream.script(*(reply(completion(f"{number}")) for number in range(8)))
    before = left(store)
    told = {say: ask(first, key["key"], fixed(lane, say)).content for say in ("a", "b")}
    eventually(lambda: left(store) == before + 2, "they are left in the store", within_s=5)
    found = ask(second, key["key"], fixed(lane, "a"))
    assert found.headers["x-gateway-cache-tier"] == "shared"
    removed = expect(first.admin.delete("/api/cache/entries", params={"keyId": key["id"]}), 200)
    assert removed == {"removed": 2, "shared": 2}
    assert left(store) == before

    def is_new(say: str) -> bool:
        return ask(second, key["key"], fixed(lane, say)).content != told[say]

    assert is_new("b"), "the store has it no more"
    eventually(lambda: is_new("a"), "nor has the other node, which had found it", within_s=3)
    eventually(lambda: left(store) > before, "they are left in the store", within_s=5)
    expect(second.admin.delete("/api/cache/stats"), 200)
    assert left(store) == 0


def test_nothing_is_left_for_others_of_a_key_that_keeps_no_log(
    pair: Pair, store: SharedStore, upstream: Upstream
) -> None:
    first, second = pair
    lane = first.add_lane(upstream)
    key = first.create_key(name="silent", noLog=True)["key"]
    upstream.script(reply(completion("first")), reply(completion("second")))
    before, looked = left(store), lookups(second, "miss")
    told = ask(first, key, fixed(lane, "silent?"))
    assert ask(second, key, fixed(lane, "silent?")).content != told.content
    declined = httpx.post(
        f"{second.url}{CHAT}",
        json=fixed(lane, "declined?"),
        headers={"authorization": f"Bearer {key}", "x-gateway-no-cache": "true"},
        timeout=30,
        verify=NO_AUTHORITIES,
    )
    assert declined.status_code == 200
    assert (left(store), lookups(second, "miss")) == (before, looked)


def test_a_store_that_hangs_costs_a_moment_and_is_then_left_alone(
    pair: Pair, store: SharedStore, upstream: Upstream
) -> None:
    first, _ = pair
    lane, key = first.add_lane(upstream), first.create_key(name="hangs")["key"]
    upstream.script(*(reply(completion(f"{number}")) for number in range(40)))
    ask(first, key, fixed(lane, "warm"))
    store.pause()
    try:
        began = time.monotonic()
        for number in range(20):
            assert ask(first, key, fixed(lane, f"{number}")).status_code == 200
        took_s = time.monotonic() - began
        # One lookup is late by 50 ms, and one a second after it; not each.
        assert took_s < 20 * 0.05 + 1, took_s
        refused = first.admin.delete("/api/cache/entries", params={"model": "a/b"}, timeout=30)
        assert refused.status_code == 503, "what is there cannot be forgotten"
    finally:
        store.resume()
    eventually(lambda: lookups(first, "failed") >= 1, "it is counted", within_s=10)

    def is_shared() -> bool:
        say = f"{time.monotonic_ns()}"
        before = left(store)
        ask(first, key, fixed(lane, say))
        time.sleep(0.2)
        return left(store) > before

    eventually(is_shared, "they go together again", within_s=40)


@pytest.mark.parametrize("streamed", (False, True))
def test_a_request_that_is_under_way_elsewhere_is_waited_for(
    pair: Pair, upstream: Upstream, streamed: bool
) -> None:
    first, second = pair
    lane, key = first.add_lane(upstream), first.create_key(name="under way")["key"]
    gate, once = Gate(), f"u-{streamed}"
    script = stream(delta("late"), finish()) if streamed else reply(completion("late"))
    upstream.script([gate, *script], reply({"error": {"message": "asked twice"}}, 500))
    body = lane.body(stream=streamed)
    with ThreadPoolExecutor(3) as threads:
        asked = threads.submit(ask, first, key, body, once=once)
        eventually(lambda: upstream.requests, "the provider has the request")
        repeated = [threads.submit(ask, second, key, body, once=once) for _ in range(2)]
        with pytest.raises(TimeoutError):
            repeated[0].result(0.5)
        other = ask(second, key, lane.body(temperature=0.5), once=once)
        assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")
        gate.open()
        answer = asked.result()
        assert answer.status_code == 200
        for again in (each.result() for each in repeated):
            assert (again.status_code, again.content) == (200, answer.content)
            assert again.headers["x-gateway-idempotent"] == "true"
    assert len(upstream.requests) == 1


def test_a_request_whose_first_caller_left_elsewhere_is_done_by_who_waits(
    pair: Pair, upstream: Upstream
) -> None:
    first, second = pair
    lane, key = first.add_lane(upstream), first.create_key(name="left")["key"]
    gate = Gate()
    upstream.script([gate, *reply(completion("never"))], reply(completion("done")))
    with ThreadPoolExecutor(1) as threads, RawClient(first.port) as leaving:
        headers = [("authorization", f"Bearer {key}"), ("idempotency-key", "l1")]
        leaving.request(
            "POST", CHAT, headers, json.dumps(lane.body(), separators=(",", ":")).encode()
        )
        eventually(lambda: upstream.requests, "the provider has the request")
        repeated = threads.submit(ask, second, key, lane.body(), once="l1")
        with pytest.raises(TimeoutError):
            repeated.result(0.3)
        leaving.close()
        answer = repeated.result()
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "done"
    assert len(upstream.requests) == 2
    gate.open()


def test_a_request_that_failed_is_done_anew_at_another_node(pair: Pair, upstream: Upstream) -> None:
    first, second = pair
    lane, key = first.add_lane(upstream), first.create_key(name="failed")["key"]
    upstream.script(reply({"error": {"message": "no"}}, status=400), reply(completion("done")))
    assert ask(first, key, lane.body(), once="f1").status_code == 400

    def done() -> bool:
        return ask(second, key, lane.body(), once="f1").status_code == 200

    eventually(done, "the claim is given up", within_s=3)
    assert len(upstream.requests) == 2


def test_a_limit_that_one_node_met_holds_at_the_other(pair: Pair, upstream: Upstream) -> None:
    """One model of a connection rests; when two are limited the connection does."""
    first, second = pair
    lane, key = first.add_lane(upstream), first.create_key(name="rests")["key"]
    limited = reply({"error": {"message": "slow"}}, status=429, headers=[("Retry-After", "30")])
    upstream.script(limited)
    assert ask(first, key, lane.body()).status_code == 429
    (connection,) = lane.connections

    def state_at(gateway: Gateway) -> str:
        found = expect(gateway.admin.get(f"/api/providers/{connection['id']}"), 200)
        return str((found.get("connection") or found).get("state"))

    time.sleep(1)
    asked = len(upstream.requests)
    answer = ask(second, key, lane.body())
    assert answer.status_code in {429, 503}, answer.text
    assert len(upstream.requests) == asked, "the other node does not ask it either"
    other = {**lane.body(), "model": f"{lane.prefix}/other"}
    assert ask(first, key, other).status_code == 429
    eventually(lambda: state_at(second) == "cooling", "it is shown", within_s=10)


def test_a_model_that_is_locked_out_at_one_node_is_so_at_the_other(
    pair: Pair, upstream: Upstream
) -> None:
    first, second = pair
    lane = first.add_lane(upstream, connections=2)
    key = first.create_key(name="locked out")["key"]
    unknown = reply({"error": {"message": "no such model"}}, status=404)
    upstream.script(unknown, key=lane.secrets[0])
    upstream.script(reply(completion("it has it")), key=lane.secrets[1])
    ask(first, key, lane.body())
    assert upstream.requests[0].bearer == lane.secrets[0], "the first one is preferred"
    time.sleep(1)
    asked = len(upstream.requests)
    answer = ask(second, key, lane.body())
    assert answer.status_code == 200, answer.text
    seen = [each.bearer for each in upstream.requests[asked:]]
    assert seen == [lane.secrets[1]], "the other node does not ask the first one for it"
    ask(second, key, lane.body(model=f"{lane.prefix}/other"))
    of_other = upstream.requests[asked + 1].bearer
    assert of_other == lane.secrets[0], "its other models are as good as before"

    def locked_at_second() -> bool:
        shown = expect(second.admin.get("/api/rate-limits"), 200)["lockouts"]
        return lane.connections[0]["id"] in {each["connectionId"] for each in shown}

    eventually(locked_at_second, "it is shown", within_s=10)


def test_a_session_goes_on_at_another_node_where_it_was_served(
    pair: Pair, upstream: Upstream
) -> None:
    first, second = pair
    key = first.create_key(name="sessions")["key"]
    lanes = [first.add_lane(upstream) for _ in range(4)]
    name = f"combo-{secrets.token_hex(4)}"
    combo = {"name": name, "strategy": "round-robin", "models": [lane.model for lane in lanes]}
    expect(first.admin.post("/api/combos", json=combo), 201)
    body = lanes[0].body(model=name)

    def served(gateway: Gateway, session: str) -> str:
        answer = ask(gateway, key, body, session=session)
        assert answer.status_code == 200, answer.text
        return str(upstream.last.header("authorization"))

    homes = {f"s{at}": served(first, f"s{at}") for at in range(8)}
    assert len(set(homes.values())) == len(lanes), "sessions are spread"
    time.sleep(2)
    # In another order than the one in which a node without them would place them alike.
    assert {session: served(second, session) for session in reversed(homes)} == homes
    others = set()
    for at in range(len(lanes)):
        stranger = first.create_key(name=f"stranger of sessions {at}")["key"]
        assert ask(second, stranger, body, session="s0").status_code == 200
        others.add(upstream.last.header("authorization"))
    assert len(others) > 1, "another caller's session of that name is another one"


@pytest.mark.slow
def test_without_the_store_each_node_goes_by_itself(
    pair: Pair, store: SharedStore, upstream: Upstream
) -> None:
    first, second = pair
    lane, key = first.add_lane(upstream), first.create_key(name="alone")["key"]
    upstream.script(reply(completion("each")))
    store.stop()
    try:
        for gateway in pair:
            for _ in range(2):
                answer = ask(gateway, key, lane.body(), once="a1")
                assert answer.status_code == 200, answer.text
        assert len(upstream.requests) == 2, "once at each of them"

        def lost(gateway: Gateway) -> bool:
            nodes = expect(gateway.admin.get("/api/cluster"), 200)["nodes"]
            reports = [node["report"]["sharedLimits"] for node in nodes]
            return not any(report["connectedWorkers"] for report in reports)

        eventually(lambda: lost(second), "it is said", within_s=30)
    finally:
        store.start()

    def is_shared() -> bool:
        once = f"b{time.monotonic_ns()}"
        ask(first, key, lane.body(), once=once)
        time.sleep(0.2)
        again = ask(second, key, lane.body(), once=once)
        return again.headers.get("x-gateway-idempotent") == "true"

    eventually(is_shared, "they go together again", within_s=30)


def calling(text: str) -> dict[str, Any]:
    """An answer that thought this, and calls a tool."""
    answer = completion()
    called = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    answer["choices"][0] |= {
        "finish_reason": "tool_calls",
        "message": {"role": "assistant", "reasoning_content": text, "tool_calls": [called]},
    }
    return answer


def test_what_was_thought_at_one_node_goes_back_from_the_other(
    pair: Pair, upstream: Upstream
) -> None:
    """And is forgotten everywhere; of a key that is not logged it stays where it was thought."""
    first, second = pair
    lane = first.add_lane(upstream)
    wanted = {"providerSpecificData": {"reasoningReplay": True}}
    expect(first.admin.put(f"/api/providers/{lane.connections[0]['id']}", json=wanted), 200)
    upstream.script(reply(calling("hm")), reply(calling("hm")), reply(completion()))
    logged, unlogged = (first.create_key(noLog=no_log)["key"] for no_log in (False, True))
    for key in (logged, unlogged):
        called = ask(first, key, lane.body()).json()["choices"][0]["message"]
    del called["reasoning_content"]
    turns = [*lane.body()["messages"], called, {"role": "tool", "tool_call_id": "call_1"}]

    def sent_back(gateway: Gateway, key: str) -> str | None:
        answer = ask(gateway, key, lane.body(messages=turns))
        assert answer.status_code == 200, answer.text
        thought: str | None = upstream.last.json()["messages"][-2].get("reasoning_content")
        return thought

    assert eventually(lambda: sent_back(second, logged), "it goes back", within_s=3) == "hm"
    assert (sent_back(first, unlogged), sent_back(second, unlogged)) == ("hm", " ")
    assert expect(second.admin.delete("/api/cache/reasoning"), 200) == {"removed": 0}
    assert sent_back(second, logged) == " "
    eventually(lambda: sent_back(first, logged) == " ", "it is forgotten there", within_s=3)

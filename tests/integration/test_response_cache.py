"""Equal requests are answered from what is kept, and nothing else is: whose answers, which answers, for how long."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import (
    CLOSE,
    DONE,
    LAST_CHUNK,
    SSE_HEAD,
    Gate,
    Upstream,
    chunk,
    completion,
    delta,
    event,
    finish,
    reply,
    stream,
    usage_event,
)

REPEATS = 10


def call(
    lane: Lane, headers: dict[str, str] | None = None, *, say: str = "hi", **fields: Any
) -> httpx.Response:
    """A deterministic request, unless `fields` say otherwise."""
    body = lane.body(temperature=0, messages=[{"role": "user", "content": say}]) | fields
    return lane.gateway.caller.post(CHAT, json=body, headers=headers or {})


def is_hit(answer: httpx.Response) -> bool:
    assert answer.status_code == 200, answer.text
    verdict = answer.headers["x-gateway-cache"]
    assert verdict in {"HIT", "MISS"}
    assert (answer.headers.get("x-gateway-cache-latency") == "synthetic") == (verdict == "HIT")
    assert ("x-gateway-cost-saved" in answer.headers) == (verdict == "HIT")
    return verdict == "HIT"


def stays(lane: Lane, ask: Callable[[], httpx.Response]) -> bool:
    """Whether a repeated request is answered without the provider."""
    ask()
    before = len(lane.upstream.requests)
    ask()
    return len(lane.upstream.requests) == before


@pytest.mark.one_node(
    reason="each worker keeps answers of its own, and management shows those of one node"
)
def test_an_equal_request_is_answered_without_the_provider(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(reply(completion("first")), reply(completion("second")))
    first = call(lane)
    again = call(lane)
    members = json.loads(first.request.content)
    spelled = json.dumps(dict(reversed(members.items())), indent=3)
    spelled = spelled.replace('"temperature": 0', '"temperature": 0.0')
    other = gateway.caller.post(
        CHAT, content=spelled.encode(), headers={"Content-Type": "application/json"}
    )
    assert [is_hit(each) for each in (first, again, other)] == [False, True, True]
    assert first.content == again.content == other.content
    assert len(lane.upstream.requests) == 1
    assert again.headers["x-gateway-cache-tier"] == "exact"
    assert again.headers["x-gateway-response-cost"] == "0.0000000000"
    assert again.headers["x-gateway-decision"].startswith(
        f"strategy=single; provider={lane.prefix}; latency_ms="
    )
    assert int(again.headers["x-gateway-response-latency"]) < 1_000
    assert again.headers["x-gateway-request-id"] != first.headers["x-gateway-request-id"]
    records = [gateway.record(each.headers["x-gateway-request-id"]) for each in (first, again)]
    assert [(one["cache"], one["cacheKind"]) for one in records] == [
        ("miss", None),
        ("hit", "exact"),
    ]
    assert [one["attempts"] for one in records] == [1, 0]
    assert [one["tokensOutput"] for one in records] == [3, 0]
    assert [one["outcome"] for one in records] == ["completed", "completed"]


def test_who_did_not_ask_for_it_gets_no_kept_answer(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(*(reply(completion(str(each))) for each in range(20)))
    assert not stays(lane, lambda: call(lane, temperature=0.5)), "the answer is not determined"
    assert not stays(lane, lambda: gateway.caller.post(CHAT, json=lane.body()))
    assert stays(lane, lambda: call(lane, {"X-Gateway-Cache-Mode": "exact"}, temperature=0.5))
    assert stays(lane, lambda: call(lane))
    assert not stays(lane, lambda: call(lane, {"X-Gateway-No-Cache": "true"}))
    assert is_hit(call(lane)), "passing by leaves what is kept"
    quiet = gateway.create_key(cacheDefaultMode="bypass")["key"]
    assert not stays(lane, lambda: call(lane, {"Authorization": f"Bearer {quiet}"}))
    refused = call(lane, {"X-Gateway-Cache-Mode": "semantic"})
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "X-Gateway-Cache-Mode"


@pytest.mark.parametrize(
    "difference",
    [
        {"temperature": 0.1},
        {"top_p": 0.5},
        {"max_tokens": 7},
        {"seed": 1},
        {"stop": ["x"]},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
        {"tool_choice": "none"},
        {"response_format": {"type": "json_object"}},
        {"user": "somebody"},
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "hi"},
            ]
        },
        {"messages": [{"role": "assistant", "content": "hi"}]},
        {"model": "other"},
    ],
    ids=lambda difference: next(iter(difference)),
)
def test_nothing_crosses_what_can_change_an_answer(lane: Lane, difference: dict[str, Any]) -> None:
    if "model" in difference:
        difference = {"model": f"{lane.prefix}/other"}
    lane.upstream.script(reply(completion("own")), reply(completion("other")))
    mode = {"X-Gateway-Cache-Mode": "exact"}
    assert not is_hit(call(lane, mode))
    other = call(lane, mode, **difference)
    assert not is_hit(other)
    assert other.json()["choices"][0]["message"]["content"] == "other"
    assert is_hit(call(lane, mode))


def test_nothing_crosses_keys_headers_and_places(gateway: Gateway, lane: Lane) -> None:
    lane.forget_keys()
    lane.upstream.script(*(reply(completion(str(each))) for each in range(9)))
    assert not is_hit(call(lane))
    stranger = {"Authorization": f"Bearer {gateway.create_key()['key']}"}
    for headers in (
        stranger,
        {"x-gateway-disabled-guardrails": "pii-masker"},
        {"x-gateway-no-memory": "true"},
        {"x-gateway-connection": lane.connections[0]["id"]},
    ):
        assert not is_hit(call(lane, headers)), headers
        assert is_hit(call(lane, headers)), headers
    assert is_hit(call(lane))
    with Upstream() as elsewhere:
        elsewhere.script(reply(completion("moved")))
        node = gateway.admin.put(
            f"/api/provider-nodes/{lane.node['id']}", json={"baseUrl": elsewhere.url}
        )
        assert node.status_code == 200, node.text
        moved = call(lane)
        assert not is_hit(moved)
        assert moved.json()["choices"][0]["message"]["content"] == "moved"


def _message(reason: str, **message: Any) -> dict[str, Any]:
    whole = completion("partly")
    whole["choices"][0]["finish_reason"] = reason
    whole["choices"][0]["message"] |= message
    return whole


CALLS = [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]


@pytest.mark.parametrize(
    "unfit",
    [
        reply(_message("length")),
        reply(_message("content_filter")),
        reply(_message("tool_calls", content=None, tool_calls=CALLS)),
        reply(_message("stop", tool_calls=CALLS)),
        reply(_message("stop", refusal="I will not.")),
        reply(_message("stop", content="")),
        reply({"error": {"message": "bad", "type": "invalid_request_error"}}, 400),
        reply({"error": {"message": "down"}}, 500),
        reply({"error": {"message": "told late"}}),
    ],
    ids=["cut", "filtered", "calls", "calls-unsaid", "refused", "empty", "400", "500", "200"],
)
def test_an_answer_that_is_not_fit_is_not_kept(lane: Lane, unfit: Any) -> None:
    lane.upstream.script(unfit, reply(completion("good")))
    call(lane)
    again = call(lane)
    assert not is_hit(again)
    assert again.json()["choices"][0]["message"]["content"] == "good"


@pytest.mark.parametrize(
    "broken",
    [
        [*stream(delta("a"), ended=False), CLOSE],
        stream(delta("a"), finish("length"), DONE),
        stream(delta("a"), event({"error": {"message": "broke"}}), DONE),
        stream(delta("a")),
    ],
    ids=["cut", "length", "error", "no-end"],
)
def test_a_stream_that_did_not_end_well_is_not_kept(lane: Lane, broken: Any) -> None:
    lane.upstream.script(broken, stream(delta("good"), finish(), DONE))
    call(lane, stream=True)
    again = call(lane, stream=True)
    assert "x-gateway-cache-latency" not in again.headers
    assert b"good" in again.content
    assert call(lane, stream=True).content == again.content
    assert len(lane.upstream.requests) == 2


def test_a_stream_is_given_again_byte_for_byte(lane: Lane) -> None:
    whole = [delta("Hel"), delta("lo"), finish(), usage_event(), DONE]
    lane.upstream.script(stream(*whole))
    options = {"stream": True, "stream_options": {"include_usage": True}}
    first, again = (call(lane, **options) for _ in range(2))
    assert first.content == again.content == b"".join(whole)
    assert again.headers["x-gateway-cache-latency"] == "synthetic"
    assert again.headers["content-type"] == "text/event-stream"
    assert "x-gateway-cache" not in again.headers, "it is told of whole answers"
    bare = call(lane, stream=True)
    assert b'"usage"' not in bare.content
    assert bare.content.endswith(DONE)
    told = call(lane)
    assert is_hit(told)
    assert told.json()["choices"][0]["message"]["content"] == "Hello"
    assert told.json()["usage"]["completion_tokens"] == 3
    assert len(lane.upstream.requests) == 1


def test_a_whole_answer_is_given_as_a_stream(lane: Lane) -> None:
    lane.upstream.script(reply(completion("Hello")))
    assert not is_hit(call(lane))
    streamed = call(lane, stream=True, stream_options={"include_usage": True})
    events = [
        json.loads(line[6:]) for line in streamed.text.splitlines() if line.startswith("data: {")
    ]
    text = "".join(
        choice["delta"].get("content") or "" for one in events for choice in one["choices"]
    )
    assert text == "Hello"
    assert events[-1]["usage"]["completion_tokens"] == 3
    assert streamed.content.endswith(DONE)
    assert len(lane.upstream.requests) == 1


@pytest.mark.one_node(reason="each worker joins calls for itself")
def test_those_that_ask_at_once_share_one_call(gateway: Gateway, lane: Lane) -> None:
    gate = Gate()
    lane.upstream.script([gate, *reply(completion("once"))])
    assert gateway.key
    with ThreadPoolExecutor(REPEATS) as pool:
        asked = [pool.submit(call, lane) for _ in range(REPEATS)]
        eventually(lambda: lane.upstream.requests, "the call is under way", within_s=5)
        gate.open()
        answers = [each.result(20) for each in asked]
    assert {each.json()["choices"][0]["message"]["content"] for each in answers} == {"once"}
    assert len(lane.upstream.requests) == 1
    records = [gateway.record(each.headers["x-gateway-request-id"]) for each in answers]
    assert sum(one["attempts"] for one in records) == 1
    assert sum(one["tokensOutput"] for one in records) == 3, "it is paid once"


@pytest.mark.one_node(reason="each worker joins calls for itself")
def test_a_stream_is_joined_in_its_middle(gateway: Gateway, lane: Lane) -> None:
    gate = Gate()
    whole = [delta("a"), delta("b"), finish(), DONE]
    lane.upstream.script([SSE_HEAD, chunk(whole[0]), gate, *map(chunk, whole[1:]), LAST_CHUNK])
    body = lane.body(temperature=0, stream=True)
    with ExitStack() as staying:
        with gateway.caller.stream("POST", CHAT, json=body) as first:
            # Kept: an iterator that is dropped closes its answer.
            pieces = first.iter_bytes()
            assert next(pieces) == whole[0]
            follower = staying.enter_context(gateway.caller.stream("POST", CHAT, json=body))
            heard = follower.iter_bytes()
            assert next(heard) == whole[0]
            with gateway.caller.stream("POST", CHAT, json=body) as second:
                more = second.iter_bytes()
                assert next(more) == whole[0]
                assert second.headers["x-gateway-cache-tier"] == "joined"
        gate.open()
        assert b"".join(heard) == b"".join(whole[1:])
    assert len(lane.upstream.requests) == 1
    eventually(
        lambda: "x-gateway-cache-latency" in gateway.caller.post(CHAT, json=body).headers,
        "the stream is kept",
        within_s=5,
    )


def test_an_answer_that_its_only_caller_left_is_not_kept(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script([SSE_HEAD, chunk(delta("a")), Gate()], stream(delta("b"), finish(), DONE))
    body = lane.body(temperature=0, stream=True)
    with gateway.caller.stream("POST", CHAT, json=body) as one:
        next(one.iter_bytes())
    eventually(lambda: lane.upstream.last.aborted, "the provider is let go", within_s=5)
    again = gateway.caller.post(CHAT, json=body)
    assert delta("b") in again.content
    assert "x-gateway-cache-latency" not in again.headers


def test_messages_are_kept_in_their_own_dialect(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(reply(completion("from chat")), reply(completion("again")))
    body = {
        "model": lane.model,
        "max_tokens": 9,
        "temperature": 0,
        "messages": [{"role": "user", "content": "hi"}],
    }
    first, again = (gateway.caller.post("/v1/messages", json=body) for _ in range(2))
    assert [is_hit(first), is_hit(again)] == [False, True]
    assert again.json()["type"] == "message"
    assert again.json()["content"][0]["text"] == "from chat"
    streamed = gateway.caller.post("/v1/messages", json={**body, "stream": True})
    assert "event: message_stop" in streamed.text
    assert len(lane.upstream.requests) == 1
    assert not is_hit(gateway.caller.post(CHAT, json=body)), "another dialect is another answer"


def test_responses_are_kept_in_their_own_dialect(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(reply(completion("from chat")), reply(completion("again")))
    body = {"model": lane.model, "temperature": 0, "input": "hi"}
    first, again = (gateway.caller.post("/v1/responses", json=body) for _ in range(2))
    assert [is_hit(first), is_hit(again)] == [False, True]
    assert first.content == again.content
    assert again.json()["output"][0]["content"][0]["text"] == "from chat"
    response_id = again.json()["id"]
    expect(gateway.caller.delete(f"/v1/responses/{response_id}"), 200)
    assert is_hit(gateway.caller.post("/v1/responses", json=body))
    kept = expect(gateway.caller.get(f"/v1/responses/{response_id}"), 200)
    assert kept["output"] == first.json()["output"], "kept again, since it was given again"

    streamed = gateway.caller.post("/v1/responses", json={**body, "stream": True})
    names = re.findall(r"^event: (\S+)$", streamed.text, re.MULTILINE)
    assert (names[0], names[-1]) == ("response.created", "response.completed")
    last = json.loads(streamed.text.rsplit("data: ", 1)[1])
    assert last["response"] == first.json()
    assert streamed.headers["x-gateway-cache-latency"] == "synthetic"
    assert "x-gateway-cost-saved" in streamed.headers
    assert len(lane.upstream.requests) == 1

    going_on = {**body, "input": "and?", "previous_response_id": response_id}
    lane.upstream.script(reply(completion("one")), reply(completion("two")))
    told = [gateway.caller.post("/v1/responses", json=going_on) for _ in range(2)]
    assert [is_hit(each) for each in told] == [False, False], "a turn of a conversation is its own"


def test_a_response_is_given_as_it_was_streamed(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(stream(delta("a"), delta("b"), finish(), usage_event(), DONE))
    body = {"model": lane.model, "temperature": 0, "input": "hi", "store": False}
    first, again = (
        gateway.caller.post("/v1/responses", json={**body, "stream": True}) for _ in range(2)
    )
    assert first.content == again.content
    assert again.headers["x-gateway-cache-latency"] == "synthetic"
    whole = gateway.caller.post("/v1/responses", json=body)
    assert is_hit(whole)
    assert whole.json()["output"][0]["content"][0]["text"] == "ab"
    assert len(lane.upstream.requests) == 1


def test_generated_content_is_kept_in_its_own_dialect(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(reply(completion("from chat")), reply(completion("warmer")))
    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generationConfig": {"temperature": 0},
    }
    place = f"/v1beta/models/{lane.model}"
    first, again = (gateway.caller.post(f"{place}:generateContent", json=body) for _ in range(2))
    assert [is_hit(first), is_hit(again)] == [False, True]
    assert first.content == again.content

    def text_of(chunk: dict[str, Any]) -> str:
        return "".join(part["text"] for part in chunk["candidates"][0]["content"]["parts"])

    events = gateway.caller.post(f"{place}:streamGenerateContent?alt=sse", json=body)
    assert events.headers["content-type"] == "text/event-stream"
    chunks = [json.loads(line[6:]) for line in events.text.splitlines() if line.startswith("data")]
    listed = gateway.caller.post(f"{place}:streamGenerateContent", json=body)
    assert listed.headers["content-type"] == "application/json"
    for told in (chunks, listed.json()):
        assert "".join(map(text_of, told)) == "from chat"
    for each in (events, listed):
        assert each.headers["x-gateway-cache-latency"] == "synthetic"
    assert len(lane.upstream.requests) == 1
    warm = {**body, "generationConfig": {"temperature": 1}}
    assert not is_hit(gateway.caller.post(f"{place}:generateContent", json=warm))


@pytest.mark.parametrize("query", ["?alt=sse", ""], ids=["events", "list"])
def test_generated_content_is_given_as_it_was_streamed(
    gateway: Gateway, lane: Lane, query: str
) -> None:
    lane.upstream.script(stream(delta("a"), delta("b"), finish(), usage_event(), DONE))
    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generationConfig": {"temperature": 0},
    }
    place = f"/v1beta/models/{lane.model}"
    first, again = (
        gateway.caller.post(f"{place}:streamGenerateContent{query}", json=body) for _ in range(2)
    )
    assert "x-gateway-cache-latency" not in first.headers
    assert again.headers["x-gateway-cache-latency"] == "synthetic"
    if query:
        assert first.content == again.content
    else:
        assert first.json() == again.json()
    whole = gateway.caller.post(f"{place}:generateContent", json=body)
    assert is_hit(whole)
    assert whole.json()["candidates"][0]["content"]["parts"] == [{"text": "ab"}]
    assert len(lane.upstream.requests) == 1


def test_a_key_that_is_held_back_waits_for_kept_answers_too(gateway: Gateway, lane: Lane) -> None:
    mine = {"Authorization": f"Bearer {gateway.create_key(throttleDelayMs=400)['key']}"}
    first, again = call(lane, mine), call(lane, mine)
    assert [is_hit(first), is_hit(again)] == [False, True]
    assert int(again.headers["x-gateway-latency-ms"]) >= 400


def test_a_kept_answer_counts_as_a_request_and_is_free(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(*(reply(completion("x")) for _ in range(4)))
    key = gateway.create_key(rateLimits=[{"limit": 3, "window": 3600}])
    headers = {"Authorization": f"Bearer {key['key']}"}
    limit = {"apiKeyId": key["id"], "limit": 12, "period": "day"}
    gateway.admin.post("/api/usage/token-limits", json=limit)
    assert [call(lane, headers).status_code for _ in range(4)] == [200, 200, 200, 429]
    assert len(lane.upstream.requests) == 1


# ------------------------------------------------------------------------------------ management


def entries(gateway: Gateway, lane: Lane, **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = expect(
        gateway.admin.get("/api/cache/entries", params={"model": lane.model, **query}), 200
    )
    return found


@pytest.mark.one_node(
    reason="each worker keeps answers of its own, and management shows those of one node"
)
def test_what_is_kept_is_told_in_pages_and_forgotten_by_filter(
    gateway: Gateway, lane: Lane
) -> None:
    lane.upstream.script(*(reply(completion(str(each))) for each in range(9)))
    for each in range(5):
        assert not is_hit(call(lane, say=f"question {each}"))
    told = entries(gateway, lane, limit=2, page=3)
    assert told["pagination"] == {"page": 3, "limit": 2, "total": 5, "totalPages": 3}
    (oldest,) = told["entries"]
    assert oldest["endpoint"] == CHAT
    assert oldest["provider"] == lane.prefix
    assert oldest["tokens"] == 10
    assert "question" not in json.dumps(told), "prompts are not told"
    for name in (lane.prefix, lane.node["id"]):
        assert entries(gateway, lane, provider=name)["pagination"]["total"] == 5
    refused = gateway.admin.get("/api/cache/entries", params={"provider": "nobody"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "provider")
    one = {"signature": oldest["signature"]}
    assert expect(gateway.admin.delete("/api/cache/entries", params=one), 200)["removed"] == 1
    assert not is_hit(call(lane, say="question 0"))
    assert is_hit(call(lane, say="question 1"))
    gone = expect(gateway.admin.delete("/api/cache/entries", params={"model": lane.model}), 200)
    assert gone["removed"] == 5
    assert entries(gateway, lane)["pagination"]["total"] == 0
    assert not is_hit(call(lane, say="question 1"))


@pytest.mark.one_node(
    reason="each worker keeps answers of its own, and management shows those of one node"
)
def test_counts_are_told_as_the_contract_says(gateway: Gateway, lane: Lane) -> None:
    before = expect(gateway.admin.get("/api/cache"), 200)["semanticCache"]
    call(lane)
    call(lane)
    stats = expect(gateway.admin.get("/api/cache/stats"), 200)
    assert set(stats) == {"semanticCache", "idempotency"}
    assert {"memorySize", "memoryMaxSize", "dbSize", "hitRate"} <= set(stats["semanticCache"])
    assert set(stats["idempotency"]) == {"activeKeys", "windowMs"}
    assert stats["idempotency"]["windowMs"] == 5000
    assert stats["semanticCache"]["memorySize"] >= 1
    after = expect(gateway.admin.get("/api/cache"), 200)["semanticCache"]
    assert after["exactHits"] - before["exactHits"] == 1
    assert after["misses"] - before["misses"] == 1
    assert after["tokensSaved"] - before["tokensSaved"] == 10
    assert after["totalEntries"] - before["totalEntries"] == 1
    assert 0 < after["hitRate"] <= 1
    assert after["diskBytes"] > 0


def test_the_cache_is_managed_by_people_only(gateway: Gateway) -> None:
    manager = gateway.create_key(scopes=["manage"])["key"]
    headers = {"Authorization": f"Bearer {manager}"}
    for method, path in [
        ("GET", "/api/cache"),
        ("GET", "/api/cache/stats"),
        ("DELETE", "/api/cache/stats"),
        ("GET", "/api/cache/entries"),
        ("DELETE", "/api/cache/entries"),
    ]:
        refused = gateway.client().request(method, path, headers=headers)
        assert refused.status_code in {401, 403}, (method, path, refused.text)
    wrong = gateway.admin.get("/api/cache/entries", params={"page": 20_000, "limit": 500})
    assert wrong.status_code == 400
    assert wrong.json()["error"]["param"] == "page"


# ------------------------------------------------------------------------------ settings, restart


def test_settings_are_in_force_when_they_are_answered(
    gateway: Gateway, lane: Lane, upstream: Upstream
) -> None:
    upstream.script(*(reply(completion(str(each))) for each in range(20)))
    assert stays(lane, lambda: call(lane))
    expect(gateway.admin.patch("/api/settings", json={"semanticCacheEnabled": False}), 200)
    assert not stays(lane, lambda: call(lane))
    expect(gateway.admin.patch("/api/settings", json={"semanticCacheEnabled": True}), 200)
    assert not is_hit(call(lane)), "turning it off forgets"
    assert is_hit(call(lane))
    removed = expect(gateway.admin.delete("/api/cache/stats"), 200)
    assert removed["removed"] + removed["shared"] >= 1
    assert not is_hit(call(lane))
    for field, value in [
        ("semanticCacheTtlMs", 5),
        ("vectorCacheThreshold", 0.2),
        ("vectorCacheThreshold", 1.2),
        ("semanticCacheDiskMb", -1),
    ]:
        refused = gateway.admin.patch("/api/settings", json={field: value})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, field)
    gateway.assert_keeps_secrets()


def test_what_is_kept_outlives_kill_9_and_what_is_forgotten_does_not_come_back(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    gateway = gateways()
    lane = gateway.add_lane(upstream)
    upstream.script(*(reply(completion(str(each))) for each in range(9)))
    for say in ("kept", "forgotten"):
        assert not is_hit(call(lane, say=say))
    told = entries(gateway, lane)["entries"]
    assert [each["onDisk"] for each in told] == [True, True], "listing waits for the disk"
    gateway.admin.delete("/api/cache/entries", params={"signature": told[0]["signature"]})
    gateway.kill_all()
    gateway.start()
    assert entries(gateway, lane)["pagination"]["total"] == 1
    assert is_hit(call(lane, say="kept"))
    assert not is_hit(call(lane, say="forgotten"))
    quiet = {"Authorization": f"Bearer {gateway.create_key(noLog=True)['key']}"}
    assert not is_hit(call(lane, quiet))
    assert is_hit(call(lane, quiet))
    gateway.relay.kill()

    def is_kept() -> bool:
        try:
            return is_hit(call(lane, say="kept"))
        except httpx.HTTPError:  # the lost worker's connection
            return False

    eventually(is_kept, "another worker has what the lost one kept", within_s=20)
    assert not is_hit(call(lane, quiet)), "a key without a log leaves nothing on the disk"
    gateway.assert_keeps_secrets()


# ---------------------------------------------------------------------------------- by meaning


@pytest.mark.slow
def test_questions_that_mean_the_same_are_answered_alike_and_near_ones_are_not(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    gateway = gateways()
    lane = gateway.add_lane(upstream)
    upstream.script(*(reply(completion(str(each))) for each in range(40)))
    asked, same = "What is the capital of Australia?", "what's the capital of australia"
    expect(gateway.admin.patch("/api/settings", json={"vectorCacheEnabled": True}), 200)

    def state() -> dict[str, Any]:
        told: dict[str, Any] = expect(gateway.admin.get("/api/cache"), 200)["vectorCache"]
        return told

    eventually(lambda: state()["state"] == "ready", "the vectors are loaded", within_s=30)
    assert not is_hit(call(lane, say=asked))
    near = call(lane, say=same)
    assert is_hit(near)
    assert near.headers["x-gateway-cache-tier"] == "vector"
    record = gateway.record(near.headers["x-gateway-request-id"])
    assert (record["cacheKind"], record["attempts"]) == ("vector", 0)
    assert state()["vectors"] == 1
    for other in (
        "What is the capital of Austria?",
        "What was the capital of Australia?",
        "What is not the capital of Australia?",
        "What is the capital of Australia in 1950?",
        "Was ist die Hauptstadt von Australien?",
    ):
        assert not is_hit(call(lane, say=other)), other
    stranger = {"Authorization": f"Bearer {gateway.create_key()['key']}"}
    system = [{"role": "system", "content": "Be brief."}]
    whats = "what's the capital of Australia?"
    for headers, fields in [
        (stranger, {}),
        ({"X-Gateway-Cache-Mode": "exact"}, {}),
        ({"X-Gateway-Cache-Threshold": "1"}, {"say": "WHAT'S the Capital of Australia?"}),
        ({}, {"messages": [*system, {"role": "user", "content": whats}]}),
        ({}, {"max_tokens": 5}),
        ({}, {"tools": [{"type": "function", "function": {"name": "f"}}]}),
        ({}, {"model": f"{lane.prefix}/other"}),
    ]:
        assert not is_hit(call(lane, headers, **({"say": whats} | fields))), (headers, fields)
    less = {"X-Gateway-Cache-Threshold": "0.01"}
    assert not is_hit(call(lane, less, say="Capital, Australia: which one is it now?"))
    gateway.kill_all()
    gateway.start()
    eventually(lambda: state()["state"] == "ready", "the vectors are loaded again", within_s=30)
    again = call(lane, say="Please tell me what the capital of Australia is.")
    assert is_hit(again), "the index is made again from what is on the disk"
    assert expect(gateway.admin.delete("/api/cache/entries"), 200)["removed"] > 1
    assert state()["vectors"] == 0
    assert not is_hit(call(lane, say=same)), "what is gone is not found by meaning either"
    gateway.assert_keeps_secrets()

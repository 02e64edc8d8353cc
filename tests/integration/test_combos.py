"""Combos, aliases and pins with real processes: who is asked, in which order, and what the caller is told."""

from __future__ import annotations

import json
import secrets
import threading
from collections import Counter
from functools import partial
from typing import Any

import pytest

from tests.support.chat import CHAT, events_of
from tests.support.polling import eventually
from tests.support.processes import PROMPT, Gateway, Lane, expect
from tests.support.upstream import (
    CLOSE,
    DONE,
    LAST_CHUNK,
    SSE_HEAD,
    Gate,
    Seen,
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

BUSY = reply({"error": {"message": "busy"}}, status=503)
OK = reply(completion())
LIMITED = reply({"error": {"message": "slow"}}, status=429, headers=[("Retry-After", "60")])


def make_combo(gateway: Gateway, *models: Any, **fields: Any) -> str:
    """A combo with a fresh name; the name."""
    name = f"c{secrets.token_hex(4)}"
    body = {"name": name, "models": list(models), **fields}
    expect(gateway.admin.post("/api/combos", json=body), 201)
    return name


def call(gateway: Gateway, model: str, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    body = {"model": model, "messages": [{"role": "user", "content": PROMPT}], **fields}
    return gateway.caller.post(CHAT, json=body, headers=headers or {})


def decision(answer: Any) -> dict[str, str]:
    parts = answer.headers["x-gateway-decision"].split("; ")
    return dict(part.split("=", 1) for part in parts)


@pytest.fixture
def lanes(gateway: Gateway, upstream: Upstream) -> list[Lane]:
    """Three providers behind one scripted upstream, told apart by their models."""
    return [gateway.add_lane(upstream) for _ in range(3)]


def models_of(lanes: list[Lane]) -> list[str]:
    return [f"{lane.prefix}/m{at}" for at, lane in enumerate(lanes)]


def asked(upstream: Upstream) -> list[str]:
    return [seen.json()["model"] for seen in upstream.requests]


@pytest.mark.one_node(
    reason="a rest is told to other workers within half a second, and the next call is made at once"
)
def test_a_combo_asks_one_after_another_until_one_answers(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    """The order is the list's; the answer says which strategy, which provider, and how many failed."""
    name = make_combo(gateway, *models_of(lanes))
    upstream.script(BUSY, OK, model="m0")
    upstream.script(LIMITED, OK, model="m1")
    answer = call(gateway, name)
    assert answer.status_code == 200, answer.text
    assert asked(upstream) == ["m0", "m1", "m2"]
    assert decision(answer)["strategy"] == "priority"
    assert decision(answer)["provider"] == lanes[2].prefix
    assert decision(answer)["latency_ms"].isdigit()
    assert answer.headers["x-gateway-fallback-attempts"] == "2"
    assert answer.headers["x-gateway-model"] == "m2"
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert (record["model"], record["upstreamModel"], record["attempts"]) == (name, "m2", 3)
    shown = gateway.shown_record(answer.headers["x-gateway-request-id"])
    failed = shown["failedAttempts"]
    assert [(each["model"], each["errorKind"]) for each in failed] == [
        ("m0", "upstream_overloaded"),
        ("m1", "upstream_rate_limited"),
    ]
    assert len({each["connectionId"] for each in failed}) == 2
    moments = [shown["chosenMs"], *(each["endedMs"] for each in failed), shown["latencyMs"]]
    assert moments == sorted(moments)
    # What has failed rests: the next request does not begin with it.
    again = call(gateway, f"combo/{name}")
    assert again.status_code == 200
    assert asked(upstream)[-1] == "m2"
    assert "x-gateway-fallback-attempts" not in again.headers


def test_a_stream_fails_over_before_its_first_byte_only(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models_of(lanes))
    upstream.script(BUSY, OK, model="m0")
    upstream.script(stream(delta("from one"), finish(), DONE), model="m1")
    answer = call(gateway, name, stream=True)
    assert answer.status_code == 200
    assert json.loads(events_of(answer.content)[0])["choices"][0]["delta"]["content"] == "from one"
    assert answer.headers["x-gateway-fallback-attempts"] == "1"
    assert decision(answer)["provider"] == lanes[1].prefix

    cut = make_combo(gateway, f"{lanes[2].prefix}/cut", f"{lanes[1].prefix}/m1")
    upstream.script([*stream(delta("begun"), ended=False), CLOSE], model="cut")
    before = len(upstream.requests)
    broken = call(gateway, cut, stream=True)
    assert broken.status_code == 200
    assert len(upstream.requests) == before + 1, "what has begun is not begun again elsewhere"


@pytest.mark.one_node(
    reason="a rest is told to other workers within half a second, and the next call is made at once"
)
def test_a_model_that_is_not_there_goes_on_and_a_bad_request_does_not(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models_of(lanes))
    missing = {"error": {"message": "no such model"}}
    upstream.script(reply(missing, status=404), model="m0")
    too_long = {"error": {"message": "too long", "code": "context_length_exceeded"}}
    upstream.script(reply(too_long, status=400), model="m1")
    assert call(gateway, name).status_code == 200
    assert asked(upstream) == ["m0", "m1", "m2"]
    # A provider that does not have the model is not the first to be asked again.
    upstream.script(reply({"error": {"message": "bad messages"}}, status=400), model="m1")
    refused = call(gateway, name)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == "bad messages"
    assert asked(upstream)[3:] == ["m1"]


@pytest.mark.one_node(
    reason="a rest is told to other workers within half a second, and the next call is made at once"
)
def test_when_all_fail_one_error_names_each_and_why(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    first, second, third = models_of(lanes)
    name = make_combo(gateway, first, second, third)
    upstream.script(BUSY, OK, model="m0")
    upstream.script(reply({"error": {"message": "secret words of theirs"}}, status=500), model="m1")
    upstream.script(LIMITED, OK, model="m2")
    answer = call(gateway, name)
    assert answer.status_code == 429
    message = answer.json()["error"]["message"]
    for model, kind in (
        (first, "upstream_overloaded"),
        (second, "upstream_status"),
        (third, "upstream_rate_limited"),
    ):
        assert f"{model}: {kind}" in message
    assert f"`{name}`" in message
    assert "secret words" not in message
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert answer.headers["x-gateway-fallback-attempts"] == "2"

    # The one that was told to wait is not asked again, and the error says so.
    upstream.script(BUSY, OK, model="m0")
    upstream.script(BUSY, OK, model="m1")
    again = call(gateway, name)
    assert again.status_code == 503
    assert f"not tried: {third}: waits" in again.json()["error"]["message"]
    assert asked(upstream).count("m2") == 1


@pytest.mark.one_node(
    reason="a rest is told to other workers within half a second, and the next call is made at once"
)
def test_all_told_to_wait(gateway: Gateway, lanes: list[Lane], upstream: Upstream) -> None:
    """Nothing is asked; the caller is told when to come back."""
    name = make_combo(gateway, models_of(lanes)[0])
    upstream.script(LIMITED, OK, model="m0")
    assert call(gateway, name).status_code == 429
    before = len(upstream.requests)
    answer = call(gateway, name)
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert len(upstream.requests) == before


@pytest.mark.one_node(reason="each worker has turns of its own")
def test_combos_stand_in_each_other(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    """A nested combo decides by its own strategy, in its place."""
    models = models_of(lanes)
    inner = make_combo(gateway, models[1], models[2], strategy="round-robin")
    outer = make_combo(gateway, f"combo/{inner}", models[0])
    served = [call(gateway, outer) for _ in range(4)]
    assert [answer.status_code for answer in served] == [200] * 4
    assert asked(upstream) == ["m1", "m2", "m1", "m2"]
    assert {decision(answer)["strategy"] for answer in served} == {"priority"}
    upstream.script(BUSY, OK, model="m1")
    upstream.script(BUSY, OK, model="m2")
    assert call(gateway, outer).status_code == 200
    assert sorted(asked(upstream)[4:6]) == ["m1", "m2"]
    assert asked(upstream)[6] == "m0"


@pytest.mark.one_node(reason="each worker has turns of its own")
def test_a_step_without_a_connection_is_every_connection(
    gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream, connections=3)
    name = make_combo(gateway, lane.model, strategy="round-robin")
    for _ in range(6):
        assert call(gateway, name).status_code == 200
    used = Counter(seen.bearer for seen in upstream.requests)
    assert used == Counter(dict.fromkeys(lane.secrets, 2))
    one = {"kind": "model", "model": lane.model, "connectionId": lane.connections[1]["id"]}
    only = make_combo(gateway, one, strategy="round-robin")
    for _ in range(2):
        assert call(gateway, only).status_code == 200
    assert {seen.bearer for seen in upstream.requests[6:]} == {lane.secrets[1]}


def test_weights_are_kept(gateway: Gateway, lanes: list[Lane], upstream: Upstream) -> None:
    first, second, third = models_of(lanes)
    name = make_combo(
        gateway,
        {"model": first, "weight": 3},
        {"model": second, "weight": 1},
        {"model": third, "weight": 0},
        strategy="weighted",
    )
    for _ in range(80):
        assert call(gateway, name).status_code == 200
    count = Counter(asked(upstream))
    # 60 expected; seven standard deviations to either side.
    assert 33 <= count["m0"] <= 79
    assert count["m2"] == 0


def test_the_price_is_that_of_the_model_that_answered(gateway: Gateway, upstream: Upstream) -> None:
    prefix = f"t{secrets.token_hex(4)}"
    node = gateway.add_node(prefix, upstream.url)
    price = {"input": 1.0, "output": 2.0}
    gateway.add_connection(
        node["id"],
        f"sk-upstream-canary-{secrets.token_hex(8)}",
        providerSpecificData={"prices": {"m1": price}},
    )
    name = make_combo(gateway, f"{prefix}/m1")
    answer = call(gateway, name)
    assert answer.status_code == 200, answer.text
    assert float(answer.headers["x-gateway-response-cost"]) == pytest.approx(13e-6)


def test_an_alias_stands_for_a_model_or_a_combo(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    alias = f"alias-{secrets.token_hex(4)}"
    body = {"alias": alias, "model": models_of(lanes)[0]}
    expect(gateway.admin.post("/api/models/alias", json=body), 200)
    answer = call(gateway, alias)
    assert answer.status_code == 200
    assert decision(answer)["strategy"] == "single"
    assert upstream.last.json()["model"] == "m0"
    name = make_combo(gateway, models_of(lanes)[1])
    expect(gateway.admin.post("/api/models/alias", json={**body, "model": name}), 200)
    assert call(gateway, alias).status_code == 200
    assert upstream.last.json()["model"] == "m1"
    expect(gateway.admin.request("DELETE", "/api/models/alias", params={"alias": alias}), 200)
    assert call(gateway, alias).status_code == 404


def test_a_combo_that_is_gone_or_off_is_not_found(gateway: Gateway, lanes: list[Lane]) -> None:
    name = make_combo(gateway, models_of(lanes)[0])
    combos = expect(gateway.admin.get("/api/combos", params={"limit": 500}), 200)["combos"]
    record = next(combo for combo in combos if combo["name"] == name)
    path = f"/api/combos/{record['id']}"
    expect(gateway.admin.put(path, json={"isActive": False}), 200)
    assert call(gateway, name).status_code == 404
    expect(gateway.admin.put(path, json={"isActive": True}), 200)
    assert call(gateway, name).status_code == 200
    expect(gateway.admin.delete(path), 200)
    assert call(gateway, f"combo/{name}").status_code == 404


def test_auto_finds_a_model_by_itself(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream)
    key = gateway.create_key(
        modelAccessMode="restricted", allowedModels=[f"{lane.prefix}/*"], name="auto"
    )
    path = f"/api/providers/{lane.connections[0]['id']}"
    expect(gateway.admin.put(path, json={"defaultModel": "good-chat"}), 200)
    client = gateway.client(headers={"Authorization": f"Bearer {key['key']}"})
    body = {"model": "auto/cheap", "messages": [{"role": "user", "content": "x"}]}
    answer = client.post(CHAT, json=body)
    assert answer.status_code == 200, answer.text
    assert decision(answer)["strategy"] == "auto"
    assert upstream.last.json()["model"] == "good-chat", "among the key's models only"
    assert call(gateway, "auto/nothing").status_code == 404
    expect(gateway.admin.patch(f"/api/keys/{key['id']}", json={"allowAutoCombos": False}), 200)
    assert client.post(CHAT, json=body).status_code == 403


def test_a_key_calls_the_combos_that_it_may(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    first, second, _ = models_of(lanes)
    allowed, other = make_combo(gateway, first, second), make_combo(gateway, first)
    key = gateway.create_key(allowedCombos=[allowed], blockedModels=[first])
    client = gateway.client(headers={"Authorization": f"Bearer {key['key']}"})
    body = {"messages": [{"role": "user", "content": "x"}]}
    assert client.post(CHAT, json={**body, "model": allowed}).status_code == 200
    assert asked(upstream) == ["m1"], "a blocked model is blocked in a combo, too"
    assert client.post(CHAT, json={**body, "model": other}).status_code == 403
    assert client.post(CHAT, json={**body, "model": f"combo/{other}"}).status_code == 403
    narrow = gateway.create_key(modelAccessMode="restricted", allowedModels=[first])
    client = gateway.client(headers={"Authorization": f"Bearer {narrow['key']}"})
    assert client.post(CHAT, json={**body, "model": allowed}).status_code == 403
    assert client.post(CHAT, json={**body, "model": first}).status_code == 200


# --- pins


def pinned(gateway: Gateway, model: str, connection_id: str) -> Any:
    return call(gateway, model, {"X-Gateway-Connection": connection_id})


@pytest.mark.one_node(
    reason="a rest is told to other workers within half a second, and the next call is made at once"
)
def test_a_pin_is_strict_and_its_failure_rotates_to_nobody(
    gateway: Gateway, upstream: Upstream
) -> None:
    """Rules 1 to 3: only the pinned connection; its failure is the caller's; while it rests, others serve."""
    lane = gateway.add_lane(upstream, connections=3)
    second = lane.connections[1]["id"]
    assert pinned(gateway, lane.model, second).status_code == 200
    assert upstream.last.bearer == lane.secrets[1]
    upstream.script(BUSY, OK, key=lane.secrets[1])
    before = len(upstream.requests)
    failed = pinned(gateway, lane.model, second)
    assert failed.status_code == 503
    assert len(upstream.requests) == before + 1, "no sibling was asked"
    resting = pinned(gateway, lane.model, second)
    assert resting.status_code == 200
    assert upstream.last.bearer == lane.secrets[0], "as without a pin"


def test_a_pin_to_no_connection_of_the_provider_fails_without_telling_which(
    gateway: Gateway, upstream: Upstream
) -> None:
    """Rule 4: deleted, deactivated, another provider's and made-up ids get the same answer."""
    lane, other = gateway.add_lane(upstream, connections=3), gateway.add_lane(upstream)
    deleted, off = lane.connections[1]["id"], lane.connections[2]["id"]
    expect(gateway.admin.delete(f"/api/providers/{deleted}"), 200)
    expect(gateway.admin.put(f"/api/providers/{off}", json={"isActive": False}), 200)
    before = len(upstream.requests)
    answers = [
        pinned(gateway, lane.model, one)
        for one in (deleted, off, other.connections[0]["id"], "made-up")
    ]
    assert {answer.status_code for answer in answers} == {400}
    assert len({answer.json()["error"]["message"] for answer in answers}) == 1
    assert len(upstream.requests) == before


def test_a_combo_takes_no_notice_of_a_pin(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream, connections=2)
    name = make_combo(gateway, lane.model)
    assert pinned(gateway, name, lane.connections[1]["id"]).status_code == 200
    assert upstream.last.bearer == lane.secrets[0]
    assert pinned(gateway, name, "made-up").status_code == 200


# --- sessions


def test_a_session_stays_with_its_target(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models_of(lanes), strategy="round-robin")
    for _ in range(5):
        assert call(gateway, name, {"X-Session-Id": "s1"}).status_code == 200
    assert len(set(asked(upstream))) == 1
    for at in range(6):
        assert call(gateway, name, {"X-Session-Id": f"other-{at}"}).status_code == 200
    assert len(set(asked(upstream)[5:])) == 3


@pytest.mark.one_node(reason="each worker sees what it has under way itself")
def test_busy_targets_are_seen_as_busy(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    """`least-used` counts what is open now."""
    name = make_combo(gateway, *models_of(lanes)[:2], strategy="least-used")
    gate = Gate()
    upstream.script([gate, *OK], model="m0")
    waiting: list[Any] = []
    thread = threading.Thread(target=lambda: waiting.append(call(gateway, name)))
    thread.start()
    assert gate.reached.wait(10)
    for _ in range(3):
        assert call(gateway, name).status_code == 200
    assert asked(upstream) == ["m0", "m1", "m1", "m1"]
    gate.open()
    thread.join(10)
    assert waiting[0].status_code == 200


# --- fusion and pipeline


def said(text: str) -> Any:
    return reply(completion(text))


def contents(seen: Any) -> list[str]:
    return [message["content"] for message in seen.json()["messages"]]


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_panel_answers_and_a_judge_merges(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream, is_stream: bool
) -> None:
    """All are asked in one piece; the judge sees their answers; the caller gets the judge's, and pays for all."""
    name = make_combo(gateway, *models_of(lanes), strategy="fusion")
    merged = stream(delta("merged"), finish(), usage_event(7, 3), DONE)
    upstream.script(said("one"), merged if is_stream else said("merged"), model="m0")
    upstream.script(said("two"), model="m1")
    upstream.script(said("three"), model="m2")
    answer = call(gateway, name, stream=is_stream)
    assert answer.status_code == 200, answer.text
    assert "merged" in answer.text
    assert sorted(asked(upstream)[:3]) == ["m0", "m1", "m2"]
    assert asked(upstream)[3:] == ["m0"]
    assert not any("stream" in seen.json() for seen in upstream.requests[:3])
    question, told = contents(upstream.last)
    assert question == PROMPT
    assert all(f"\n{text}\n" in told for text in ("one", "two", "three"))
    assert decision(answer)["strategy"] == "fusion"
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert (record["attempts"], record["tokensInput"], record["tokensOutput"]) == (4, 28, 12)


def test_a_panel_of_which_one_is_left_needs_no_judge(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models_of(lanes), strategy="fusion")
    upstream.script(BUSY, OK, model="m0")
    upstream.script(BUSY, OK, model="m1")
    upstream.script(said("alone"), model="m2")
    answer = call(gateway, name)
    assert answer.json()["choices"][0]["message"]["content"] == "alone"
    assert len(upstream.requests) == 3
    assert decision(answer)["provider"] == lanes[2].prefix


def test_a_panel_of_which_none_is_left_tells_why(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models_of(lanes)[:2], strategy="fusion")
    upstream.script(BUSY, OK, model="m0")
    upstream.script(BUSY, OK, model="m1")
    answer = call(gateway, name)
    assert answer.status_code == 503
    message = answer.json()["error"]["message"]
    assert all(f"{model}: upstream_overloaded" in message for model in models_of(lanes)[:2])


def test_tools_go_to_the_first_alone(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models_of(lanes), strategy="fusion")
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert call(gateway, name, tools=tools).status_code == 200
    assert asked(upstream) == ["m0"]


@pytest.mark.parametrize("is_stream", [False, True])
def test_each_step_of_a_pipeline_works_on_the_one_before(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream, is_stream: bool
) -> None:
    first, second, _ = models_of(lanes)
    name = make_combo(
        gateway,
        {"model": first},
        {"model": second, "prompt": "Find the mistakes."},
        {"model": first, "prompt": "Write it anew."},
        strategy="pipeline",
    )
    last = stream(delta("final"), finish(), usage_event(7, 3), DONE)
    upstream.script(said("draft"), last if is_stream else said("final"), model="m0")
    upstream.script(said("mistakes"), model="m1")
    answer = call(gateway, name, stream=is_stream)
    assert answer.status_code == 200, answer.text
    assert "final" in answer.text
    assert asked(upstream) == ["m0", "m1", "m0"]
    assert [contents(seen) for seen in upstream.requests] == [
        [PROMPT],
        [PROMPT, "draft", "Find the mistakes."],
        [PROMPT, "mistakes", "Write it anew."],
    ]
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert (record["attempts"], record["tokensInput"]) == (3, 21)


def test_a_pipeline_stops_at_a_step_that_nobody_does(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models_of(lanes)[:2], strategy="pipeline")
    upstream.script(BUSY, OK, model="m0")
    answer = call(gateway, name)
    assert answer.status_code == 503
    assert "upstream_overloaded" in answer.json()["error"]["message"]
    assert asked(upstream) == ["m0"]


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("strategy", ["fusion", "pipeline"])
def test_stages_answer_in_the_form_of_whoever_asks(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream, strategy: str, is_stream: bool
) -> None:
    """`/v1/messages` gets messages, of providers that speak another form."""
    name = make_combo(gateway, *models_of(lanes)[:2], strategy=strategy)
    merged = stream(delta("merged"), finish(), usage_event(7, 3), DONE)
    last = merged if is_stream else said("merged")
    upstream.script(said("one"), last, model="m0")
    upstream.script(*([said("two")] if strategy == "fusion" else [last]), model="m1")
    body = {
        "model": name,
        "max_tokens": 50,
        "system": "Be brief.",
        "stream": is_stream,
        "messages": [{"role": "user", "content": PROMPT}],
    }
    answer = gateway.caller.post("/v1/messages", json=body)
    assert answer.status_code == 200, answer.text
    if is_stream:
        assert "event: message_start" in answer.text
        assert "event: message_stop" in answer.text
        assert "merged" in answer.text
    else:
        told = answer.json()
        assert (told["type"], told["content"][0]["text"]) == ("message", "merged")
    first, *_, at_last = upstream.requests
    assert first.json()["messages"][0] == {"role": "system", "content": "Be brief."}
    assert "one" in json.dumps(at_last.json()["messages"])


def test_one_answer_of_a_panel_is_told_in_the_callers_form(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models_of(lanes)[:2], strategy="fusion")
    upstream.script(BUSY, OK, model="m0")
    upstream.script(said("alone"), model="m1")
    body = {"model": name, "max_tokens": 9, "messages": [{"role": "user", "content": PROMPT}]}
    answer = gateway.caller.post("/v1/messages", json=body)
    assert answer.json()["content"][0]["text"] == "alone"


@pytest.mark.parametrize("strategy", ["fusion", "pipeline"])
def test_a_stream_hears_that_stages_are_at_work(
    hasty_gateway: Gateway, upstream: Upstream, strategy: str
) -> None:
    """Comments before the first word, and a failure after them is told in the stream."""
    gateway = hasty_gateway
    lanes = [gateway.add_lane(upstream) for _ in range(2)]
    name = make_combo(gateway, *models_of(lanes), strategy=strategy)
    gate = Gate()
    final = stream(delta("merged"), finish(), usage_event(7, 3), DONE)
    upstream.script([gate, *said("one")], final, model="m0")
    upstream.script(said("two") if strategy == "fusion" else final, model="m1")
    body = {"model": name, "stream": True, "messages": [{"role": "user", "content": PROMPT}]}
    with gateway.caller.stream("POST", CHAT, json=body) as answer:
        assert answer.status_code == 200
        pieces = answer.iter_bytes()
        assert next(pieces).startswith(b":"), "before anybody has said a word"
        gate.open()
        rest = b"".join(pieces)
    assert b"merged" in rest
    assert rest.rstrip().endswith(b"[DONE]")

    failing = Gate()
    broken = reply({"error": {"message": "failed"}}, 500)
    upstream.script([failing, *broken], broken, model="m0")
    upstream.script(broken, model="m1")
    with gateway.caller.stream("POST", CHAT, json=body) as answer:
        pieces = answer.iter_bytes()
        assert next(pieces).startswith(b":")
        failing.open()
        rest = b"".join(pieces)
    error = json.loads(events_of(rest)[-2])["error"]
    assert error["code"] == "upstream_status"
    assert name in error["message"]


# --- hedging


def test_a_slow_target_is_joined_by_the_next_and_the_first_to_answer_wins(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    config = {"hedging": True, "hedgeDelayMs": 50}
    name = make_combo(gateway, *models_of(lanes), config=config)
    gate = Gate()
    upstream.script([gate, *said("slow")], said("quick"), model="m0")
    upstream.script(said("joined"), model="m1")
    answer = call(gateway, name)
    assert answer.json()["choices"][0]["message"]["content"] == "joined"
    assert asked(upstream) == ["m0", "m1"]
    dropped = upstream.requests[0]
    eventually(lambda: dropped.gone_at is not None, "the other call is ended")
    gate.open()
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert (record["attempts"], record["upstreamModel"], record["tokensOutput"]) == (2, "m1", 3)
    # One that answers in time is not joined.
    wait = make_combo(gateway, *models_of(lanes), config={**config, "hedgeDelayMs": 20_000})
    upstream.script(said("quick"), model="m0")
    before = len(upstream.requests)
    assert call(gateway, wait).json()["choices"][0]["message"]["content"] == "quick"
    assert len(upstream.requests) == before + 1


def test_when_both_fail_the_third_is_asked_and_a_bad_request_goes_nowhere(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    config = {"hedging": True, "hedgeDelayMs": 50}
    name = make_combo(gateway, *models_of(lanes), config=config)
    gate = Gate()
    upstream.script([gate, *BUSY], model="m0")
    upstream.script(BUSY, model="m1")
    upstream.script(said("third"), model="m2")
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(call(gateway, name)))
    thread.start()
    eventually(lambda: len(upstream.requests) == 2, "the second has been asked")
    gate.open()
    thread.join(20)
    assert answers[0].json()["choices"][0]["message"]["content"] == "third"
    assert answers[0].headers["x-gateway-fallback-attempts"] == "2"

    bad = make_combo(gateway, f"{lanes[2].prefix}/bad", f"{lanes[2].prefix}/m2", config=config)
    upstream.script(reply({"error": {"message": "bad messages"}}, 400), model="bad")
    refused = call(gateway, bad)
    assert (refused.status_code, refused.json()["error"]["message"]) == (400, "bad messages")
    assert asked(upstream)[-1] == "bad"


def test_a_slow_stream_is_joined_by_the_next_until_its_first_byte(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    config = {"hedging": True, "hedgeDelayMs": 50}
    name = make_combo(gateway, *models_of(lanes), config=config)
    for before_gate in ((), (SSE_HEAD,)):
        gate = Gate()
        upstream.script([*before_gate, gate, *stream(delta("slow"), finish(), DONE)], model="m0")
        upstream.script(stream(delta("joined"), finish(), usage_event(7, 3), DONE), model="m1")
        before = len(upstream.requests)
        answer = call(gateway, name, stream=True)
        assert answer.status_code == 200
        assert "joined" in answer.text
        assert "slow" not in answer.text
        assert answer.text.rstrip().endswith("data: [DONE]")
        assert decision(answer)["provider"] == lanes[1].prefix
        assert asked(upstream)[before:] == ["m0", "m1"]
        dropped = upstream.requests[before]
        eventually(partial(_is_gone, dropped), "the other call is ended")
        gate.open()
        record = gateway.record(answer.headers["x-gateway-request-id"])
        assert (record["attempts"], record["upstreamModel"], record["tokensOutput"]) == (2, "m1", 3)
        assert record["outcome"] == "completed"

    # One that has begun is not joined, however slow it is.
    gate = Gate()
    upstream.script([SSE_HEAD, chunk(delta("first")), gate, *_rest()], model="m0")
    before = len(upstream.requests)
    body = {"model": name, "messages": [{"role": "user", "content": PROMPT}], "stream": True}
    with gateway.caller.stream("POST", CHAT, json=body) as answer:
        pieces = answer.iter_bytes()
        assert b"first" in next(pieces)
        gate.open()
        assert b"".join(pieces).rstrip().endswith(b"data: [DONE]")
    assert asked(upstream)[before:] == ["m0"]


def _is_gone(seen: Seen) -> bool:
    return seen.gone_at is not None


def _rest() -> list[bytes]:
    return [chunk(delta("second")), chunk(finish()), chunk(DONE), LAST_CHUNK]


def test_a_stream_goes_on_to_the_third_when_both_fail_before_their_first_byte(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models_of(lanes), config={"hedging": True, "hedgeDelayMs": 50})
    gate = Gate()
    upstream.script([gate, *BUSY], model="m0")
    upstream.script([SSE_HEAD, CLOSE], model="m1")
    upstream.script(stream(delta("third"), finish(), DONE), model="m2")
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(call(gateway, name, stream=True)))
    thread.start()
    eventually(lambda: len(upstream.requests) == 2, "the second has been asked")
    gate.open()
    thread.join(20)
    assert "third" in answers[0].text
    assert answers[0].headers["x-gateway-fallback-attempts"] == "2"


def test_two_models_of_one_connection_that_race_are_told_apart(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    models = [f"{lanes[0].prefix}/{model}" for model in ("m0", "m1")]
    name = make_combo(gateway, *models, config={"hedging": True, "hedgeDelayMs": 50})
    gate = Gate()
    upstream.script([gate, *said("slow")], model="m0")
    upstream.script([SSE_HEAD, chunk(delta("joined")), CLOSE], model="m1")
    answer = call(gateway, name, stream=True)
    gate.open()
    assert "joined" in answer.text
    last = json.loads(events_of(answer.content)[-2])
    assert last["diagnostics"]["attemptOrder"] == models[1:], "the one that broke"
    assert [one["target"] for one in last["diagnostics"]["failures"]] == models[1:]


def test_a_hedged_stream_keeps_its_caller_company(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    """An error as the first event of the winner, before the caller has heard anything, is not the end."""
    name = make_combo(gateway, *models_of(lanes), config={"hedging": True, "hedgeDelayMs": 20_000})
    failing = event({"error": {"message": "overloaded", "type": "overloaded_error"}})
    upstream.script(stream(failing), model="m0")
    upstream.script(stream(delta("second"), finish(), DONE), model="m1")
    answer = call(gateway, name, stream=True)
    assert "second" in answer.text
    assert answer.headers["x-gateway-fallback-attempts"] == "1"


def test_a_response_that_came_of_a_race_or_of_stages_is_kept(
    gateway: Gateway, lanes: list[Lane], upstream: Upstream
) -> None:
    """A caller whose response was to be kept finds it, whichever of a combo's ways it took."""
    race = make_combo(gateway, *models_of(lanes), config={"hedging": True, "hedgeDelayMs": 20_000})
    panel, chain = (
        make_combo(gateway, *models_of(lanes)[:2], strategy=name) for name in ("fusion", "pipeline")
    )
    upstream.script(
        said("quick"), said("first"), said("one"), said("judged"), said("only"), model="m0"
    )
    upstream.script(said("second"), said("two"), BUSY, model="m1")
    ways = [(race, "quick"), (chain, "second"), (panel, "judged"), (panel, "only")]
    for name, text in ways:
        body = {"model": name, "input": "Hi."}  # kept, in clear
        answer = expect(gateway.caller.post("/v1/responses", json=body), 200)
        assert answer["output"][-1]["content"][0]["text"] == text
        kept = expect(gateway.caller.get(f"/v1/responses/{answer['id']}"), 200)
        assert kept["output"] == answer["output"]


def test_stages_do_not_hedge(gateway: Gateway, lanes: list[Lane]) -> None:
    body = {"name": "x", "models": models_of(lanes), "strategy": "fusion"}
    answer = gateway.admin.post("/api/combos", json={**body, "config": {"hedging": True}})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "config.hedging"

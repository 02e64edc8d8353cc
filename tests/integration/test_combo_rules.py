"""Rules of combos with real processes: who is asked, with what, for how long, and what counts as an answer."""

from __future__ import annotations

import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import PROMPT, Gateway, Lane, expect
from tests.support.upstream import (
    CLOSE,
    DONE,
    SSE_HEAD,
    Gate,
    Upstream,
    Wait,
    chunk,
    completion,
    delta,
    event,
    finish,
    reply,
    stream,
)

BUSY = reply({"error": {"message": "busy"}}, status=503)
FAILED = reply({"error": {"message": "broken"}}, status=500)
OK = reply(completion())
USER = {"role": "user", "content": PROMPT}


def make_combo(gateway: Gateway, *models: Any, **fields: Any) -> str:
    """A combo with a fresh name; the name."""
    name = f"c{secrets.token_hex(4)}"
    body = {"name": name, "models": list(models), **fields}
    expect(gateway.admin.post("/api/combos", json=body), 201)
    return name


def call(gateway: Gateway, model: str, **fields: Any) -> Any:
    return gateway.caller.post(CHAT, json={"model": model, "messages": [USER], **fields})


def simulate(gateway: Gateway, name: str, **fields: Any) -> Any:
    body = {"comboName": name, **fields}
    return expect(gateway.admin.post("/api/combos/simulate", json=body), 200)


def asked(upstream: Upstream) -> list[str]:
    return [seen.json()["model"] for seen in upstream.requests]


@pytest.fixture
def lanes(gateway: Gateway, upstream: Upstream) -> list[Lane]:
    """Two providers behind one scripted upstream, told apart by their models."""
    return [gateway.add_lane(upstream) for _ in range(2)]


@pytest.fixture
def models(lanes: list[Lane]) -> list[str]:
    return [f"{lane.prefix}/m{at}" for at, lane in enumerate(lanes)]


def test_what_is_sent_is_as_the_combo_says(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models, systemMessage="Be brief.", toolFilterRegex="^get_")
    tools = [
        {"type": "function", "function": {"name": tool, "parameters": {"type": "object"}}}
        for tool in ("get_x", "drop_x")
    ]
    assert call(gateway, name, tools=tools).status_code == 200
    sent = upstream.last.json()
    assert sent["messages"] == [{"role": "system", "content": "Be brief."}, USER]
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["get_x"]
    forced = {"type": "function", "function": {"name": "drop_x"}}
    refused = call(gateway, name, tools=tools, tool_choice=forced)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "tool_choice"
    messages = {"model": name, "max_tokens": 9, "messages": [USER], "system": "Own."}
    assert gateway.caller.post("/v1/messages", json=messages).status_code == 200
    told = upstream.last.json()["messages"][0]
    assert told["role"] == "system"
    assert "Be brief." in str(told)
    assert "Own." in str(told)


@pytest.mark.one_node(reason="each worker has turns of its own")
def test_a_simulation_says_what_the_next_call_does_and_calls_nobody(
    gateway: Gateway, lanes: list[Lane], models: list[str], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models, strategy="round-robin")
    for _ in range(3):
        told = simulate(gateway, name)
        assert simulate(gateway, name)["chosen"] == told["chosen"], "it remembers nothing"
        before = len(upstream.requests)
        assert call(gateway, name).status_code == 200
        assert len(upstream.requests) == before + 1
        assert upstream.last.json()["model"] == told["chosen"]["upstreamModel"]
    only = make_combo(gateway, *models, allowedProviders=[lanes[1].prefix])
    told = simulate(gateway, only)
    reasons = {target["model"]: target["reason"] for target in told["targets"]}
    assert reasons[models[1]] is None
    assert "allowedProviders" in reasons[models[0]]
    assert told["chosen"]["order"] == 1
    assert call(gateway, only).status_code == 200
    assert asked(upstream)[-1] == "m1"
    upstream.script(reply({}, status=429, headers=[("Retry-After", "60")]), OK, model="m0")
    assert call(gateway, models[0]).status_code == 429
    closed = simulate(gateway, name)["targets"]
    assert [target["availability"] for target in closed if target["reason"]] == ["closed"]
    missing = gateway.admin.post("/api/combos/simulate", json={"comboName": "combo/none"})
    assert missing.status_code == 404


def test_each_target_is_tested(gateway: Gateway, models: list[str], upstream: Upstream) -> None:
    name = make_combo(gateway, *models)
    upstream.script(FAILED, OK, model="m0")
    told = expect(gateway.admin.post("/api/combos/test", json={"comboName": name}), 200)
    results = {target["model"]: target for target in told["targets"]}
    assert results[models[1]]["result"] == "ok"
    assert results[models[1]]["ms"] >= 0
    assert (results[models[0]]["result"], results[models[0]]["status"]) == ("failed", 502)


def test_a_request_that_is_too_long_for_the_combo_is_refused(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models, contextLength=1_000)
    long = [{"role": "user", "content": "word " * 1_000}]
    refused = call(gateway, name, messages=long)
    assert refused.status_code == 400
    assert "contextLength" in refused.json()["error"]["message"]
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'A' * 20_000}"}}
    assert call(gateway, name, messages=[{"role": "user", "content": [picture]}]).status_code == 200
    listed = expect(gateway.caller.get(f"/v1/models/{name}"), 200)
    assert listed["context_length"] == 1_000


def test_deadlines_move_on_and_end(gateway: Gateway, models: list[str], upstream: Upstream) -> None:
    name = make_combo(gateway, *models, config={"targetTimeoutMs": 300})
    upstream.script([Wait(5), *OK], model="m0")
    for fields in ({}, {"stream": True}):
        upstream.script(stream(delta("x"), finish(), DONE) if fields else OK, model="m1")
        answer = call(gateway, name, **fields)
        assert answer.status_code == 200, answer.text
        assert answer.headers["x-gateway-fallback-attempts"] == "1"
    both = make_combo(gateway, *models, config={"comboTimeoutMs": 300})
    ended = call(gateway, both)
    assert ended.status_code == 504
    assert ended.json()["diagnostics"]["terminalReason"] == "upstream_timeout"


def test_all_are_tried_again_and_a_failure_tells_each(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    config = {"maxSetRetries": 1, "setRetryDelayMs": 10}
    name = make_combo(gateway, *models, config=config)
    upstream.script(FAILED, OK, model="m0")
    upstream.script(FAILED, model="m1")
    answer = call(gateway, name)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-gateway-fallback-attempts"] == "2"
    upstream.script(FAILED, model="m0")
    failed = call(gateway, name)
    diagnostics = failed.json()["diagnostics"]
    assert (diagnostics["poolSize"], diagnostics["terminalReason"]) == (2, "upstream_status")
    assert {one["reason"] for one in diagnostics["failures"]} == {"upstream_status"}
    assert sorted(diagnostics["attemptOrder"]) == sorted(models)


def test_a_short_cooldown_is_waited_for(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    limited = reply({"error": {"message": "slow"}}, status=429, headers=[("Retry-After", "1")])
    name = make_combo(gateway, models[0], config={"cooldownWaitMs": 5_000})
    upstream.script(limited, OK, model="m0")
    assert call(gateway, name).status_code == 200
    assert asked(upstream) == ["m0", "m0"]
    # One that waits before it is asked at all is waited for as well.
    upstream.script(limited, OK, model="m0")
    assert call(gateway, models[0]).status_code == 429
    assert call(gateway, name).status_code == 200


def test_an_answer_that_breaks_the_rules_goes_to_the_next(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    validation = {"forbiddenSubstrings": ["sorry"], "minContentLength": 3}
    name = make_combo(gateway, *models, config={"responseValidation": validation})
    upstream.script(reply(completion("so sorry")), model="m0")
    upstream.script(reply(completion("fine")), reply(completion("no")), model="m1")
    answer = call(gateway, name)
    assert answer.json()["choices"][0]["message"]["content"] == "fine"
    refused = call(gateway, name)
    assert (refused.status_code, refused.json()["error"]["code"]) == (502, "answer_rejected")


SURFACES: Final = {
    CHAT: {"messages": [USER]},
    "/v1/messages": {"messages": [USER], "max_tokens": 9},
    "/v1/responses": {"input": PROMPT, "store": False},
}


@pytest.mark.parametrize("path", SURFACES)
def test_a_stream_that_breaks_the_rules_is_held_back_and_goes_to_the_next(
    gateway: Gateway, models: list[str], upstream: Upstream, path: str
) -> None:
    validation = {"forbiddenSubstrings": ["sorry"]}
    name = make_combo(gateway, *models, config={"responseValidation": validation})
    bad = stream(delta("so "), delta("sorry"), finish(), DONE)
    upstream.script(bad, model="m0")
    upstream.script(stream(delta("fi"), delta("ne"), finish(), DONE), bad, model="m1")
    body = {"model": name, "stream": True, **SURFACES[path]}
    answer = gateway.caller.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert "so " not in answer.text
    assert "ne" in answer.text
    assert answer.headers["x-gateway-fallback-attempts"] == "1"
    refused = gateway.caller.post(path, json=body)
    assert refused.status_code == 502, refused.text
    diagnostics = refused.json()["diagnostics"]
    assert [one["reason"] for one in diagnostics["failures"]] == ["answer_rejected"] * 2
    record = gateway.record(refused.headers["x-gateway-request-id"])
    assert (record["outcome"], record["tokensOutput"]) == ("upstream_failed", 0)


def test_a_stream_passes_as_soon_as_its_beginning_decides(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    rules = {"minContentLength": 3, "requiredSubstrings": ["ok"]}
    name = make_combo(gateway, models[0], config={"responseValidation": rules})
    gate = Gate()
    rest = stream(delta(" then"), finish(), DONE)[1:]
    said = [*stream(delta("well"), delta(" ok"), ended=False), gate, *rest]
    upstream.script(said, model="m0")
    body = {"model": name, "messages": [USER], "stream": True}
    with gateway.caller.stream("POST", CHAT, json=body) as answer:
        lines = answer.iter_lines()
        heard = ""
        while " ok" not in heard:
            heard += next(lines)
        assert "well" in heard
        gate.open()
        assert "then" in "".join(lines)


def test_streams_pass_unjudged_where_the_combo_says_so_and_calls_of_tools_always(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    validation = {"forbiddenSubstrings": ["sorry"], "streams": "pass"}
    name = make_combo(gateway, models[0], config={"responseValidation": validation})
    upstream.script(stream(delta("sorry"), finish(), DONE), model="m0")
    assert "sorry" in call(gateway, name, stream=True).text
    held = make_combo(gateway, models[0], config={"responseValidation": {"minContentLength": 9}})
    function = {"name": "get", "arguments": "{}"}
    calls = [{"index": 0, "id": "call_1", "type": "function", "function": function}]
    calling = event({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]})
    upstream.script(stream(calling, finish("tool_calls"), DONE), model="m0")
    assert "call_1" in call(gateway, held, stream=True).text


@pytest.mark.one_node(reason="each worker holds the limits of a connection for itself")
def test_a_combo_says_how_many_wait_for_a_full_connection_and_how_long(
    gateway: Gateway, lanes: list[Lane], models: list[str], upstream: Upstream
) -> None:
    for lane in lanes:
        path = f"/api/providers/{lane.connections[0]['id']}"
        limits = {"maxConcurrent": 1, "queueDepth": 5, "queueTimeoutMs": 20_000}
        expect(gateway.admin.put(path, json=limits), 200)
    name = make_combo(gateway, models[0], config={"queueDepth": 0})
    gate = Gate()
    upstream.script([gate, *OK], OK, model="m0")
    with ThreadPoolExecutor(2) as pool:
        held = pool.submit(call, gateway, name)
        assert gate.reached.wait(10)
        refused = call(gateway, name)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "accounts_busy")
        short = make_combo(gateway, models[0], config={"queueTimeoutMs": 50})
        assert call(gateway, short).status_code == 429
        expect(
            gateway.admin.put(
                f"/api/providers/{lanes[0].connections[0]['id']}",
                json={"queueDepth": None, "queueTimeoutMs": None},
            ),
            200,
        )
        patient = make_combo(gateway, models[0], config={"queueDepth": 1})
        waiting = pool.submit(call, gateway, patient)
        eventually(lambda: _queued(gateway, lanes[0]) == 1, "one waits")
        gate.open()
        assert (held.result(20).status_code, waiting.result(20).status_code) == (200, 200)


def _queued(gateway: Gateway, lane: Lane) -> int:
    shown = expect(gateway.admin.get("/api/rate-limits"), 200)["connections"]
    wanted = lane.connections[0]["id"]
    return int(next(each for each in shown if each["connectionId"] == wanted)["queued"])


def test_a_mapped_model_is_its_combo(
    gateway: Gateway, lanes: list[Lane], models: list[str], upstream: Upstream
) -> None:
    name = make_combo(gateway, models[1])
    combos = expect(gateway.admin.get("/api/combos", params={"limit": 500}), 200)["combos"]
    combo_id = next(combo["id"] for combo in combos if combo["name"] == name)
    mapping = {"pattern": f"{lanes[0].prefix}/*", "comboId": combo_id}
    made = expect(gateway.admin.post("/api/model-combo-mappings", json=mapping), 201)
    assert call(gateway, models[0]).status_code == 200
    assert asked(upstream) == ["m1"]
    expect(gateway.admin.delete(f"/api/model-combo-mappings/{made['id']}"), 200)
    assert call(gateway, models[0]).status_code == 200
    assert asked(upstream) == ["m1", "m0"]


def test_shadows_are_asked_beside_and_billed_to_nobody(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    shadow = {"targets": [models[1]], "sampleRate": 1, "timeoutMs": 5_000}
    name = make_combo(gateway, models[0], config={"shadowRouting": shadow})
    upstream.script(reply(completion("beside")), model="m1")
    answer = call(gateway, name)
    assert answer.json()["choices"][0]["message"]["content"] == "hello"

    def compared() -> Any:
        params = {"comboName": name}
        found = expect(gateway.admin.get("/api/combos/metrics", params=params), 200)["metrics"][0]
        return found if found.get("shadows") else None

    found = eventually(compared, "the shadow is compared", within_s=15)
    assert sorted(asked(upstream)) == ["m0", "m1"]
    assert found["requests"] == 1
    assert [(one["model"], one["requests"]) for one in found["shadows"]] == [("m1", 1)]
    assert [one["model"] for one in found["targets"]] == ["m0"]


@pytest.mark.one_node(reason="each worker holds the limits of a connection for itself")
def test_a_target_in_turn_has_so_many_requests_at_once_whoever_calls(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    config = {"concurrencyPerModel": 3, "queueDepth": 2, "queueTimeoutMs": 20_000}
    name = make_combo(gateway, *models[:2], strategy="round-robin", config=config)
    gate = Gate()
    for model in ("m0", "m1"):
        upstream.script([gate, *OK], model=model)
    with ThreadPoolExecutor(20) as pool:
        calls = [pool.submit(call, gateway, name) for _ in range(20)]
        try:
            # Three are served and two wait at each target; the others are told at once.
            eventually(
                lambda: sum(each.done() for each in calls) == 10, "ten are told", within_s=15
            )
            told = [each.result() for each in calls if each.done()]
            assert {each.status_code for each in told} == {429}
            assert {each.json()["error"]["code"] for each in told} == {"accounts_busy"}
            assert all(int(each.headers["retry-after"]) >= 1 for each in told)
            assert sorted(asked(upstream)) == ["m0"] * 3 + ["m1"] * 3
        finally:
            gate.open()
        assert sorted(each.result(30).status_code for each in calls) == [200] * 10 + [429] * 10
    assert sorted(asked(upstream)) == ["m0"] * 5 + ["m1"] * 5


@pytest.mark.one_node(reason="each worker holds the limits of a connection for itself")
def test_streams_and_other_dialects_count_at_a_target_in_turn(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    config = {"concurrencyPerModel": 1, "queueDepth": 0}
    name = make_combo(gateway, models[0], strategy="round-robin", config=config)
    gate = Gate()
    said = [*stream(delta("well"), ended=False), gate, *stream(finish(), DONE)[1:]]
    upstream.script(said, OK, model="m0")
    body = {"model": name, "messages": [USER], "stream": True}
    with gateway.caller.stream("POST", CHAT, json=body) as answer:
        lines = answer.iter_lines()
        while "well" not in next(lines):
            pass
        assert call(gateway, name).status_code == 429
        asks = {"model": name, "input": PROMPT}
        assert gateway.caller.post("/v1/responses", json=asks).status_code == 429
        message = {"model": name, "max_tokens": 9, "messages": [USER]}
        assert gateway.caller.post("/v1/messages", json=message).status_code == 429
        gate.open()
        assert answer.status_code == 200
        for _ in lines:
            pass
    assert call(gateway, name).status_code == 200


def test_a_stream_that_fails_at_every_target_says_why(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models)
    upstream.script(FAILED, model="m0")
    upstream.script(FAILED, model="m1")
    refused = call(gateway, name, stream=True)
    assert refused.status_code == 502
    assert refused.headers["content-type"].startswith("application/json")
    assert len(refused.json()["diagnostics"]["failures"]) == 2
    # A caller who is told of the progress has its stream by then: it ends with an event that says the same.
    body = {"model": name, "messages": [USER], "stream": True}
    told = gateway.caller.post(CHAT, json=body, headers={"X-Gateway-Progress": "true"})
    events = [line[6:] for line in told.text.splitlines() if line.startswith("data: {")]
    last = json.loads(events[-1]) if told.status_code == 200 else told.json()
    assert len(last["diagnostics"]["failures"]) == 2
    # One that breaks after its first words goes on with no other target, and ends with an error too.
    upstream.script([SSE_HEAD, chunk(delta("well")), CLOSE], model="m0")
    broken = call(gateway, name, stream=True)
    assert broken.status_code == 200
    events = [line[6:] for line in broken.text.splitlines() if line.startswith("data: {")]
    assert json.loads(events[-1])["error"]["message"]
    assert asked(upstream)[-1] == "m0"


# What a stream of each dialect is asked for by, with its combo's name.
STREAMS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "chat": (CHAT, {"messages": [USER], "stream": True}),
    "messages": ("/v1/messages", {"messages": [USER], "max_tokens": 9, "stream": True}),
    "responses": ("/v1/responses", {"input": PROMPT, "stream": True, "store": False}),
    "gemini": ("/v1beta/models/{name}:streamGenerateContent?alt=sse", {}),
    "gemini, a list": ("/v1beta/models/{name}:streamGenerateContent", {}),
}
BREAKS: Final = {
    "cut off": ([SSE_HEAD, chunk(delta("well")), CLOSE], "upstream_reset"),
    "ended too soon": (stream(delta("well")), "upstream_reset"),
    "an error in the stream": (
        stream(delta("well"), event({"error": {"message": "full", "type": "server_error"}})),
        "upstream_status",
    ),
}


@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize("dialect", STREAMS)
def test_a_stream_that_breaks_after_its_first_words_tells_of_every_target(
    gateway: Gateway, models: list[str], upstream: Upstream, dialect: str, broken: str
) -> None:
    name = make_combo(gateway, *models)
    script, reason = BREAKS[broken]
    upstream.script(FAILED, model="m0")
    upstream.script(script, model="m1")
    path, body = STREAMS[dialect]
    if "{name}" in path:
        body = {"contents": [{"role": "user", "parts": [{"text": PROMPT}]}]}
    else:
        body = {"model": name, **body}
    told = gateway.caller.post(path.replace("{name}", name), json=body)
    assert told.status_code == 200
    assert "well" in told.text
    if dialect == "gemini, a list":
        last = told.json()[-1]
    else:
        lines = [line for line in told.text.splitlines() if line.startswith("data: {")]
        last = json.loads(lines[-1][6:])
    assert "error" in (last.get("response") or last)
    diagnostics = last["diagnostics"]
    assert (diagnostics["poolSize"], diagnostics["attempted"]) == (2, 2)
    assert diagnostics["attemptOrder"] == models
    assert [one["target"] for one in diagnostics["failures"]] == models
    assert [one["reason"] for one in diagnostics["failures"]] == ["upstream_status", reason]
    assert diagnostics["terminalReason"] == reason
    assert asked(upstream) == ["m0", "m1"], "the caller had words of the last one by then"


def test_a_stream_of_one_model_that_breaks_tells_of_no_targets(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    upstream.script(BREAKS["cut off"][0], model="m0")
    told = call(gateway, models[0], stream=True)
    assert told.status_code == 200
    assert "diagnostics" not in told.text
    assert "upstream_reset" in told.text

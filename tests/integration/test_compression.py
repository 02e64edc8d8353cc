"""What of a conversation is sent: made shorter as somebody asks, thinking, system prompt, the model's window."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Upstream, completion, reply

CALL = {"name": "shell", "arguments": json.dumps({"command": "pip install -r requirements.txt"})}
OUTPUT = "\n".join(
    [f"Collecting package-{n}==1.{n}.0" for n in range(60)]
    + ["ERROR: No matching distribution found for package-61==9"]
)
MESSAGES = [
    {"role": "system", "content": "You help."},
    {
        "role": "user",
        "content": "Could you please install it, thank you very much in advance, and tell me why?",
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": CALL}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": OUTPUT},
]


@contextmanager
def settings(gateway: Gateway, **changed: Any) -> Iterator[None]:
    """Operator settings for a while."""
    before = expect(gateway.admin.get("/api/settings"), 200)
    expect(gateway.admin.patch("/api/settings", json=changed), 200)
    try:
        yield
    finally:
        back = {name: before[name] for name in changed}
        expect(gateway.admin.patch("/api/settings", json=back), 200)


def ask(
    lane: Lane, header: str | None = None, key: str | None = None, **fields: Any
) -> tuple[httpx.Response, Any]:
    """The answer, and the body that the provider got."""
    lane.upstream.script(reply(completion("done")))
    headers = {} if header is None else {"X-Gateway-Compression": header}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    body = lane.body(**{"messages": MESSAGES, **fields})
    answer = lane.gateway.caller.post("/v1/chat/completions", json=body, headers=headers)
    expect(answer, 200)
    return answer, lane.upstream.last.json()


def test_a_header_names_the_pipeline_and_the_answer_says_what_it_did(lane: Lane) -> None:
    answer, sent = ask(lane, "rtk", temperature=1)
    told = answer.headers["x-gateway-compression"]
    name, before, after, ms = [part.strip() for part in told.split(";")]
    assert name == "rtk"
    tokens = [int(part.partition("=")[2]) for part in (before, after)]
    assert tokens[1] < tokens[0] / 2, told
    assert float(ms.partition("=")[2]) < 1000
    output = sent["messages"][3]["content"]
    assert "ERROR: No matching distribution found for package-61==9" in output
    assert len(output) < len(OUTPUT) / 2
    # Everything else goes out as it came.
    assert sent["messages"][:3] == MESSAGES[:3]
    assert sent["messages"][3]["tool_call_id"] == "call_1"
    record = eventually(
        lambda: lane.gateway.shown_records(model=lane.model), "it is on record", within_s=8
    )[0]
    assert record["compression"] == "rtk"
    assert [record["compressionTokensBefore"], record["compressionTokensAfter"]] == tokens
    assert record["compressionMs"] > 0


def test_off_is_off_and_an_unknown_name_is_told(lane: Lane) -> None:
    for header in (None, "off", "default"):
        answer, sent = ask(lane, header)
        assert sent["messages"] == MESSAGES
        assert "x-gateway-compression" not in answer.headers
    refused = lane.gateway.caller.post(
        "/v1/chat/completions", json=lane.body(), headers={"X-Gateway-Compression": "zip"}
    )
    error = expect(refused, 400)["error"]
    assert error["param"] == "X-Gateway-Compression"
    assert "`stacked`" in error["message"]
    assert "`engine:lite`" in error["message"]


def test_the_header_goes_before_the_key_and_that_before_the_combo_and_the_default(
    gateway: Gateway, lane: Lane
) -> None:
    admin = gateway.admin
    pipeline = {"name": f"mine {lane.prefix}", "stages": [{"engine": "columnar"}]}
    made = expect(admin.post("/api/context/combos", json=pipeline), 201)
    combo = expect(
        admin.post(
            "/api/combos",
            json={
                "name": f"c-{lane.prefix}",
                "strategy": "priority",
                "models": [{"kind": "model", "model": lane.model}],
            },
        ),
        201,
    )
    at = f"/api/context/combos/{made['id']}/assignments"
    assigned = expect(admin.put(at, json={"comboIds": [combo["id"]]}), 200)["assignments"]
    assert assigned == [{"id": combo["id"], "name": combo["name"]}]
    quiet = gateway.create_key(compressionEnabled=False)["key"]

    def pipeline_of(header: str | None = None, key: str | None = None, **fields: Any) -> str | None:
        told = ask(lane, header, key, **fields)[0].headers.get("x-gateway-compression")
        return told and told.partition(";")[0]

    try:
        with settings(
            gateway,
            compressionMode="lite",
            compressionAutomaticTokens=2_000,
            compressionAutomaticMode="rtk",
        ):
            assert pipeline_of() == "lite"
            assert (
                pipeline_of(messages=[*MESSAGES, {"role": "user", "content": "a" * 9_000}]) == "rtk"
            )
            assert pipeline_of(model=combo["name"]) == made["name"]
            assert pipeline_of(model=combo["name"], header="engine:lite") == "engine:lite"
            assert pipeline_of(key=quiet) is None
            assert pipeline_of(key=quiet, header="rtk") == "rtk"
            assert pipeline_of(header="off") is None
            # What is in force is not deleted.
            with settings(gateway, compressionMode=made["name"]):
                refused = admin.delete(f"/api/context/combos/{made['id']}")
                assert expect(refused, 409)["error"]["param"] == "name"
    finally:
        expect(admin.delete(f"/api/context/combos/{made['id']}"), 200)
        expect(admin.delete(f"/api/combos/{combo['id']}"), 200)


@pytest.mark.one_node(reason="each worker remembers what it sent of a session")
def test_earlier_turns_of_a_session_go_out_byte_by_byte(lane: Lane) -> None:
    headers = {"X-Session-Id": lane.prefix, "X-Gateway-Compression": "ultra"}
    messages: list[Any] = list(MESSAGES)
    earlier: list[Any] = []
    for turn in range(4):
        lane.upstream.script(reply(completion("done")))
        body = lane.body(messages=messages)
        expect(lane.gateway.caller.post("/v1/chat/completions", json=body, headers=headers), 200)
        sent = lane.upstream.last.json()["messages"]
        assert sent[: len(earlier)] == earlier
        earlier = sent
        messages += [
            {"role": "assistant", "content": "It is really basically done, as I may say, " * 5},
            {
                "role": "user",
                "content": f"Could you please do it again in order to be sure? {turn} " * 5,
            },
        ]


@pytest.mark.parametrize("policy", ["pass", "refuse", "trim"])
def test_a_request_that_is_too_long_for_its_model(
    gateway: Gateway, lane: Lane, policy: str
) -> None:
    model = {
        "provider": lane.node["id"],
        "modelId": "m",
        "contextWindowOverride": 400,
    }
    expect(gateway.admin.post("/api/provider-models", json=model), 201)
    lane.upstream.script(reply(completion("done")))
    long = [{"role": "user", "content": "word " * 400}, {"role": "assistant", "content": "yes"}]
    messages = [
        {"role": "system", "content": "s"},
        *long,
        *long,
        {"role": "user", "content": "now"},
    ]
    with settings(gateway, contextWindowPolicy=policy):
        answer = gateway.caller.post("/v1/chat/completions", json=lane.body(messages=messages))
    if policy == "refuse":
        error = expect(answer, 400)["error"]
        assert error["code"] == "context_length_exceeded"
        assert "400" in error["message"]
        assert not lane.upstream.requests
        return
    expect(answer, 200)
    sent = lane.upstream.last.json()["messages"]
    if policy == "pass":
        assert sent == messages
    else:
        assert sent[0] == messages[0]
        assert "4 earlier messages were left out" in sent[1]["content"]
        assert sent[2:] == messages[5:]


def test_the_operator_speaks_before_and_after_the_callers_system_prompt(
    gateway: Gateway, lane: Lane
) -> None:
    with settings(gateway, systemPromptPrefix="Before.", systemPromptSuffix="After."):
        _, sent = ask(lane)
    said = [(each["role"], each["content"]) for each in sent["messages"][:3]]
    assert said == [("system", "Before."), ("system", "You help."), ("system", "After.")]
    assert sent["messages"][3:] == MESSAGES[1:]


def test_thinking_is_rewritten_where_it_is_said(gateway: Gateway, lane: Lane) -> None:
    with settings(gateway, thinkingBudgetMode="custom", thinkingBudgetTokens=2_000):
        assert ask(lane, reasoning_effort="high")[1]["reasoning_effort"] == "low"
        assert "reasoning_effort" not in ask(lane)[1]
        assert ask(lane, reasoning_effort="none")[1]["reasoning_effort"] == "none"
    with settings(gateway, thinkingBudgetMode="auto-strip"):
        assert "reasoning_effort" not in ask(lane, reasoning_effort="high")[1]


def test_routes_of_settings_change_one_group_and_name_what_is_wrong(gateway: Gateway) -> None:
    admin = gateway.admin
    before = expect(admin.get("/api/settings"), 200)
    for path, body, param in [
        ("/api/settings/compression", {"mode": "zip"}, "mode"),
        ("/api/settings/compression", {"automaticTokens": -1}, "automaticTokens"),
        ("/api/settings/compression", {"mode": "off", "level": 1}, "level"),
        ("/api/settings/thinking-budget", {"mode": "much"}, "mode"),
        ("/api/settings/system-prompt", {"prefix": 7}, "prefix"),
        ("/api/settings/context-window", {"policy": "cut"}, "policy"),
        ("/api/context/caveman/config", {"languages": ["tlh"]}, "languages"),
        ("/api/context/rtk/config", {"level": "some"}, "level"),
        ("/api/context/rtk/config", {"filters": [{"toml": "x", "sha256": "0" * 64}]}, "filters[0]"),
    ]:
        error = expect(admin.put(path, json=body), 400)["error"]
        assert error["param"] == param, (path, error)
    after = expect(admin.get("/api/settings"), 200)
    assert after == before
    with settings(gateway, compressionMode="off", compressionAutomaticTokens=0):
        changed = expect(admin.put("/api/settings/compression", json={"mode": "lite"}), 200)
        assert changed == {"mode": "lite", "automaticTokens": 0, "automaticMode": "standard"}


def test_own_filters_are_taken_with_their_hash_and_work(gateway: Gateway, lane: Lane) -> None:
    admin = gateway.admin
    toml = '[[filter]]\nid = "tide"\ncommands = ["tide"]\ndrop = ["^noise"]\n'
    wrong = {"filters": [{"toml": toml, "sha256": "0" * 64}]}
    message = expect(admin.put("/api/context/rtk/config", json=wrong), 400)["error"]["message"]
    digest = next(word.rstrip(":") for word in message.split() if len(word.rstrip(":")) == 64)
    try:
        right = {"filters": [{"toml": toml, "sha256": digest}]}
        expect(admin.put("/api/context/rtk/config", json=right), 200)
        shown = expect(admin.get("/api/context/rtk/filters"), 200)["filters"]
        assert shown[0] == {"id": "tide", "commands": ["tide"], "source": "own"}
        assert len(shown) > 40
        output = "\n".join(
            ["high water at 9", *[f"noise {'abcdef'[n % 6] * n}" for n in range(1, 40)]]
        )
        call = {"name": "shell", "arguments": json.dumps({"command": "tide --today"})}
        called = {**MESSAGES[2], "tool_calls": [{**MESSAGES[2]["tool_calls"][0], "function": call}]}
        messages = [*MESSAGES[:2], called, {**MESSAGES[3], "content": output}]
        _, sent = ask(lane, "engine:rtk", messages=messages)
        shown = sent["messages"][3]["content"]
        assert "high water at 9" in shown
        assert "noise" not in shown
        body = {"text": output, "command": "tide --today"}
        tested = expect(admin.post("/api/context/rtk/test", json=body), 200)
        assert (tested["isChanged"], tested["text"]) == (True, shown)
    finally:
        expect(admin.put("/api/context/rtk/config", json={"filters": []}), 200)


def test_a_preview_shows_both_sides(gateway: Gateway) -> None:
    admin = gateway.admin
    body = {"messages": MESSAGES, "mode": "standard"}
    shown = expect(admin.post("/api/compression/preview", json=body), 200)
    assert shown["tokensSaved"] > 0
    assert shown["savingsPct"] > 50
    engines = [each["engine"] for each in shown["engineBreakdown"]]
    assert engines == ["caveman", "rtk", "lite", "columnar", "session-dedup"]
    for change in shown["diff"]:
        parts = change["segments"]
        original = "".join(part["text"] for part in parts if part["kind"] != "added")
        assert original == MESSAGES[change["turn"]]["content"]
    assert shown["compressed"]["messages"][0] == MESSAGES[0]
    for wrong, param in [
        ({"messages": MESSAGES, "mode": "zip"}, "mode"),
        ({"messages": MESSAGES, "engineId": "zip"}, "engineId"),
        ({"messages": []}, "messages"),
    ]:
        error = expect(admin.post("/api/compression/preview", json=wrong), 400)["error"]
        assert error["param"] == param
    expect(admin.post("/api/compression/preview", json={}), 400)
    packs = expect(admin.get("/api/compression/language-packs"), 200)
    assert {"en", "de", "ja"} <= set(packs["languages"])
    rules = expect(admin.get("/api/compression/rules", params={"language": "de"}), 200)["rules"]
    assert rules
    assert {rule["language"] for rule in rules} == {"de"}


def test_analytics_say_what_was_saved(gateway: Gateway, lane: Lane, upstream: Upstream) -> None:
    ask(lane, "stacked")

    def found() -> Any:
        shown = expect(gateway.admin.get("/api/context/analytics"), 200)
        return "stacked" in [each["name"] for each in shown["groups"]] and shown

    shown = eventually(found, "the call is in the sums", within_s=10)
    assert shown["total"]["tokensSaved"] > 0
    assert 0 < shown["total"]["savedPercent"] < 100
    for group in ("key", "model", "day"):
        query = {"groupBy": group, "range": "7d"}
        shown = expect(gateway.admin.get("/api/context/analytics", params=query), 200)
        assert sum(each["tokensSaved"] for each in shown["groups"]) == shown["total"]["tokensSaved"]

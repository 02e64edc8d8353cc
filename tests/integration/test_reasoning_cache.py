"""What a model thought before it called a tool goes back to a provider that wants it, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import DONE, Upstream, completion, event, finish, reply, stream

STATE = "/api/cache/reasoning"
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
THOUGHT = 'The user wants "weather".\nSo I look.'


@pytest.fixture
def wanting(gateway: Gateway, upstream: Upstream) -> Iterator[Lane]:
    """A lane whose provider wants back what it thought."""
    lane = gateway.add_lane(upstream)
    path = f"/api/providers/{lane.connections[0]['id']}"
    body = {"providerSpecificData": {"reasoningReplay": True}}
    expect(gateway.admin.put(path, json=body), 200)
    yield lane
    expect(gateway.admin.delete(STATE), 200)


def tool_call(call_id: str) -> dict[str, Any]:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city":"Oslo"}'},
    }


def thinking(*call_ids: str) -> dict[str, Any]:
    """A whole answer that thinks and calls."""
    answer = completion()
    answer["choices"][0] = {
        "index": 0,
        "finish_reason": "tool_calls",
        "message": {
            "role": "assistant",
            "content": None,
            "reasoning_content": THOUGHT,
            "tool_calls": [tool_call(each) for each in call_ids],
        },
    }
    return answer


def thinking_stream(call_id: str) -> Any:
    def delta(**members: Any) -> bytes:
        return event({"id": "c", "model": "m", "choices": [{"index": 0, "delta": members}]})

    half = len(THOUGHT) // 2
    called = [{"index": 0, **tool_call(call_id)}]
    return stream(
        delta(role="assistant", reasoning_content=THOUGHT[:half]),
        delta(reasoning_content=THOUGHT[half:]),
        delta(tool_calls=called),
        finish("tool_calls"),
        DONE,
    )


def going_on(lane: Lane, *call_ids: str) -> dict[str, Any]:
    """The next turn of a client that sends no thoughts back."""
    calls = [tool_call(each) for each in call_ids]
    results = [{"role": "tool", "tool_call_id": each, "content": "-3"} for each in call_ids]
    messages = [
        {"role": "user", "content": "How is the weather?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *results,
    ]
    return lane.body(messages=messages, tools=TOOLS)


def ask(lane: Lane, body: dict[str, Any], key: str | None = None) -> httpx.Response:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    answer = lane.gateway.caller.post(CHAT, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


def goes_back(lane: Lane, call_id: str) -> bool:
    """Whether the thought goes back with the next turn, at the latest when who heard it has told the other workers."""

    def is_sent_back() -> bool:
        ask(lane, going_on(lane, call_id))
        return sent_back(lane) == THOUGHT

    within_s = lane.gateway.told_within_s
    return eventually(is_sent_back, "the thought goes back", within_s=within_s, every_s=0.1)


def sent_back(lane: Lane) -> str | None:
    """What the provider was sent of the thoughts before the last call."""
    calls = [each for each in lane.upstream.last.json()["messages"] if each.get("tool_calls")]
    return calls[-1].get("reasoning_content")  # type: ignore[no-any-return]


@pytest.mark.parametrize("is_stream", [False, True], ids=["plain", "stream"])
def test_a_thought_goes_back_with_its_call(
    gateway: Gateway, wanting: Lane, is_stream: bool
) -> None:
    wanting.upstream.script(
        thinking_stream("call_1") if is_stream else reply(thinking("call_1", "call_2")),
        reply(completion()),
    )
    ask(wanting, wanting.body(tools=TOOLS, stream=is_stream))
    assert goes_back(wanting, "call_1")
    ask(wanting, going_on(wanting, "call_unknown"))
    assert sent_back(wanting) == " "
    own = going_on(wanting, "call_1")
    own["messages"][1]["reasoning_content"] = "mine"
    ask(wanting, own)
    assert sent_back(wanting) == "mine"

    stranger = gateway.create_key()["key"]
    ask(wanting, going_on(wanting, "call_1"), stranger)
    assert sent_back(wanting) == " ", "another caller's call of the same id"


def test_a_caller_of_another_dialect_gets_its_thought_back(wanting: Lane) -> None:
    wanting.upstream.script(reply(thinking("call_m")), reply(completion()))
    body: dict[str, Any] = {
        "model": wanting.model,
        "max_tokens": 99,
        "tools": [{"name": "weather", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": "How is the weather?"}],
    }
    first = expect(wanting.gateway.caller.post("/v1/messages", json=body), 200)
    (used,) = [each for each in first["content"] if each["type"] == "tool_use"]
    body["messages"] += [
        {"role": "assistant", "content": [used]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": used["id"], "content": "-3"}],
        },
    ]

    def is_sent_back() -> bool:
        expect(wanting.gateway.caller.post("/v1/messages", json=body), 200)
        return sent_back(wanting) == THOUGHT

    within_s = wanting.gateway.told_within_s
    eventually(is_sent_back, "the thought goes back", within_s=within_s, every_s=0.1)


def test_a_provider_that_did_not_ask_for_it_gets_the_bytes_as_they_came(lane: Lane) -> None:
    lane.upstream.script(reply(thinking("call_1")), reply(completion()))
    ask(lane, lane.body(tools=TOOLS))
    ask(lane, going_on(lane, "call_1"))
    assert sent_back(lane) is None


@pytest.mark.one_node(reason="management shows what the workers of one node heard")
def test_the_state_is_told_and_forgotten(gateway: Gateway, wanting: Lane) -> None:
    wanting.upstream.script(reply(thinking("call_a", "call_b")), reply(thinking("call_c")))
    for _ in range(2):
        ask(wanting, wanting.body(tools=TOOLS))
    before = expect(gateway.admin.get(STATE), 200)
    assert [each["toolCallId"] for each in before["entries"]] == ["call_c", "call_b", "call_a"]
    assert {each["provider"] for each in before["entries"]} == {wanting.node["id"]}
    assert before["total"] == before["stats"]["entries"] == 3
    assert before["stats"]["maxEntries"] == 2000
    assert THOUGHT not in str(before)
    one = expect(gateway.admin.get(STATE, params={"limit": 1, "offset": 1}), 200)
    assert [each["toolCallId"] for each in one["entries"]] == ["call_b"]

    wanting.upstream.script(reply(completion()))
    ask(wanting, going_on(wanting, "call_a"))
    after = expect(gateway.admin.get(STATE, params={"toolCallId": "call_a"}), 200)
    assert [each["hits"] for each in after["entries"]] == [1]
    assert after["stats"]["hits"] == before["stats"]["hits"] + 1

    def forget(**query: str) -> int:
        return int(expect(gateway.admin.delete(STATE, params=query), 200)["removed"])

    assert forget(toolCallId="call_b") == 1
    for ask_state in (gateway.admin.get, gateway.admin.delete):
        refused = ask_state(STATE, params={"provider": "nobody"})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "provider")
    by_id = expect(gateway.admin.get(STATE, params={"provider": wanting.node["id"]}), 200)
    assert by_id["total"] == 2
    assert forget(provider=wanting.prefix) == 2
    assert forget() == 0
    ask(wanting, going_on(wanting, "call_a"))
    assert sent_back(wanting) == " "


def test_only_people_manage_it(gateway: Gateway) -> None:
    assert gateway.caller.get(STATE).status_code == 403
    assert gateway.caller.delete(STATE).status_code == 403

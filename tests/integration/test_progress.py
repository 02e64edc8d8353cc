"""Progress events: only where asked for, between events, and one before the end."""

from __future__ import annotations

import json

from tests.support.chat import CHAT, events_of
from tests.support.processes import Gateway, Lane
from tests.support.upstream import DONE, RESET, SSE_HEAD, Wait, chunk, delta, finish, stream

ASKED = {"X-Gateway-Progress": "true"}


def test_nobody_gets_them_unasked(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(stream(delta("a"), finish(), DONE))
    for headers in ({}, {"X-Gateway-Progress": "false"}):
        answer = gateway.caller.post(CHAT, json=lane.body(stream=True), headers=headers)
        assert "x-gateway-progress" not in answer.headers
        assert b"progress" not in answer.content


def test_a_stream_tells_how_far_it_is(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(
        [
            SSE_HEAD,
            chunk(delta("a") + delta("b")),
            Wait(2.2),
            chunk(delta("c")),
            # What comes with the end is told with the end.
            Wait(0.3),
            chunk(finish() + DONE) + b"0\r\n\r\n",
        ]
    )
    answer = gateway.caller.post(CHAT, json=lane.body(stream=True), headers=ASKED)
    assert answer.headers["x-gateway-progress"] == "enabled"
    blocks = answer.text.split("\n\n")
    told = [
        json.loads(block.split("data: ")[1])
        for block in blocks
        if block.startswith("event: progress")
    ]
    assert [one["tokens_generated"] for one in told] == [3, 4]
    assert [one.get("done") for one in told] == [None, True]
    assert 2000 <= told[0]["elapsed_ms"] <= told[1]["elapsed_ms"]
    assert all(one["choices"] == [] for one in told), "no reader of chunks trips over them"
    events = events_of(answer.content)
    assert events[-1] == "[DONE]"
    contents = [
        one["choices"][0]["delta"].get("content")
        for one in map(json.loads, events[:-1])
        if one["choices"]
    ]
    assert contents == ["a", "b", "c", None]


def test_a_stream_that_fails_says_so_and_no_more(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script([SSE_HEAD, chunk(delta("a")), RESET])
    answer = gateway.caller.post(CHAT, json=lane.body(stream=True), headers=ASKED)
    events = events_of(answer.content)
    assert events[-1] == "[DONE]"
    assert "error" in json.loads(events[-2])
    assert b'"done":true' not in answer.content


def test_a_plain_answer_has_none(gateway: Gateway, lane: Lane) -> None:
    answer = gateway.caller.post(CHAT, json=lane.body(), headers=ASKED)
    assert answer.status_code == 200
    assert "x-gateway-progress" not in answer.headers

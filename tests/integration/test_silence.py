"""Providers that go silent: each kind of silence has its timer, and the caller's connection is kept alive meanwhile."""

from __future__ import annotations

import time

import pytest

from tests.support.chat import (
    ask,
    assert_failed,
    error_of,
    events_of,
    failure_code,
    read_stream,
    request_id,
    send_chat,
    terminal_error,
)
from tests.support.polling import eventually
from tests.support.processes import Gateway
from tests.support.raw import RawClient
from tests.support.upstream import (
    DONE,
    LAST_CHUNK,
    SSE_HEAD,
    STALL,
    Gate,
    Step,
    Upstream,
    chunk,
    delta,
    finish,
    head,
    reply,
)

LONG_MS = 20_000
SHORT_MS = 300
# A timer of 300 ms has fired by then even on a busy machine; the long ones have not.
FIRED_WITHIN_S = 5.0


def assert_fired(started: float) -> None:
    assert SHORT_MS / 1000 * 0.9 <= time.monotonic() - started < FIRED_WITHIN_S


def test_no_header_in_time(gateway: Gateway, upstream: Upstream) -> None:
    """S9: headers of a stream that do not come end it by the header timer, and the provider's socket with it."""
    lane = gateway.add_lane(
        upstream, headerMs=SHORT_MS, firstTokenMs=LONG_MS, idleMs=LONG_MS, answerMs=LONG_MS
    )
    upstream.script([STALL])
    started = time.monotonic()
    answer = ask(lane, stream=True)
    assert failure_code(answer) == "upstream_timeout"
    assert_fired(started)
    eventually(lambda: upstream.last.gone_at, "the provider's socket is closed", within_s=1)
    assert_failed(gateway, answer, "upstream_timeout")


def test_no_plain_answer_in_time(gateway: Gateway, upstream: Upstream) -> None:
    """S9: a plain answer has a timer of its own."""
    lane = gateway.add_lane(
        upstream, answerMs=SHORT_MS, headerMs=LONG_MS, firstTokenMs=LONG_MS, idleMs=LONG_MS
    )
    upstream.script([STALL])
    started = time.monotonic()
    answer = ask(lane)
    assert error_of(answer) == (504, "upstream_timeout")
    assert_fired(started)
    eventually(lambda: upstream.last.gone_at, "the provider's socket is closed", within_s=1)


def test_no_first_token_in_time(gateway: Gateway, upstream: Upstream) -> None:
    """S9: headers came, the first event does not: the first-token timer tells, not the longer ones."""
    lane = gateway.add_lane(
        upstream, firstTokenMs=SHORT_MS, headerMs=LONG_MS, idleMs=LONG_MS, answerMs=LONG_MS
    )
    upstream.script([SSE_HEAD, STALL])
    started = time.monotonic()
    answer = ask(lane, stream=True)
    assert failure_code(answer) == "upstream_first_token_timeout"
    assert_fired(started)
    eventually(lambda: upstream.last.gone_at, "the provider's socket is closed", within_s=1)
    assert_failed(gateway, answer, "upstream_first_token_timeout")


def test_silence_in_the_middle(gateway: Gateway, upstream: Upstream) -> None:
    """S9: silence between events ends the stream in its own form, by the idle timer."""
    lane = gateway.add_lane(
        upstream, idleMs=SHORT_MS, firstTokenMs=LONG_MS, headerMs=LONG_MS, answerMs=LONG_MS
    )
    upstream.script([SSE_HEAD, chunk(delta("a")), STALL])
    started = time.monotonic()
    answer = ask(lane, stream=True)
    assert answer.body.startswith(delta("a"))
    assert terminal_error(answer.body)["code"] == "upstream_idle_timeout"
    assert_fired(started)
    eventually(lambda: upstream.last.gone_at, "the provider's socket is closed", within_s=1)
    assert_failed(gateway, answer, "upstream_idle_timeout")


def test_the_three_silences_of_a_stream_are_told_apart(
    gateway: Gateway, upstream: Upstream
) -> None:
    """S9: header, first token and idle timer: a caller who reads the error knows which one it was."""
    timers = {
        "headerMs": [STALL],
        "firstTokenMs": [SSE_HEAD, STALL],
        "idleMs": [SSE_HEAD, chunk(delta("a")), STALL],
    }
    codes = []
    for timer, script in timers.items():
        others = {name: LONG_MS for name in timers if name != timer}
        lane = gateway.add_lane(upstream, **{timer: SHORT_MS}, **others)
        upstream.script(script)
        answer = ask(lane, stream=True)
        error = terminal_error(answer.body) if answer.status == 200 else answer.json()["error"]
        codes.append(error["code"])
    assert codes == [
        "upstream_timeout",
        "upstream_first_token_timeout",
        "upstream_idle_timeout",
    ]


def test_silence_inside_a_plain_answer(gateway: Gateway, upstream: Upstream) -> None:
    """S9: half a plain answer and then silence is a 504, not a wait without end."""
    lane = gateway.add_lane(upstream, idleMs=SHORT_MS, answerMs=LONG_MS)
    announced = head(200, [("Content-Type", "application/json"), ("Content-Length", "500")])
    upstream.script([announced + b'{"choices"', STALL])
    started = time.monotonic()
    answer = ask(lane)
    assert error_of(answer) == (504, "upstream_idle_timeout")
    assert_fired(started)


def test_a_stream_has_no_total(gateway: Gateway, upstream: Upstream) -> None:
    """S9: a stream that keeps talking outlives every one of its timers."""
    lane = gateway.add_lane(upstream, headerMs=500, firstTokenMs=500, idleMs=500, answerMs=500)
    gates = [Gate() for _ in range(8)]
    steps: list[Step] = [SSE_HEAD]
    for gate in gates:
        steps += [chunk(delta("x")), gate]
    upstream.script([*steps, chunk(finish() + DONE), LAST_CHUNK])
    started = time.monotonic()
    with RawClient(gateway.port) as client:
        send_chat(client, lane, stream=True)
        client.head()
        for number, gate in enumerate(gates, 1):
            assert client.body_until(delta("x")) == delta("x")
            eventually(
                lambda at=started + number * 0.15: time.monotonic() >= at, "the provider thinks"
            )
            gate.open()
        assert client.body_until(DONE) == finish() + DONE
    assert time.monotonic() - started > 1.0


AFTER_SILENCE: list[Step] = [chunk(delta("b")), chunk(finish() + DONE), LAST_CHUNK]
SILENT_PLACES: dict[str, tuple[list[Step], list[Step], bytes]] = {
    "before the headers": ([], [SSE_HEAD], b""),
    "before the first token": ([SSE_HEAD], [], b""),
    "in the middle": ([SSE_HEAD, chunk(delta("a"))], [], delta("a")),
}


@pytest.mark.parametrize(
    ("before", "after", "content"), SILENT_PLACES.values(), ids=SILENT_PLACES.keys()
)
def test_a_silent_stream_is_kept_alive(
    hasty_gateway: Gateway,
    upstream: Upstream,
    before: list[Step],
    after: list[Step],
    content: bytes,
) -> None:
    """S9: while a provider is silent the caller gets comments, and the events come whole afterwards."""
    lane = hasty_gateway.add_lane(upstream)
    gate = Gate()
    upstream.script([*before, gate, *after, *AFTER_SILENCE])
    with RawClient(hasty_gateway.port) as client:
        send_chat(client, lane, stream=True)
        assert client.head().status == 200
        got = read_stream(client, lambda text: (b"\n" + text).count(b"\n:") >= 3)
        gate.open()
        got += client.body_until(DONE)
    assert events_of(got) == events_of(content + delta("b") + finish() + DONE)


def test_a_rejection_after_a_comment_is_told_in_the_stream(
    hasty_gateway: Gateway, upstream: Upstream
) -> None:
    """S9: with the head out the status is spent: the provider's words come as the stream's one terminal error."""
    lane = hasty_gateway.add_lane(upstream, connections=2)
    gate = Gate()
    told = {"message": "too long", "type": "invalid_request_error", "code": "the_code"}
    upstream.script([gate, *reply({"error": told}, 400)])
    with RawClient(hasty_gateway.port) as client:
        send_chat(client, lane, stream=True)
        answer = client.head()
        assert answer.status == 200
        answer.body = read_stream(client, lambda text: text.startswith(b":"))
        gate.open()
        answer.body += b"".join(iter(client.chunk, None))
    error = terminal_error(answer.body)
    assert len(events_of(answer.body)) == 2, "something stands beside the error and [DONE]"
    assert {name: error[name] for name in told} == told
    assert len(upstream.requests) == 1
    record = hasty_gateway.record(request_id(answer))
    assert (record["status"], record["outcome"]) == (200, "upstream_failed")


def test_a_comment_never_splits_an_event(hasty_gateway: Gateway, upstream: Upstream) -> None:
    """S9: a provider that pauses inside an event gets no comment put into it."""
    lane = hasty_gateway.add_lane(upstream)
    gate = Gate()
    whole = delta("paused")
    halves: list[Step] = [chunk(whole[:25]), gate, chunk(whole[25:])]
    upstream.script([SSE_HEAD, chunk(delta("a")), *halves, chunk(finish() + DONE), LAST_CHUNK])
    with RawClient(hasty_gateway.port) as client:
        send_chat(client, lane, stream=True)
        client.head()
        got = client.body_until(delta("a"))
        assert gate.reached.wait(5)
        paused_until = time.monotonic() + 0.6
        eventually(lambda: time.monotonic() > paused_until, "three heartbeats' time passed")
        gate.open()
        got += client.body_until(DONE)
    assert events_of(got) == events_of(delta("a") + whole + finish() + DONE)

"""Streams that a provider breaks, bends or ends badly: the caller can always tell a whole answer from a broken one."""

from __future__ import annotations

import pytest

from tests.support.chat import (
    ask,
    assert_failed,
    error_of,
    events_of,
    failure_code,
    request_id,
    send_chat,
    terminal_error,
)
from tests.support.processes import Gateway, Lane
from tests.support.raw import RawClient
from tests.support.upstream import (
    CLOSE,
    DONE,
    RESET,
    SSE_HEAD,
    Gate,
    Step,
    Upstream,
    chunk,
    completion,
    delta,
    event,
    finish,
    head,
    reply,
    stream,
    usage_event,
)

MIB = 1024 * 1024
OPEN_ENDED = head(200, [("Content-Type", "text/event-stream"), ("Connection", "close")])
TOO_SHORT = head(200, [("Content-Type", "text/event-stream"), ("Content-Length", "10000")])

# --------------------------------------------------------------------------------- S1, S2, S4: cut

BROKEN_ENDS: dict[str, list[Step]] = {
    "S1 closed inside a chunked body": [SSE_HEAD, chunk(delta("a")), chunk(delta("b")), CLOSE],
    "S1 shorter than its length": [TOO_SHORT + delta("a") + delta("b"), CLOSE],
    "S2 chunk cut in the middle": [
        SSE_HEAD,
        chunk(delta("a") + delta("b")),
        b"400\r\ndata: {",
        CLOSE,
    ],
    "S2 chunk size is nonsense": [SSE_HEAD, chunk(delta("a") + delta("b")), b"zz\r\n", CLOSE],
    "S4 ended in good order without an end": stream(delta("a"), delta("b")),
    "S4 ended by closing without an end": [OPEN_ENDED + delta("a") + delta("b"), CLOSE],
}


@pytest.mark.parametrize("script", BROKEN_ENDS.values(), ids=BROKEN_ENDS.keys())
def test_a_stream_that_breaks_is_told_as_broken(
    gateway: Gateway, lane: Lane, script: list[Step]
) -> None:
    """The events that came pass as they are; then an error object and `[DONE]`; never a lone `[DONE]`."""
    lane.upstream.script(script)
    answer = ask(lane, stream=True)
    assert answer.status == 200
    assert answer.body.startswith(delta("a") + delta("b"))
    code = failure_code(answer)
    assert code in {"upstream_reset", "upstream_invalid"}
    assert_failed(gateway, answer, code)
    assert len(lane.upstream.requests) == 1, "retried although bytes had gone to the caller"


def test_a_reset_stream_is_told_as_broken(gateway: Gateway, lane: Lane) -> None:
    """S2: RST once the first event has been read; the tokens that were told are settled."""
    gate = Gate()
    lane.upstream.script([SSE_HEAD, chunk(delta("a") + usage_event(5, 1)), gate, RESET])
    with RawClient(gateway.port) as client:
        send_chat(client, lane, stream=True)
        answer = client.head()
        answer.body = client.body_until(delta("a"))
        gate.open()
        answer.body += b"".join(iter(client.chunk, None))
    assert terminal_error(answer.body)["code"] == "upstream_reset"
    record = assert_failed(gateway, answer, "upstream_reset")
    assert (record["tokensInput"], record["tokensOutput"]) == (5, 1)


def test_a_finish_reason_before_a_clean_end_is_an_end(gateway: Gateway, lane: Lane) -> None:
    """S4: a provider that finishes its choice and only forgets `[DONE]` is given one."""
    lane.upstream.script(stream(delta("a"), finish()))
    answer = ask(lane, stream=True)
    assert answer.body == delta("a") + finish() + DONE
    assert gateway.record(request_id(answer))["outcome"] == "completed"


@pytest.mark.one_node(
    reason="a rest is told to other workers within half a second, and the next call is made at once"
)
def test_a_failed_connection_rests(gateway: Gateway, upstream: Upstream) -> None:
    """S1: after a broken stream the next request prefers the sibling connection."""
    lane = gateway.add_lane(upstream, connections=2)
    upstream.script([SSE_HEAD, chunk(delta("a")), CLOSE], key=lane.secrets[0])
    upstream.script(reply(completion("from two")), key=lane.secrets[1])
    ask(lane, stream=True)
    assert upstream.last.bearer == lane.secrets[0]
    assert ask(lane).json()["choices"][0]["message"]["content"] == "from two"
    assert len(upstream.requests) == 2


# -------------------------------------------------------------------------------- S3: odd but legal

CONTENT = event(
    {"choices": [{"index": 0, "delta": {"content": "naïve 🌊"}, "finish_reason": None}]}
)
TWO_LINES = (
    b'data: {"choices":\ndata:  [{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n'
)
ODD_STREAMS = {
    "CRLF": (CONTENT + finish() + DONE).replace(b"\n", b"\r\n"),
    "CR": (CONTENT + finish() + DONE).replace(b"\n", b"\r"),
    "mixed": CONTENT.replace(b"\n\n", b"\r\n\r\n") + finish() + DONE.replace(b"\n\n", b"\r\r"),
    "byte order mark": b"\xef\xbb\xbf" + CONTENT + finish() + DONE,
    "comments": b": one\n\n:two\n" + CONTENT + b":\n\n" + finish() + DONE,
    "multi-line data": TWO_LINES + DONE,
    "no space after data": CONTENT.replace(b"data: ", b"data:") + finish() + DONE,
    "fields around": b"event: x\nid: 1\nretry: 5\n" + CONTENT + b"unknown: y\n" + finish() + DONE,
    "an event of a mebibyte": delta("x" * MIB) + finish() + DONE,
}


@pytest.mark.parametrize("cut", ("whole", "in bytes", "in halves"))
@pytest.mark.parametrize("text", ODD_STREAMS.values(), ids=ODD_STREAMS.keys())
def test_odd_but_legal_streams_pass(lane: Lane, text: bytes, cut: str) -> None:
    """S3: line ends, comments, split characters: byte for byte, however the transport cut them."""
    finest = 1 if len(text) < 10_000 else 7919
    size = {"whole": len(text), "in bytes": finest, "in halves": len(text) // 2 + 1}[cut]
    lane.upstream.script(stream(*(text[at : at + size] for at in range(0, len(text), size))))
    answer = ask(lane, stream=True)
    assert answer.status == 200
    assert answer.body == text


@pytest.mark.parametrize(
    "tail",
    (b'data: {"a":', b'data: {"a":1}\n', b"da", b'data: {"choices":[]}', b"data: \xf0\x9f"),
    ids=("half an object", "half an end", "half a field", "no end", "half a character"),
)
def test_a_cut_event_is_never_delivered_as_one(lane: Lane, tail: bytes) -> None:
    """S3: half an event, then the end: what the caller's reader sees is whole events, the error, `[DONE]`."""
    lane.upstream.script(stream(delta("a"), tail))
    answer = ask(lane, stream=True)
    assert terminal_error(answer.body)["code"] == "upstream_reset"


# ------------------------------------------------------------------------------- S5: after the end

GOOD = delta("a") + finish() + DONE
LATE = {
    "data": delta("LATE"),
    "a second [DONE]": DONE,
    "an error": event({"error": {"message": "LATE"}}),
}


@pytest.mark.parametrize("joined", (True, False), ids=("in one piece", "in another piece"))
@pytest.mark.parametrize("late", LATE.values(), ids=LATE.keys())
def test_the_first_end_counts(gateway: Gateway, lane: Lane, late: bytes, joined: bool) -> None:
    """S5: nothing that comes behind the terminal event reaches the caller."""
    lane.upstream.script(stream(GOOD + late) if joined else stream(GOOD, late))
    answer = ask(lane, stream=True)
    assert answer.body == GOOD
    assert gateway.record(request_id(answer))["outcome"] == "completed"


@pytest.mark.parametrize("data", ("42", "[1]", '"text"', "null", "<html>", '{"usage": oops}'))
def test_an_event_that_is_no_object_ends_the_stream(lane: Lane, data: str) -> None:
    """S5: what is no JSON object is not passed on as if it were one."""
    lane.upstream.script(stream(delta("a"), event(data), finish(), DONE))
    answer = ask(lane, stream=True)
    assert terminal_error(answer.body)["code"] == "upstream_invalid"


def test_an_error_object_in_a_stream_is_final(gateway: Gateway, lane: Lane) -> None:
    """S5: an error of the provider is the last event before `[DONE]`, and what comes later is dropped."""
    told = event({"error": {"message": "out of memory", "type": "server_error", "code": "oom"}})
    lane.upstream.script(stream(delta("a"), told, delta("LATE"), DONE))
    answer = ask(lane, stream=True)
    assert b"LATE" not in answer.body
    assert terminal_error(answer.body)
    assert len(events_of(answer.body)) == 3
    assert gateway.record(request_id(answer))["outcome"] == "upstream_failed"


def test_a_rejection_as_the_first_event_is_a_400(gateway: Gateway, upstream: Upstream) -> None:
    """S6: the request is what is wrong: told in the provider's words, tried nowhere else, and nobody rests for it."""
    lane = gateway.add_lane(upstream, connections=2)
    told = {
        "message": "context too long",
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
    }
    upstream.script(stream(event({"error": told})), reply(completion("next")))
    answer = ask(lane, stream=True)
    assert error_of(answer) == (400, "context_length_exceeded")
    assert {name: answer.json()["error"][name] for name in told} == told
    assert len(upstream.requests) == 1
    assert ask(lane).status == 200
    assert [seen.bearer for seen in upstream.requests] == [lane.secrets[0]] * 2


def test_an_error_as_the_first_event_never_echoes_a_key(gateway: Gateway, lane: Lane) -> None:
    """S6: an error object at the very start is a failure, and a key in its text goes nowhere."""
    told = event({"error": {"message": f"bad key {lane.secrets[0]}", "code": "invalid_api_key"}})
    lane.upstream.script(stream(told, DONE))
    answer = ask(lane, stream=True)
    assert failure_code(answer)
    assert lane.secrets[0].encode() not in answer.body
    assert gateway.record(request_id(answer))["outcome"] == "upstream_failed"

"""Callers who leave: the provider's work is stopped within a second, and what happened is on record once."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.support.chat import CHAT, chat_bytes, send_chat
from tests.support.polling import eventually, holds_for
from tests.support.processes import Gateway, Lane
from tests.support.raw import RawClient, request_bytes
from tests.support.upstream import (
    DONE,
    LAST_CHUNK,
    SSE_HEAD,
    STALL,
    Flood,
    Gate,
    Step,
    chunk,
    completion,
    delta,
    finish,
    head,
    reply,
    usage_event,
)

pytestmark = pytest.mark.both_fronts

LEAVE: dict[str, Callable[[RawClient], None]] = {"FIN": RawClient.close, "RST": RawClient.reset}
LEAVING = pytest.mark.parametrize("leave", LEAVE.values(), ids=LEAVE.keys())


def assert_stopped(lane: Lane, left_at: float) -> None:
    """The provider sees its socket end within a second of the caller's leaving."""
    gone_at = eventually(
        lambda: lane.upstream.last.gone_at, "the provider's socket is closed", within_s=3
    )
    assert gone_at - left_at < 1.0
    assert lane.upstream.last.aborted


def settled_once(lane: Lane) -> dict[str, object]:
    """The record of the lane's only request."""
    gateway = lane.gateway
    eventually(lambda: gateway.records_of(lane), "the request is settled", within_s=8, every_s=0.1)
    (record,) = gateway.records_of(lane)
    return record


@pytest.mark.front_only("native", reason="granian reads nothing behind a request before its answer")
@LEAVING
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
def test_leaving_with_the_next_request_sent_already(
    gateway: Gateway, lane: Lane, leave: Callable[[RawClient], None], streamed: bool
) -> None:
    """S10: bytes behind a request (HTTP/1.1 pipelining) do not hide that its caller has left."""
    lane.upstream.script([SSE_HEAD, chunk(delta("a")), STALL] if streamed else [STALL])
    client = RawClient(gateway.port)
    send_chat(client, lane, stream=streamed)
    eventually(lambda: len(lane.upstream.requests) == 1, "the provider is asked")
    if streamed:
        client.head()
        client.body_until(delta("a"))
    client.send(request_bytes("GET", "/healthz", [gateway.auth], b"")[:-2])
    left_at = time.monotonic()
    leave(client)
    assert_stopped(lane, left_at)
    assert settled_once(lane)["outcome"] == "client_gone"


@LEAVING
@pytest.mark.one_node(
    reason="a balancer may drop a request whose caller left before it connected to a node"
)
def test_leaving_before_the_request_is_whole(
    gateway: Gateway, lane: Lane, leave: Callable[[RawClient], None]
) -> None:
    """S10: a request that was never whole is never dispatched, and what it held is given back."""
    body = chat_bytes(lane)
    client = RawClient(gateway.port)
    tag = f"left-{lane.prefix}"
    headers = [gateway.auth, ("X-Gateway-Session-Id", tag)]
    client.send(request_bytes("POST", CHAT, headers, body)[: -len(body) // 2])
    leave(client)
    assert gateway.caller.post(CHAT, json=lane.body()).status_code == 200
    holds_for(
        lambda: len(lane.upstream.requests) == 1, "only the whole request was dispatched", for_s=0.3
    )

    def found() -> list[dict[str, object]]:
        return [one for one in gateway.records() if one["sessionTag"] == tag]

    (record,) = eventually(found, "the request is settled", within_s=8, every_s=0.1)
    assert (record["outcome"], record["errorKind"]) == ("client_gone", "client_gone")
    assert record["attempts"] == 0


@LEAVING
@pytest.mark.parametrize(
    ("streamed", "script"),
    ((False, [STALL]), (True, [STALL]), (True, [SSE_HEAD, STALL])),
    ids=("plain", "before the headers", "before the first token"),
)
def test_leaving_before_anything_came(
    gateway: Gateway,
    lane: Lane,
    script: list[Step],
    streamed: bool,
    leave: Callable[[RawClient], None],
) -> None:
    """S10: while the provider still thinks, its socket is closed within a second; settled as gone."""
    lane.upstream.script(script)
    client = RawClient(gateway.port)
    send_chat(client, lane, stream=streamed)
    eventually(lambda: lane.upstream.requests, "the provider has the request")
    left_at = time.monotonic()
    leave(client)
    assert_stopped(lane, left_at)
    record = settled_once(lane)
    assert (record["outcome"], record["errorKind"]) == ("client_gone", "client_gone")


@LEAVING
def test_leaving_in_the_middle(
    gateway: Gateway, lane: Lane, leave: Callable[[RawClient], None]
) -> None:
    """S10: mid-stream the provider is stopped within a second, and the tokens that were told are settled."""
    lane.upstream.script([SSE_HEAD, chunk(delta("a") + usage_event(4, 2)), STALL])
    client = RawClient(gateway.port)
    send_chat(client, lane, stream=True)
    client.head()
    client.body_until(delta("a"))
    left_at = time.monotonic()
    leave(client)
    assert_stopped(lane, left_at)
    record = settled_once(lane)
    assert record["outcome"] == "client_gone"
    assert (record["tokensInput"], record["tokensOutput"]) == (4, 2)


@LEAVING
def test_leaving_while_much_is_under_way(
    gateway: Gateway, lane: Lane, leave: Callable[[RawClient], None]
) -> None:
    """S10: a caller that leaves while the gateway waits for it to read is noticed too."""
    lane.upstream.script([SSE_HEAD, Flood(chunk(delta("x" * 60_000)), 50_000_000), STALL])
    client = RawClient(gateway.port, receive_buffer_bytes=8192)
    send_chat(client, lane, stream=True)
    client.head()
    seen = lane.upstream.last
    sent = -1

    def is_held_back() -> bool:
        nonlocal sent
        before, sent = sent, seen.sent_bytes
        return before == sent > 100_000

    eventually(is_held_back, "the provider is held back", every_s=0.2)
    left_at = time.monotonic()
    leave(client)
    assert_stopped(lane, left_at)
    assert settled_once(lane)["outcome"] == "client_gone"


@LEAVING
def test_leaving_inside_a_plain_answer(
    gateway: Gateway, lane: Lane, leave: Callable[[RawClient], None]
) -> None:
    """S10: half of a plain answer has come from the provider when the caller leaves."""
    announced = head(200, [("Content-Type", "application/json"), ("Content-Length", "5000")])
    lane.upstream.script([announced + b'{"choices":[', STALL])
    client = RawClient(gateway.port)
    send_chat(client, lane)
    eventually(
        lambda: lane.upstream.requests and lane.upstream.last.sent_bytes,
        "half of the answer is out",
    )
    left_at = time.monotonic()
    leave(client)
    assert_stopped(lane, left_at)
    assert settled_once(lane)["outcome"] == "client_gone"


@LEAVING
@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
def test_leaving_right_after_the_last_byte(
    gateway: Gateway, lane: Lane, streamed: bool, leave: Callable[[RawClient], None]
) -> None:
    """S10: a caller that has read the end and leaves at once was served: completed, 200, its tokens counted."""
    ended: list[Step] = [SSE_HEAD, chunk(delta("a") + finish() + usage_event() + DONE), LAST_CHUNK]
    lane.upstream.script(ended if streamed else reply(completion()))
    for _ in range(20):
        with RawClient(gateway.port) as client:
            send_chat(client, lane, stream=streamed)
            if streamed:
                client.head()
                client.body_until(DONE)
            else:
                client.response()
            leave(client)
    eventually(
        lambda: len(gateway.records_of(lane)) == 20, "all are settled", within_s=8, every_s=0.1
    )
    for record in gateway.records_of(lane):
        assert (record["outcome"], record["status"]) == ("completed", 200)
        assert (record["tokensInput"], record["tokensOutput"]) == (7, 3)


@LEAVING
def test_leaving_at_the_end_while_the_provider_lingers(
    gateway: Gateway, lane: Lane, leave: Callable[[RawClient], None]
) -> None:
    """S10: `[DONE]` was read, the provider has not closed its framing yet: still completed, and not held open."""
    gate = Gate()
    lane.upstream.script(
        [SSE_HEAD, chunk(delta("a") + finish() + usage_event() + DONE), gate, LAST_CHUNK]
    )
    client = RawClient(gateway.port)
    send_chat(client, lane, stream=True)
    client.head()
    client.body_until(DONE)
    leave(client)
    assert settled_once(lane)["outcome"] == "completed"
    gate.open()


def test_many_leave_at_once(gateway: Gateway, lane: Lane) -> None:
    """S10: forty callers that leave together are forty provider sockets closed within a second."""
    lane.upstream.script([SSE_HEAD, chunk(delta("a")), STALL])
    clients = [RawClient(gateway.port) for _ in range(40)]
    for client in clients:
        send_chat(client, lane, stream=True)
    for client in clients:
        client.head()
        client.body_until(delta("a"))
    left_at = time.monotonic()
    for client in clients:
        client.reset()
    eventually(
        lambda: all(seen.gone_at for seen in lane.upstream.requests),
        "all sockets are closed",
        within_s=5,
    )
    assert max(seen.gone_at or 0 for seen in lane.upstream.requests) - left_at < 1.5
    eventually(
        lambda: len(gateway.records_of(lane)) == 40, "all are settled", within_s=8, every_s=0.1
    )
    assert {record["outcome"] for record in gateway.records_of(lane)} == {"client_gone"}

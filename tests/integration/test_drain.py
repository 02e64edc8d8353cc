"""SIGTERM: nothing new is taken, what is open finishes or is told the end at the deadline, exit 0, all on record."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.chat import CHAT, chat_bytes, send_chat, terminal_error
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane
from tests.support.raw import Closed, RawClient
from tests.support.records import stored_records
from tests.support.upstream import (
    DONE,
    LAST_CHUNK,
    SSE_HEAD,
    STALL,
    Gate,
    Upstream,
    chunk,
    completion,
    delta,
    finish,
    reply,
    usage_event,
)


def outcomes(gateway: Gateway, lane: Lane) -> Counter[Any]:
    """Outcomes of the requests on the lane, each of which is on record once."""
    records = [
        record for record in stored_records(gateway.data_dir) if record["model"] == lane.model
    ]
    ids = Counter(record["request_id"] for record in records)
    assert all(count == 1 for count in ids.values()), ids
    return Counter(record["outcome"] for record in records)


def open_stream(gateway: Gateway, lane: Lane, clients: contextlib.ExitStack) -> RawClient:
    client = clients.enter_context(RawClient(gateway.port, timeout_s=20))
    send_chat(client, lane, stream=True)
    client.head()
    client.body_until(delta("a"))
    return client


def test_open_requests_finish(gateways: Callable[..., Gateway], upstream: Upstream) -> None:
    """A stream and a plain request that are open at SIGTERM end as if nothing were; then exit 0, both recorded."""
    gateway = gateways(FAIRLEAD_DRAIN_MS="20000")
    lane = gateway.add_lane(upstream)
    gate = Gate()
    tail = chunk(finish() + usage_event() + DONE)
    upstream.script(
        [SSE_HEAD, chunk(delta("a")), gate, tail, LAST_CHUNK], [gate, *reply(completion("whole"))]
    )
    with contextlib.ExitStack() as clients:
        streaming = open_stream(gateway, lane, clients)
        plain = clients.enter_context(RawClient(gateway.port, timeout_s=20))
        send_chat(plain, lane)
        eventually(lambda: len(upstream.requests) == 2, "both are with the provider")
        gateway.popen.send_signal(signal.SIGTERM)
        eventually(lambda: refuses_work(gateway, lane), "new work is refused")
        gate.open()
        assert streaming.body_until(DONE) == finish() + DONE
        assert plain.response().json()["choices"][0]["message"]["content"] == "whole"
    assert gateway.wait(10) == 0
    assert outcomes(gateway, lane) == {"completed": 2}


def test_what_comes_while_a_stop_is_announced_is_served(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    """For the time that a load balancer takes to notice: not ready, and all is served as before."""
    gateway = gateways(FAIRLEAD_DRAIN_DELAY_MS="2500")
    lane = gateway.add_lane(upstream)
    upstream.script(reply(completion("served")))
    body = chat_bytes(lane)
    with RawClient(gateway.port) as kept:
        kept.request("GET", "/readyz")
        assert kept.response().header("connection") is None
        started = time.monotonic()
        gateway.popen.send_signal(signal.SIGTERM)
        eventually(lambda: readiness(gateway) == (503, "draining"), "it is not ready", within_s=2)
        # An idle connection stays, and ends with the answer that says so.
        kept.request("POST", CHAT, [gateway.auth], body)
        answer = kept.response()
        assert answer.json()["choices"][0]["message"]["content"] == "served"
        assert answer.header("connection") == "close"
        assert kept.until_closed().rest == b""
    with RawClient(gateway.port) as later:
        later.request("POST", CHAT, [gateway.auth], body)
        assert later.response().status == 200
    assert gateway.wait(10) == 0
    assert time.monotonic() - started >= 2.5
    assert outcomes(gateway, lane) == {"completed": 2}


def readiness(gateway: Gateway) -> tuple[int, str]:
    """What a load balancer is told."""
    with RawClient(gateway.port, timeout_s=2) as client:
        client.request("GET", "/readyz")
        answer = client.response()
    return answer.status, answer.json()["status"]


def refuses_work(gateway: Gateway, lane: Lane) -> bool:
    """Whether a new request is turned away: 503 with Retry-After, or no connection at all."""
    try:
        with RawClient(gateway.port, timeout_s=2) as client:
            client.request("POST", CHAT, [gateway.auth], chat_bytes(lane, model="none/m"))
            answer = client.response()
    except (ConnectionError, Closed):
        return True
    return (
        answer.status == 503
        and answer.json()["error"]["code"] == "draining"
        and bool(answer.header("retry-after"))
    )


@pytest.mark.slow
def test_a_request_on_a_kept_connection_is_turned_away(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    """A connection that was open before SIGTERM is no way to get new work in."""
    gateway = gateways(FAIRLEAD_DRAIN_MS="20000")
    lane = gateway.add_lane(upstream)
    gate = Gate()
    upstream.script([SSE_HEAD, chunk(delta("a")), gate, chunk(finish() + DONE), LAST_CHUNK])
    with contextlib.ExitStack() as clients:
        holding = open_stream(gateway, lane, clients)
        kept = clients.enter_context(RawClient(gateway.port))
        kept.request("GET", "/healthz")
        assert kept.response().status == 200
        gateway.popen.send_signal(signal.SIGTERM)
        eventually(lambda: refuses_work(gateway, lane), "new work is refused")
        try:
            send_chat(kept, lane)
            assert kept.response().status == 503
        except (ConnectionError, Closed):
            pass  # ended is as good as refused
        assert len(upstream.requests) == 1
        gate.open()
        holding.body_until(DONE)
    assert gateway.wait(10) == 0


def test_what_is_left_is_told_at_the_deadline(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    """D8: a hundred streams that do not end get the terminal event at the deadline; exit 0 soon after."""
    gateway = gateways(FAIRLEAD_DRAIN_MS="1000")
    lane = gateway.add_lane(upstream)
    upstream.script([SSE_HEAD, chunk(delta("a") + usage_event(5, 2)), STALL])
    with contextlib.ExitStack() as clients:
        streams = [open_stream(gateway, lane, clients) for _ in range(100)]
        started = time.monotonic()
        gateway.popen.send_signal(signal.SIGTERM)
        for client in streams:
            rest = b"".join(iter(client.chunk, None))
            assert terminal_error(rest)["code"] == "draining"
        assert 0.8 < time.monotonic() - started < 4
    assert gateway.wait(5) == 0
    assert time.monotonic() - started < 5
    records = [
        record for record in stored_records(gateway.data_dir) if record["model"] == lane.model
    ]
    assert Counter(record["outcome"] for record in records) == {"drained": 100}
    assert {(record["tokens_input"], record["tokens_output"]) for record in records} == {(5, 2)}


@pytest.mark.slow
def test_a_plain_request_that_is_left_is_told_too(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    """A plain request that the deadline meets gets a 503, not a dead socket."""
    gateway = gateways(FAIRLEAD_DRAIN_MS="700")
    lane = gateway.add_lane(upstream)
    upstream.script([STALL])
    with RawClient(gateway.port, timeout_s=15) as client:
        send_chat(client, lane)
        eventually(lambda: upstream.requests, "the provider has the request")
        gateway.popen.send_signal(signal.SIGTERM)
        answer = client.response()
    assert (answer.status, answer.json()["error"]["code"]) == (503, "draining")
    assert gateway.wait(5) == 0
    assert outcomes(gateway, lane) == {"drained": 1}


# What a caller that holds its request up may cost beyond the drain's deadline.
GRACE_S = 2.5


def test_a_caller_that_does_not_read_holds_nothing_up(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    """D8: an answer of 20 MB that nobody takes is let go soon after the deadline, and it is on record."""
    gateway = gateways(FAIRLEAD_DRAIN_MS="1000")
    lane = gateway.add_lane(upstream)
    upstream.script(reply(completion("x" * 20_000_000)))
    with RawClient(gateway.port, timeout_s=20, receive_buffer_bytes=4096) as client:
        send_chat(client, lane)
        assert client.head().status == 200
        started = time.monotonic()
        gateway.popen.send_signal(signal.SIGTERM)
        assert gateway.wait(14) == 0
        assert time.monotonic() - started < 1.0 + GRACE_S
    assert outcomes(gateway, lane) == {"completed": 1}


@pytest.mark.slow
def test_a_caller_that_sends_slowly_holds_nothing_up(gateways: Callable[..., Gateway]) -> None:
    """D8: a body of which only a byte has come is not waited for beyond the deadline."""
    gateway = gateways(FAIRLEAD_DRAIN_MS="1000")
    kind, length = ("Content-Type", "application/json"), ("Content-Length", "1000")
    with RawClient(gateway.port, timeout_s=20) as client:
        client.request("POST", CHAT, [gateway.auth, kind, length, ("Expect", "100-continue")])
        # The body is asked for, so the request is admitted and waits for it.
        assert client.some(25).startswith(b"HTTP/1.1 100 ")
        client.send(b"{")
        started = time.monotonic()
        gateway.popen.send_signal(signal.SIGTERM)
        assert gateway.wait(14) == 0
        assert time.monotonic() - started < 1.0 + GRACE_S


@pytest.mark.slow
def test_an_idle_gateway_stops_at_once(gateways: Callable[..., Gateway]) -> None:
    """With nothing open there is nothing to wait for, whatever the deadline; idle kept connections do not count."""
    gateway = gateways(FAIRLEAD_DRAIN_MS="30000")
    with RawClient(gateway.port) as idle:
        idle.request("GET", "/healthz")
        idle.response()
        started = time.monotonic()
        gateway.popen.send_signal(signal.SIGTERM)
        assert gateway.wait(10) == 0
    assert time.monotonic() - started < 5


@pytest.mark.slow
def test_a_second_signal_ends_it_at_once(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    """D8: the second SIGTERM does not wait for the deadline of the first, and what was served stays on record."""
    gateway = gateways(FAIRLEAD_DRAIN_MS="60000")
    lane = gateway.add_lane(upstream)
    upstream.script([SSE_HEAD, chunk(delta("a")), STALL])
    with contextlib.ExitStack() as clients:
        open_stream(gateway, lane, clients)
        gateway.remember_processes()
        gateway.popen.send_signal(signal.SIGTERM)
        eventually(lambda: refuses_work(gateway, lane), "new work is refused")
        started = time.monotonic()
        gateway.popen.send_signal(signal.SIGTERM)
        gateway.wait(6)
        assert time.monotonic() - started < 5
    eventually(
        lambda: not gateway.living_processes(), "no process of the instance is left", within_s=3
    )


def test_traffic_during_a_stop_is_answered_or_refused_never_lost(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    """Requests sent while it stops are whole answers, clean refusals, or refused connections; all 200 are recorded."""
    gateway = gateways(FAIRLEAD_DRAIN_MS="3000")
    lane = gateway.add_lane(upstream)
    body = json.dumps(lane.body()).encode()
    served: list[str] = []
    assert gateway.key  # made before the stop
    for turn in range(400):
        if turn == 100:
            gateway.popen.send_signal(signal.SIGTERM)
        try:
            with RawClient(gateway.port, timeout_s=5) as client:
                client.request("POST", CHAT, [gateway.auth], body)
                answer = client.response()
        except (ConnectionError, Closed):
            if gateway.popen.poll() is not None:
                break
            continue
        assert answer.status in {200, 503}, answer
        if answer.status == 200:
            served.append(answer.header("x-gateway-request-id") or "")
    assert gateway.wait(10) == 0
    stored = Counter(record["request_id"] for record in stored_records(gateway.data_dir))
    assert [one for one in served if stored[one] != 1] == []

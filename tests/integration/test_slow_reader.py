"""Callers who read slower than a provider writes: the provider waits, and the gateway's memory does not grow."""

from __future__ import annotations

import time

import pytest

from tests.support.chat import send_chat
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane
from tests.support.raw import RawClient, read_slowly
from tests.support.upstream import (
    DONE,
    LAST_CHUNK,
    SSE_HEAD,
    Flood,
    Upstream,
    chunk,
    delta,
    finish,
    head,
)

pytestmark = pytest.mark.both_fronts

MIB = 1024 * 1024
TOTAL_BYTES = 50 * MIB
EVENT = delta("x" * 65_000)
EVENTS = -(-TOTAL_BYTES // len(chunk(EVENT)))


def settles_at(lane: Lane) -> int:
    """The bytes that the provider got rid of, once that does not change for half a second."""
    seen = lane.upstream.last
    last, since = -1, time.monotonic()

    def is_still() -> bool:
        nonlocal last, since
        if seen.sent_bytes != last:
            last, since = seen.sent_bytes, time.monotonic()
        return time.monotonic() - since > 0.5

    eventually(is_still, "the provider is held back", within_s=10)
    return last


def test_a_stream_that_is_not_read_waits_at_the_provider(gateway: Gateway, lane: Lane) -> None:
    """S11: 50 MB at a caller who reads byte by byte: bounded here, held back there, whole in the end."""
    lane.upstream.script(
        [SSE_HEAD, Flood(chunk(EVENT), TOTAL_BYTES), chunk(finish() + DONE), LAST_CHUNK]
    )
    worker = gateway.relay
    before = worker.rss_bytes
    with RawClient(gateway.port, receive_buffer_bytes=4096) as client:
        send_chat(client, lane, stream=True)
        client.head()
        sent = settles_at(lane)
        # What is under way stands in the kernel's socket buffers on both sides; the rest waits.
        assert sent < 20 * MIB
        assert read_slowly(client, pieces=10, piece_bytes=1, every_s=0.02) == 10
        assert worker.rss_bytes - before < 20 * MIB
        # From here the caller reads as fast as it can, and gets everything.
        received = b"x" * 0
        total = 10
        peak = worker.rss_bytes
        while not received.endswith(b"0\r\n\r\n"):
            piece = client.some(MIB)
            total += len(piece)
            received = (received + piece)[-5:]
            peak = max(peak, worker.rss_bytes)
    assert peak - before < 20 * MIB, f"grew by {(peak - before) / MIB:.0f} MiB"
    assert total >= EVENTS * len(EVENT) + len(finish() + DONE)


def test_several_slow_readers_cost_little_each(
    gateway: Gateway, upstream: Upstream, lane: Lane
) -> None:
    """S11: thirty callers who do not read cost at most a mebibyte each, not their answers."""
    lane.upstream.script([SSE_HEAD, Flood(chunk(EVENT), TOTAL_BYTES), chunk(DONE), LAST_CHUNK])
    worker = gateway.relay
    clients: list[RawClient] = []

    def add(count: int) -> None:
        more = [RawClient(gateway.port, receive_buffer_bytes=4096) for _ in range(count)]
        clients.extend(more)
        for client in more:
            send_chat(client, lane, stream=True)
        for client in more:
            client.head()
        settles_at(lane)

    try:
        # What a worker takes once, for its first callers, is not what a caller costs.
        add(30)
        before = worker.rss_bytes
        add(30)
        grown = worker.rss_bytes - before
        assert gateway.client(timeout=3).get("/healthz").status_code == 200
    finally:
        for client in clients:
            client.reset()
    assert grown < 38 * MIB, f"grew by {grown / MIB:.0f} MiB"


def test_the_caller_s_slowness_is_not_the_provider_s_silence(
    gateway: Gateway, upstream: Upstream
) -> None:
    """S11: the idle timer of a provider does not run while it is the caller who does not read."""
    lane = gateway.add_lane(upstream, idleMs=300)
    upstream.script([SSE_HEAD, Flood(chunk(EVENT), 20 * MIB), chunk(finish() + DONE), LAST_CHUNK])
    with RawClient(gateway.port, receive_buffer_bytes=4096) as client:
        send_chat(client, lane, stream=True)
        client.head()
        settles_at(lane)
        resumed_at = time.monotonic() + 1.0
        eventually(lambda: time.monotonic() > resumed_at, "the caller thinks for a second")
        tail = b""
        while (piece := client.chunk()) is not None:
            tail = (tail + piece)[-200:]
    assert tail.endswith(finish() + DONE), tail


@pytest.mark.slow
def test_a_plain_answer_that_is_not_read_waits_too(gateway: Gateway, lane: Lane) -> None:
    """S11, S14: a plain answer of 30 MB at a slow caller costs at most the answer's bound, and comes whole."""
    start, end = b'{"choices":[{"message":{"content":"', b'"}}]}'
    length = len(start) + 30 * MIB + len(end)
    announced = head(200, [("Content-Type", "application/json"), ("Content-Length", str(length))])
    lane.upstream.script([announced + start, Flood(b"x" * MIB, 30 * MIB), end])
    worker = gateway.relay
    before = worker.rss_bytes
    with RawClient(gateway.port, receive_buffer_bytes=4096, timeout_s=30) as client:
        send_chat(client, lane)
        answer = client.head()
        assert read_slowly(client, pieces=10, piece_bytes=100, every_s=0.02) == 1000
        assert worker.rss_bytes - before < 80 * MIB
        if answer.status == 200 and (announced_length := answer.header("content-length")):
            assert len(client.exactly(int(announced_length) - 1000)) == length - 1000

"""Providers that send far too much: bombs, endless bodies, endless events. Memory stays bounded."""

from __future__ import annotations

import functools
import gzip
import json
import zlib
from collections.abc import Callable, Iterator

import pytest

from tests.support.chat import ask, error_of, send_chat
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane
from tests.support.raw import RawClient
from tests.support.upstream import (
    SSE_HEAD,
    STALL,
    Flood,
    chunk,
    completion,
    delta,
    head,
    reply,
)

MIB = 1024 * 1024


@functools.cache
def gzip_bomb() -> bytes:
    """About 48 kB that become 50 MB."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(squeeze.compress(b" " * MIB) for _ in range(50)) + squeeze.flush()


# Made when a test uses them: every process collects this file.
CODINGS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a gzip bomb": ("gzip", gzip_bomb),
    "nested gzip": ("gzip, gzip", lambda: gzip.compress(gzip_bomb())),
    "an unknown coding": ("x-secret", lambda: b"{}"),
    "br": ("br", lambda: b"\x8b\x02\x80{}\x03"),
    "honest gzip": ("gzip", lambda: gzip.compress(json.dumps(completion()).encode())),
}


@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
@pytest.mark.parametrize(("coding", "make"), CODINGS.values(), ids=CODINGS.keys())
def test_a_coded_answer_is_refused(
    gateway: Gateway, lane: Lane, coding: str, make: Callable[[], bytes], streamed: bool
) -> None:
    """S13: no coding was offered to the provider, so none is accepted, and nothing is unpacked."""
    kind = "text/event-stream" if streamed else "application/json"
    lane.upstream.script(reply(make(), headers=[("Content-Encoding", coding)], content_type=kind))
    before = gateway.relay.rss_bytes
    answer = ask(lane, stream=streamed)
    assert error_of(answer) == (502, "upstream_invalid")
    assert lane.upstream.last.header("accept-encoding") in {None, "identity"}
    assert gateway.relay.rss_bytes - before < 16 * MIB


def pieces_of(client: RawClient, length: int | None) -> Iterator[int]:
    """The sizes of a body's pieces as they come; nothing of it is kept."""
    while length is None and (piece := client.chunk()) is not None:
        yield len(piece)
    while length:
        piece = client.some(min(length, MIB))
        length -= len(piece)
        yield len(piece)


def test_a_huge_plain_answer_is_streamed_or_refused(gateway: Gateway, lane: Lane) -> None:
    """S14: 200 MB of JSON in one answer never stands in memory as a whole."""
    start, end = b'{"choices":[{"message":{"content":"', b'"}}]}'
    total = len(start) + 200 * MIB + len(end)
    announced = head(200, [("Content-Type", "application/json"), ("Content-Length", str(total))])
    lane.upstream.script([announced + start, Flood(b"x" * MIB, 200 * MIB), end])
    worker = gateway.relay
    before = peak = worker.rss_bytes
    received = 0
    with RawClient(gateway.port, timeout_s=30) as client:
        send_chat(client, lane)
        answer = client.head()
        length = answer.header("content-length")
        for size in pieces_of(client, int(length) if length else None):
            received += size
            peak = max(peak, worker.rss_bytes)
    if answer.status == 200:
        assert received == total
    else:
        assert answer.status == 502
        eventually(
            lambda: lane.upstream.last.gone_at, "the provider's socket is closed", within_s=2
        )
    assert max(peak, worker.rss_bytes) - before < 80 * MIB, (
        f"grew by {(peak - before) / MIB:.0f} MiB"
    )


def test_an_endless_event_costs_bounded_memory(gateway: Gateway, lane: Lane) -> None:
    """An event without an end passes in parts or ends the stream; either way the caller's leaving ends it upstream."""
    lane.upstream.script(
        [SSE_HEAD, chunk(delta("a")), Flood(chunk(b"x" * 65_536), 300 * MIB), STALL]
    )
    worker = gateway.relay
    before = peak = worker.rss_bytes
    received = 0
    with RawClient(gateway.port, timeout_s=30) as client:
        send_chat(client, lane, stream=True)
        client.head()
        for size in pieces_of(client, None):
            received += size
            peak = max(peak, worker.rss_bytes)
            if received > 100 * MIB:
                break
    assert peak - before < 40 * MIB, f"grew by {(peak - before) / MIB:.0f} MiB"
    eventually(lambda: lane.upstream.last.gone_at, "the provider's socket is closed", within_s=2)

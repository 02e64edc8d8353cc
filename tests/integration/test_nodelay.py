"""Small pieces are relayed at once: no Nagle's algorithm, no delayed acknowledgement, no batching in the way."""

from __future__ import annotations

import statistics
import time

import pytest

from tests.support.chat import send_chat
from tests.support.processes import Gateway, Lane
from tests.support.raw import RawClient
from tests.support.upstream import (
    DONE,
    LAST_CHUNK,
    SSE_HEAD,
    Gate,
    Step,
    chunk,
    completion,
    delta,
    finish,
    reply,
)

PIECES = 30
ROUNDS = 4


def relay_times_ms(gateway: Gateway, lane: Lane) -> list[float]:
    """How long each of many small pieces took from the provider's hand to the caller's."""
    gates = [Gate() for _ in range(PIECES)]
    ending = Gate()  # so that the end cannot arrive together with the last piece
    steps: list[Step] = [SSE_HEAD]
    for gate in gates:
        steps += [gate, chunk(delta("a"))]
    lane.upstream.script(reply(completion()), [*steps, ending, chunk(finish() + DONE), LAST_CHUNK])
    with RawClient(gateway.port) as client:
        send_chat(client, lane)  # a first exchange, so that both connections are kept ones
        assert client.response().status == 200
        send_chat(client, lane, stream=True)
        times = []
        for number, gate in enumerate(gates):
            assert gate.reached.wait(5)
            started = time.perf_counter()
            gate.open()
            if number == 0:
                client.head()
            client.body_until(delta("a"))
            times.append((time.perf_counter() - started) * 1000)
        ending.open()
        client.body_until(DONE)
    return times


def test_a_small_piece_is_relayed_within_five_milliseconds(gateway: Gateway, lane: Lane) -> None:
    """On kept connections half of the pieces take under 5 ms, the provider's own thread included.

    A delayed acknowledgement would cost 40 ms on every one of them. The best of some rounds counts, since other
    work on the machine can only make it worse.
    """
    best_ms = min(statistics.median(relay_times_ms(gateway, lane)) for _ in range(ROUNDS))
    assert best_ms < 5, f"{best_ms:.2f} ms"


@pytest.mark.one_node(reason="a balancer takes a time of its own")
def test_a_plain_answer_adds_little(gateway: Gateway, lane: Lane) -> None:
    """A small plain answer on kept connections takes under 5 ms in the middle, provider included."""
    with RawClient(gateway.port) as client:
        times_ms = []
        for _ in range(100):
            started = time.perf_counter()
            send_chat(client, lane)
            assert client.response().status == 200
            times_ms.append((time.perf_counter() - started) * 1000)
    assert statistics.median(times_ms) < 5, f"{statistics.median(times_ms):.2f} ms"

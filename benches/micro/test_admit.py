"""What it costs to let a request in, or to turn it away."""

from __future__ import annotations

from typing import Any

import pytest

from benches.micro.worker import Worker
from fairlead import _core

Benchmark = Any


def test_admit_a_chat_request(benchmark: Benchmark, worker: Worker) -> None:
    """Route, key check, policy, room; then the caller leaves, so that nothing stays in flight."""
    scope = worker.scope("POST", "/v1/chat/completions", worker.key, length=512)

    def admit() -> bool:
        exchange = worker.engine.admit(scope)
        wants_body = exchange.wants_body
        exchange.cancel()
        return wants_body

    assert benchmark(admit)
    assert worker.engine.in_flight() == 0


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_check_a_key(benchmark: Benchmark, worker: Worker, known: bool) -> None:
    """A request that the relay answers by itself: what differs is the key."""
    scope = worker.scope("GET", "/v1/models", worker.key if known else _core.new_key()[0])

    def answer() -> int:
        exchange = worker.engine.admit(scope)
        head = exchange.head()
        assert head is not None
        exchange.take()
        return head[0]

    assert benchmark(answer) == (200 if known else 401)


def test_hash_a_key(benchmark: Benchmark) -> None:
    key, digest = _core.new_key()

    assert benchmark(_core.hash_secret, key) == digest

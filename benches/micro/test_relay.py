"""What it costs to pass an answer through, without a server: pool, framing, settlement."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benches.micro.worker import Worker

Benchmark = Any

MESSAGES = [{"role": "user", "content": "hello"}]


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "up/mock", "messages": MESSAGES, **fields}).encode()


def test_relay_an_answer(benchmark: Benchmark, worker: Worker) -> None:
    status, answer = benchmark(worker.ask, body())

    assert status == 200
    assert json.loads(answer)["usage"]["total_tokens"] == 109


def test_relay_a_stream_of_100_chunks(benchmark: Benchmark, worker: Worker) -> None:
    """The usage chunk was asked of the upstream for the account, and is not passed on."""
    status, answer = benchmark(worker.ask, body(stream=True))

    assert status == 200
    assert answer.count(b'"content":"lorem "') == 100
    assert answer.rstrip().endswith(b"data: [DONE]")
    assert b'"usage":{' not in answer


@pytest.mark.parametrize(
    ("path", "asked", "end"),
    (
        ("/v1/messages", {"max_tokens": 500, "messages": MESSAGES}, b"event: message_stop"),
        ("/v1/responses", {"input": "hello", "store": False}, b"event: response.completed"),
    ),
    ids=("messages", "responses"),
)
def test_relay_a_stream_in_another_dialect(
    benchmark: Benchmark, worker: Worker, path: str, asked: dict[str, Any], end: bytes
) -> None:
    """The same 100 chunks, said again in the caller's dialect: at most 1.6 times as dear."""
    asked = {"model": "up/mock", "stream": True, **asked}
    status, answer = benchmark(worker.ask, json.dumps(asked).encode(), path)

    assert status == 200
    assert answer.count(b'"lorem "') >= 100
    assert answer.count(end) == 1

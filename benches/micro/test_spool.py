"""What it costs to keep a usage record."""

from __future__ import annotations

import json
from typing import Any

from benches.micro.worker import Worker

Benchmark = Any

BATCH = 500
ROUNDS = 20


def test_append_to_the_spool(benchmark: Benchmark, worker: Worker) -> None:
    """A body without messages is refused at once: it does little but settle. Each one is kept."""
    body = b'{"model":"up/mock","messages":[]}'
    scope = worker.scope("POST", "/v1/chat/completions", worker.key, len(body))

    def refuse() -> None:
        exchanges = [worker.engine.admit(scope) for _ in range(BATCH)]
        for exchange in exchanges:
            exchange.feed(body, False)
        for exchange in exchanges:
            while (head := exchange.head()) is None:
                worker.wait()
            assert head[0] == 400
            while exchange.take() is None:
                worker.wait()

    benchmark.pedantic(refuse, rounds=ROUNDS)
    worker.engine.stop()

    segments = sorted((worker.data_dir / "spool").iterdir())
    records = [json.loads(line) for file in segments for line in file.read_text().splitlines()]
    assert len(records) == ROUNDS * BATCH
    assert {record["outcome"] for record in records} == {"refused"}

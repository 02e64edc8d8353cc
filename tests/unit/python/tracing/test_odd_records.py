"""A record whose span cannot be sent is counted as failed, and the spans of the others are sent."""

from __future__ import annotations

import asyncio
from typing import Any

import polars as pl
import pytest

from fairlead.process.tracing import Batching
from fairlead.usage.telemetry import traces as traces_module
from fairlead.usage.telemetry.traces import Traces


class _Exporter:
    """Sends the records with a trace id, and fails at any other, as the conversion to spans does."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def export(self, rows: list[dict[str, Any]]) -> bool:
        self.sent += [f"{int(row['trace_id'], 16):x}" for row in rows]
        return True


@pytest.mark.anyio
async def test_one_odd_record_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = _Exporter()
    monkeypatch.setattr(traces_module, "_exporter", lambda: exporter)
    traces = Traces(Batching(queue_max=10, batch_max=1, every_ms=10))
    rows = {"span_id": ["1", "2", "3"], "no_log": [False] * 3, "trace_id": ["a", "odd", "b"]}
    task = asyncio.create_task(traces.run())
    traces.offer([pl.DataFrame(rows)])
    async with asyncio.timeout(10):
        while traces.exported + traces.failed < 3:
            assert not task.done()
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (traces.exported, traces.failed, exporter.sent) == (2, 1, ["a", "b"])

"""Sending spans to a collector over OTLP/HTTP, beside ingestion and never in its way.

Spans wait in a bounded queue; what does not fit is dropped and counted, and so is what the collector
does not take. Bounds and pace are those of the specification's batch processor (`OTEL_BSP_*`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import structlog

from fairlead.process.tracing import Batching
from fairlead.store.services import Services

if TYPE_CHECKING:
    import polars as pl

    from fairlead.usage.telemetry.spans import Exporter

FLUSH_DEADLINE_S: Final = 3.0

log = structlog.get_logger("fairlead.usage")


class Traces:
    """A queue of spans. `offer` adds records, `run` sends them."""

    def __init__(self, batching: Batching | None) -> None:
        self.exported = 0
        self.dropped = 0
        self.failed = 0
        self._batching = batching
        self._waiting: deque[dict[str, Any]] = deque()
        self._full = asyncio.Event()
        self._exporter: Exporter | None = None

    def offer(self, batches: Sequence[pl.DataFrame]) -> None:
        """Adds the records that get a span; drops those that do not fit."""
        bounds = self._batching
        if bounds is None:
            return
        import polars as pl  # noqa: PLC0415 - slow to load, and here already with the first record

        for batch in batches:
            # Requests of keys that ask for no log are not traced.
            rows = batch.filter(pl.col("span_id").is_not_null() & ~pl.col("no_log"))
            for row in rows.iter_rows(named=True):
                if len(self._waiting) >= bounds.queue_max:
                    self.dropped += 1
                else:
                    self._waiting.append(row)
        if len(self._waiting) >= bounds.batch_max:
            self._full.set()

    async def run(self) -> None:
        """Sends until it is cancelled; then sends the remaining queue, for a few seconds at most."""
        if self._batching is None:
            await asyncio.Event().wait()
            return
        bounds = self._batching
        try:
            while True:
                try:
                    async with asyncio.timeout(bounds.every_ms / 1000):
                        await self._full.wait()
                except TimeoutError:
                    pass
                self._full.clear()
                await self._send(bounds.batch_max)
        finally:
            try:
                async with asyncio.timeout(FLUSH_DEADLINE_S):
                    await self._send(bounds.batch_max)
            except TimeoutError:
                self.dropped += len(self._waiting)

    async def _send(self, batch_max: int) -> None:
        while self._waiting:
            if self._exporter is None:
                # Imported when there is something to send, not while control starts.
                self._exporter = await asyncio.to_thread(_exporter)
            count = min(batch_max, len(self._waiting))
            rows = [self._waiting.popleft() for _ in range(count)]
            try:
                is_taken = await asyncio.to_thread(self._exporter.export, rows)
            except Exception as error:  # noqa: BLE001 - one odd record must not stop the spans of the others
                is_taken = False
                log.error("spans not sent", error=type(error).__name__)
            if is_taken:
                self.exported += count
            else:
                self.failed += count
                log.warning("the collector did not take spans", spans=count, failed=self.failed)


def traces_of(services: Services) -> Traces:
    """This process's traces."""
    return services.singleton(Traces, lambda: Traces(services.config.tracing))


def _exporter() -> Exporter:
    from fairlead.usage.telemetry.spans import Exporter  # noqa: PLC0415 - an extra, and slow to load

    return Exporter()

"""Usage at ten million rows: how long each endpoint takes, and how fast settled requests are taken in.

    python benches/usage.py [--rows 10000000] [--days 30] [--rounds 5] [--keep DIR] [--save NAME]

Makes a data directory whose `usage.duckdb` has that many settled requests over the last days (DuckDB
writes them, and the gateway's own code rolls them up), starts the control plane's application on it,
asks every endpoint as the relay does and reports the least and the median of the rounds, and the CPU
time of each request; then writes spool segments and times the gateway's own ingestion
of them into the same file. On a machine that does other things at once, CPU time is what to go by: an
answer takes about so long when nobody else is there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import polars as pl
from pydantic import SecretStr

from fairlead.control.app import build
from fairlead.moment import now_ms
from fairlead.settings import ControlConfig
from fairlead.store.database import Database
from fairlead.store.file import Connection, file_of
from fairlead.store.prepare import MIGRATIONS, prepare, usage_path
from fairlead.usage.ingestion.ingest import Ingest
from fairlead.usage.ingestion.intake import Intake
from fairlead.usage.ingestion.record import parse_lines
from fairlead.usage.ingestion.segment_store import SegmentStore
from fairlead.usage.sums.rollup import delete_rollups_before, merge_rollups

SLICE = 250_000
WANTED_MS = 300.0
WANTED_ROWS_PER_S = 20_000
DAY_MS = 86_400_000
SETTLE_S = 10

# 60 keys, of which few do most, each with a connection and a model that it mostly calls; 12
# connections of 6 providers with 24 models; 5 % fail; a third are streams; lognormal latencies; a
# fifth write to the provider's prompt cache.
ROWS = """
WITH dice AS (
    SELECT i, {from_ms} + ((i + random()) * {step_ms})::BIGINT AS ts_ms,
        (59 * power(random(), 3))::INTEGER AS key_at, random() < 0.1 AS strays, random() AS fate,
        random() AS size, random() AS cache_fate,
        sqrt(-2 * ln(random() + 1e-12)) * cos(2 * pi() * random()) AS bell
    FROM range({first}, {last}) r(i)
), calls AS (
    SELECT *, (key_at * 7 + strays::INTEGER) % 12 AS line_at, key_at % 4 AS model_at FROM dice
)
SELECT 'req_' || i AS request_id, ts_ms, 'bench' AS worker_id, 'key' AS principal_kind,
    'key-' || key_at AS key_id,
    CASE WHEN i % 3 = 0 THEN 'session-' || (i - i % 40) END AS session_tag,
    'chat' AS endpoint, 'POST' AS method, '/v1/chat/completions' AS path,
    'lab' || (line_at >> 1) || '/model-' || (line_at >> 1) || '-' || model_at AS model,
    'lab' || (line_at >> 1) AS provider, 'connection-' || line_at AS connection_id,
    'model-' || (line_at >> 1) || '-' || model_at AS upstream_model,
    i % 3 = 0 AS stream, CASE WHEN fate < 0.95 THEN 200 ELSE 502 END AS status,
    CASE WHEN fate < 0.95 THEN 'completed' ELSE 'upstream_failed' END AS outcome,
    CASE WHEN fate >= 0.95 THEN 'upstream_status' END AS error_kind,
    (200 + 8000 * size)::BIGINT AS tokens_input, (20 + 900 * fate)::BIGINT AS tokens_output,
    CASE WHEN cache_fate < 0.6 THEN (4000 * size)::BIGINT ELSE 0 END AS tokens_cached,
    0::BIGINT AS tokens_reasoning,
    CASE WHEN cache_fate > 0.8 THEN (6000 * size * size)::BIGINT ELSE 0 END AS tokens_cache_write,
    (4000 * size)::BIGINT AS cost_usd_micros,
    round(900 * exp(0.9 * bell), 3) AS latency_ms,
    CASE WHEN i % 3 = 0 THEN round(200 * exp(0.5 * bell), 3) END AS ttft_ms,
    1 AS attempts, 2000::BIGINT AS bytes_request, 3000::BIGINT AS bytes_response, FALSE AS no_log,
    CASE WHEN i % 5 = 0 THEN 'sticky-' || (i - i % 50) END AS session_id,
    CASE WHEN key_at % 4 = 0 THEN 'combo-' || (line_at % 5) END AS combo,
    CASE WHEN key_at % 4 = 0 THEN 'weighted' ELSE 'single' END AS strategy,
    CASE WHEN i % 10 = 0 THEN 'miss' END AS cache, NULL::VARCHAR AS cache_kind,
    NULL::BIGINT AS cost_saved_usd_micros, NULL::VARCHAR AS trace_id, NULL::VARCHAR AS span_id,
    NULL::VARCHAR AS parent_span_id, NULL::VARCHAR AS guardrails
FROM calls
"""

ENDPOINTS = (
    "/api/usage/history",
    "/api/usage/history?groupBy=hour,model&limit=500",
    "/api/usage/history?groupBy=day,key,model,connection&limit=500&from={month}",
    "/api/usage/history?groupBy=key&from={month}",
    "/api/usage/history?groupBy=model&from={odd}&to={even}",
    "/api/usage/logs",
    "/api/usage/logs?limit=500&offset=5000",
    "/api/usage/logs?keyId=key-7&model=model-3-1",
    "/api/usage/request-logs?outcome=upstream_failed",
    "/api/usage/connection-3?range=30d",
    "/api/usage/connection-3?range=1h",
    "/api/usage/model-latency-stats",
    "/api/usage/model-latency-stats?windowHours=720",
    "/api/usage/cache-health",
    "/api/usage/cache-health?range=30d",
    "/api/sessions",
    "/api/rate-limits",
    "/api/combos/metrics?range=30d",
    "/api/pricing",
    "/metrics",
)


def fill(data_dir: Path, rows: int, days: int) -> float:
    """Writes the rows and their rollups; seconds."""
    began = time.monotonic()
    prepare(data_dir)
    until_ms = now_ms()
    from_ms = until_ms - days * DAY_MS
    step_ms = days * DAY_MS / rows

    async def work() -> None:
        usage = Database.open(usage_path(data_dir), MIGRATIONS / "usage")
        intake, empty = Intake(), parse_lines(b"").rows
        try:
            await usage.write(intake.make)
            await usage.write(intake.plan)
            for first in range(0, rows, SLICE):
                sql = ROWS.format(
                    from_ms=from_ms, step_ms=step_ms, first=first, last=min(first + SLICE, rows)
                )

                def add(con: Connection, sql: str = sql) -> None:
                    # With every column of a record, as ingestion has them.
                    made = pl.DataFrame(file_of(con).sql(sql).to_arrow_table())
                    rows = pl.concat([empty, made], how="diagonal_relaxed")
                    intake.add(con, rows.select(empty.columns).cast(dict(empty.schema)))

                await usage.write(add, deadline_s=600)
            await merge_rollups(usage)
            # As the settings that are shipped keep them.
            await delete_rollups_before(usage, "minute", until_ms - 7 * DAY_MS)
        finally:
            await usage.close()

    asyncio.run(work())
    return time.monotonic() - began


@dataclass
class Took:
    """Milliseconds of each round of an endpoint, and CPU milliseconds of a round."""

    rounds: list[float]
    cpu_ms: float


def ask(data_dir: Path, rounds: int) -> dict[str, Took]:
    """What each endpoint took; the first call of each is left out."""
    month = now_ms() - 30 * DAY_MS
    names = {"month": month, "odd": month + 12_345_678, "even": now_ms() - 7_654_321}
    token = "t" * 32
    app = build(
        ControlConfig(
            data_dir=data_dir,
            link_token=SecretStr(token),
            control_socket=data_dir / "none.sock",
        )
    )
    headers = {
        "x-fairlead-link": token,
        "x-fairlead-principal": '{"kind": "local", "id": null, "scopes": []}',
    }
    took: dict[str, Took] = {}

    async def work() -> None:
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://control") as client,
        ):
            # Merging and retention, which run at the start, are no part of it.
            await asyncio.sleep(SETTLE_S)
            for endpoint in ENDPOINTS:
                path = endpoint.format(**names)
                await client.get(path, headers=headers)
                times = []
                cpu_s = time.process_time()
                for _ in range(rounds):
                    began = time.perf_counter()
                    answer = await client.get(path, headers=headers)
                    times.append((time.perf_counter() - began) * 1000)
                    if answer.status_code != 200:
                        raise SystemExit(f"{path}: {answer.status_code} {answer.text[:200]}")
                took[endpoint] = Took(times, (time.process_time() - cpu_s) * 1000 / rounds)

    asyncio.run(work())
    return took


Speed = tuple[float, float]


def ingest(data_dir: Path, records: int) -> tuple[Speed, Speed]:
    """Records a second, and a second of CPU, from sealed segments into the file; and with many small
    segments, as a quiet gateway seals them.
    """
    return _ingest(data_dir, records, 15_000), _ingest(data_dir, records // 10, 50)


def _ingest(data_dir: Path, records: int, each: int) -> Speed:
    spool = data_dir / "spool"
    spool.mkdir(exist_ok=True)
    from_ms = now_ms() - 60_000
    lines = [_line(at, from_ms + at * 60_000 // records).encode() for at in range(records)]
    for number, first in enumerate(range(0, records, each)):
        # A name that was taken in before would only be deleted.
        path = spool / f"bench{from_ms}x{each}-{number:08}.ndjson"
        path.write_bytes(b"".join(lines[first : first + each]))

    async def work() -> Speed:
        usage = Database.open(usage_path(data_dir), MIGRATIONS / "usage")
        try:
            began, cpu_s = time.monotonic(), time.process_time()
            taken_in = Ingest(SegmentStore(usage, spool), spool)
            while await taken_in.ingest():
                pass
            took_s, took_cpu_s = time.monotonic() - began, time.process_time() - cpu_s
            return records / took_s, records / took_cpu_s
        finally:
            await usage.close()

    return asyncio.run(work())


def _line(at: int, ts_ms: int) -> str:
    lab = at % 6
    record: dict[str, Any] = {
        "request_id": f"req_new{at:08x}",
        "ts_ms": ts_ms,
        "worker_id": "bench",
        "principal_kind": "key",
        "key_id": f"key-{at % 60}",
        "session_tag": None,
        "session_id": None,
        "endpoint": "chat",
        "method": "POST",
        "path": "/v1/chat/completions",
        "model": f"lab{lab}/model-{lab}-{at % 4}",
        "provider": f"lab{lab}",
        "connection_id": f"connection-{at % 12}",
        "upstream_model": f"model-{lab}-{at % 4}",
        "combo": None,
        "strategy": "single",
        "stream": at % 3 == 0,
        "status": 200,
        "outcome": "completed",
        "error_kind": None,
        "tokens_input": 812 + at % 999,
        "tokens_output": 97 + at % 300,
        "tokens_cached": 0,
        "tokens_reasoning": 0,
        "tokens_cache_write": 0,
        "cost_usd_micros": 1234,
        "latency_ms": 300.5 + at % 4000,
        "ttft_ms": 99.125,
        "attempts": 1,
        "bytes_request": 2345,
        "bytes_response": 3456,
        "no_log": False,
        "cache": None,
        "cache_kind": None,
        "cost_saved_usd_micros": None,
        "trace_id": None,
        "span_id": None,
        "parent_span_id": None,
        "guardrails": None,
    }
    return json.dumps(record) + "\n"


def report(
    options: argparse.Namespace,
    fill_s: float,
    took: dict[str, Took],
    speeds: tuple[Speed, Speed],
    size: int,
) -> str:
    """The page of a run."""
    made = f"`usage.duckdb` {size / 1e6:,.0f} MB" + (f", made in {fill_s:.0f} s" if fill_s else "")
    system = f"{platform.system()}, Python {platform.python_version()}"
    lines = [
        f"# Usage at {options.rows:,} rows",
        "",
        f"- cores: {os.cpu_count()}; system: {system}; {options.note}",
        f"- settled requests of {options.days} days: 60 keys, 12 connections, 24 models, 5 combos",
        f"- {made}",
        f"- the control plane's application as shipped, {options.rounds} rounds after a first call",
        "",
        f"| endpoint | CPU ms | least ms | median ms | under {WANTED_MS:.0f} |",
        "| --- | --: | --: | --: | --- |",
    ]
    for endpoint, one in took.items():
        least, median = min(one.rounds), statistics.median(one.rounds)
        met = _met(least < WANTED_MS, one.cpu_ms < WANTED_MS)
        lines.append(f"| `{endpoint}` | {one.cpu_ms:.0f} | {least:.0f} | {median:.0f} | {met} |")
    lines += [
        "",
        f"| ingestion | records/s of CPU | records/s | at least {WANTED_ROWS_PER_S:,} |",
        "| --- | --: | --: | --- |",
    ]
    for name, speed in zip(
        ("segments of 15,000 records", "segments of 50 records"), speeds, strict=True
    ):
        wall, cpu = speed
        met = _met(wall >= WANTED_ROWS_PER_S, cpu >= WANTED_ROWS_PER_S)
        lines.append(f"| {name} | {cpu:,.0f} | {wall:,.0f} | {met} |")
    return "\n".join(lines) + "\n"


def _met(by_clock: bool, by_cpu: bool) -> str:
    return "met" if by_clock else "by CPU time only" if by_cpu else "**missed**"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=300_000, help="records for ingestion")
    parser.add_argument(
        "--keep", type=Path, help="a folder to keep the data in, used again if full"
    )
    parser.add_argument("--note", default="an idle machine", help="what else the machine did")
    parser.add_argument("--save", help="name of the page in benches/results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        data_dir = (options.keep or Path(temporary)).absolute() / "data"
        fill_s = 0.0
        if not usage_path(data_dir).exists():
            data_dir.parent.mkdir(parents=True, exist_ok=True)
            fill_s = fill(data_dir, options.rows, options.days)
        size = usage_path(data_dir).stat().st_size
        took = ask(data_dir, options.rounds)
        speeds = ingest(data_dir, options.records)
        page = report(options, fill_s, took, speeds, size)
    sys.stdout.write(page)
    if options.save:
        (Path(__file__).parent / "results" / f"{options.save}.md").write_text(page)


if __name__ == "__main__":
    main()

"""Usage at ten million rows: how long each endpoint takes, and how fast settled requests are taken in.

    python benches/usage.py [--rows 10000000] [--days 30] [--rounds 5] [--keep DIR] [--save NAME]

Makes a data directory whose `usage.duckdb` has that many settled requests over the last days (DuckDB
writes them, and the gateway's own code rolls them up), starts `fairlead serve` on it, asks every
endpoint over HTTP and reports the least and the median of the rounds; then writes spool segments and
times the gateway's own ingestion of them into the same file. On a machine that does other things at
once, the least is the figure to go by.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from fairlead.moment import now_ms
from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.store.prepare import MIGRATIONS, prepare, usage_path
from fairlead.usage.ingest import Ingest
from fairlead.usage.rollup import add_to_rollups, delete_rollups_before, merge_rollups

SLICE = 250_000
WANTED_MS = 300.0
WANTED_ROWS_PER_S = 20_000
DAY_MS = 86_400_000

# 60 keys, of which few do most, each with a connection and a model that it mostly calls; 12
# connections of 6 providers with 24 models; 5 % fail; a third are streams; lognormal latencies; a
# fifth write to the provider's prompt cache.
ROWS = """
CREATE OR REPLACE TEMP TABLE settled AS
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
    NULL::VARCHAR AS parent_span_id
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
        try:
            for first in range(0, rows, SLICE):
                sql = ROWS.format(
                    from_ms=from_ms, step_ms=step_ms, first=first, last=min(first + SLICE, rows)
                )

                def add(con: Connection, sql: str = sql) -> None:
                    con.execute(sql)
                    con.execute("INSERT INTO requests BY NAME FROM settled")
                    add_to_rollups(con)
                    con.execute("DROP TABLE settled")

                await usage.write(add, deadline_s=600)
            await merge_rollups(usage)
            # As the settings that are shipped keep them.
            await delete_rollups_before(usage, "minute", until_ms - 7 * DAY_MS)
        finally:
            await usage.close()

    asyncio.run(work())
    return time.monotonic() - began


@contextmanager
def serving(data_dir: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """`fairlead serve` on the data directory: its URL and the header that lets us in."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (data_dir.parent / "serve.log").open("wb")
    command = [sys.executable, "-m", "fairlead", "serve", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--data-dir", str(data_dir)], stdout=log, stderr=log, stdin=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                if httpx.get(f"{url}/metrics", timeout=5).status_code == 200:
                    break
            except httpx.HTTPError:
                pass
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"fairlead serve did not start: see {log.name}")
            time.sleep(0.1)
        yield url, {"x-gateway-cli-token": (data_dir / "cli-token").read_text().strip()}
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


def ask(data_dir: Path, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each round by endpoint, the first call of each left out."""
    month = now_ms() - 30 * DAY_MS
    names = {"month": month, "odd": month + 12_345_678, "even": now_ms() - 7_654_321}
    took: dict[str, list[float]] = {}
    with serving(data_dir) as (url, headers), httpx.Client(base_url=url, timeout=60) as client:
        for endpoint in ENDPOINTS:
            path = endpoint.format(**names)
            client.get(path, headers=headers)
            for _ in range(rounds):
                began = time.perf_counter()
                answer = client.get(path, headers=headers)
                took.setdefault(endpoint, []).append((time.perf_counter() - began) * 1000)
                if answer.status_code != 200:
                    raise SystemExit(f"{path}: {answer.status_code} {answer.text[:200]}")
    return took


def ingest(data_dir: Path, records: int) -> tuple[float, float]:
    """Records a second from sealed segments into the file; and for the same rows again with many
    small segments, as a quiet gateway seals them.
    """
    return _ingest(data_dir, records, 15_000), _ingest(data_dir, records // 10, 50)


def _ingest(data_dir: Path, records: int, each: int) -> float:
    spool = data_dir / "spool"
    spool.mkdir(exist_ok=True)
    from_ms = now_ms() - 60_000
    lines = [_line(at, from_ms + at * 60_000 // records).encode() for at in range(records)]
    for number, first in enumerate(range(0, records, each)):
        path = spool / f"bench{each}-{number:08}.ndjson"
        path.write_bytes(b"".join(lines[first : first + each]))

    async def work() -> float:
        usage = Database.open(usage_path(data_dir), MIGRATIONS / "usage")
        try:
            began = time.monotonic()
            taken_in = Ingest(usage, spool)
            while await taken_in.ingest():
                pass
            return time.monotonic() - began
        finally:
            await usage.close()

    return records / asyncio.run(work())


def _line(at: int, ts_ms: int) -> str:
    lab = at % 6
    record: dict[str, Any] = {
        "request_id": f"req_new{at:08x}", "ts_ms": ts_ms, "worker_id": "bench",
        "principal_kind": "key", "key_id": f"key-{at % 60}", "session_tag": None,
        "session_id": None, "endpoint": "chat", "method": "POST", "path": "/v1/chat/completions",
        "model": f"lab{lab}/model-{lab}-{at % 4}", "provider": f"lab{lab}",
        "connection_id": f"connection-{at % 12}", "upstream_model": f"model-{lab}-{at % 4}",
        "combo": None, "strategy": "single", "stream": at % 3 == 0, "status": 200,
        "outcome": "completed", "error_kind": None, "tokens_input": 812 + at % 999,
        "tokens_output": 97 + at % 300, "tokens_cached": 0, "tokens_reasoning": 0,
        "tokens_cache_write": 0, "cost_usd_micros": 1234, "latency_ms": 300.5 + at % 4000,
        "ttft_ms": 99.125, "attempts": 1, "bytes_request": 2345, "bytes_response": 3456,
        "no_log": False, "cache": None, "cache_kind": None, "cost_saved_usd_micros": None,
        "trace_id": None, "span_id": None, "parent_span_id": None,
    }  # fmt: skip
    return json.dumps(record) + "\n"


def report(
    options: argparse.Namespace,
    fill_s: float,
    took: dict[str, list[float]],
    speeds: tuple[float, float],
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
        f"- over HTTP through the gateway as shipped, {options.rounds} rounds after a first call",
        "",
        f"| endpoint | least ms | median ms | under {WANTED_MS:.0f} |",
        "| --- | --: | --: | --- |",
    ]
    for endpoint, rounds in took.items():
        met = "met" if min(rounds) < WANTED_MS else "**missed**"
        median = statistics.median(rounds)
        lines.append(f"| `{endpoint}` | {min(rounds):.0f} | {median:.0f} | {met} |")
    lines += [
        "",
        f"| ingestion | records/s | at least {WANTED_ROWS_PER_S:,} |",
        "| --- | --: | --- |",
    ]
    for name, speed in zip(
        ("segments of 15,000 records", "segments of 50 records"), speeds, strict=True
    ):
        met = "met" if speed >= WANTED_ROWS_PER_S else "**missed**"
        lines.append(f"| {name} | {speed:,.0f} | {met} |")
    return "\n".join(lines) + "\n"


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

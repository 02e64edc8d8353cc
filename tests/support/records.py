"""Settled requests: as they lie in a data directory, and as the relay writes them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import duckdb

from fairlead.usage.ingestion.record import COLUMNS


def stored_records(data_dir: Path) -> list[dict[str, Any]]:
    """Every settled request of an instance that has ended: in `usage.duckdb` or still to be taken in."""
    with duckdb.connect(str(data_dir / "usage.duckdb"), read_only=True) as database:
        cursor = database.execute("select * from requests")
        names = [column[0] for column in cursor.description]
        stored = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        taken_in = {row[0] for row in database.execute("select name from segments").fetchall()}
    return stored + spooled_records(data_dir, without=taken_in)


def spooled_records(data_dir: Path, without: Collection[str] = ()) -> list[dict[str, Any]]:
    """Every record in the spool, but for the segments named; a last line that is not whole is left out.

    What a line leaves out is not known, which is None.
    """
    unknown = dict.fromkeys(COLUMNS)
    found: list[dict[str, Any]] = []
    for path in sorted((data_dir / "spool").iterdir()):
        if path.is_file() and path.stem not in without:
            with contextlib.suppress(FileNotFoundError):  # taken in meanwhile
                lines = path.read_bytes().split(b"\n")[:-1]
                found += [unknown | json.loads(line) for line in lines]
    return found


def camel(name: str) -> str:
    """A field's name as control shows it."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def usage_record(request_id: str, **fields: Any) -> dict[str, Any]:
    """A record as the relay writes it: a completed chat request of the key `k`, unless fields say otherwise."""
    known: dict[str, Any] = {
        "request_id": request_id,
        "ts_ms": 1_800_000_000_000,
        "worker_id": "w",
        "principal_kind": "key",
        "key_id": "k",
        "session_tag": None,
        "endpoint": "chat",
        "method": "POST",
        "path": "/v1/chat/completions",
        "model": "lab/m",
        "provider": "lab",
        "connection_id": "c",
        "upstream_model": "m",
        "stream": False,
        "status": 200,
        "outcome": "completed",
        "error_kind": None,
        "tokens_input": 10,
        "tokens_output": 5,
        "tokens_cached": 4,
        "tokens_reasoning": 2,
        "tokens_cache_write": 1,
        "cost_usd_micros": 3,
        "latency_ms": 12.5,
        "ttft_ms": None,
        "attempts": 1,
        "bytes_request": 100,
        "bytes_response": 200,
        "no_log": False,
        "session_id": None,
        "combo": None,
        "strategy": "single",
        "cache": None,
        "cache_kind": None,
        "cost_saved_usd_micros": None,
        "trace_id": None,
        "span_id": None,
        "parent_span_id": None,
        "guardrails": None,
        "compression": None,
        "compression_tokens_before": None,
        "compression_tokens_after": None,
        "compression_ms": None,
        "compression_rejected": None,
        "compression_saved_usd_micros": None,
        "tokens_cache_write_hour": None,
        "service_tier": None,
        "price_tiers": None,
        "group_path": None,
        "tags": None,
        "chaos": None,
        "cache_hold": None,
        "chosen_ms": None,
        "failed_attempts": None,
        "error_message": None,
        "conversation": None,
        "prompt_hashes": None,
        "cache_read_saving": None,
    }
    # Later columns may be absent, as in records of earlier versions.
    assert fields.keys() <= set(COLUMNS)
    return known | fields

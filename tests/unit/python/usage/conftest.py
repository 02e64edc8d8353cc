from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.store.database import Database
from tests.support.databases import open_fresh_database


@pytest.fixture
async def usage(tmp_path: Path) -> AsyncIterator[Database]:
    database = open_fresh_database(tmp_path, "usage")
    yield database
    await database.close()


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir()
    return folder


@pytest.fixture
def record() -> Any:
    """Makes a record as the relay writes it: `record(request_id, **other fields)`."""

    def make(request_id: str, **fields: Any) -> dict[str, Any]:
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
        }
        assert fields.keys() <= known.keys()
        return {**known, **fields}

    return make


@pytest.fixture
def lines(record: Any) -> Any:
    """Makes the content of a segment: one line for each request id."""

    def make(*request_ids: str, **fields: Any) -> bytes:
        return b"".join(json.dumps(record(each, **fields)).encode() + b"\n" for each in request_ids)

    return make

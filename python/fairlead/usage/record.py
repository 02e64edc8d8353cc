"""Lines of a segment to rows of the table `requests`, and which lines are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl

from fairlead.moment import LATEST_MS

# The columns of the table `requests`. Those that came later may be absent in an older relay's line.
SCHEMA: dict[str, type[pl.DataType]] = {
    "request_id": pl.String,
    "ts_ms": pl.Int64,
    "worker_id": pl.String,
    "principal_kind": pl.String,
    "key_id": pl.String,
    "session_tag": pl.String,
    "endpoint": pl.String,
    "method": pl.String,
    "path": pl.String,
    "model": pl.String,
    "provider": pl.String,
    "connection_id": pl.String,
    "upstream_model": pl.String,
    "stream": pl.Boolean,
    "status": pl.Int32,
    "outcome": pl.String,
    "error_kind": pl.String,
    "tokens_input": pl.Int64,
    "tokens_output": pl.Int64,
    "tokens_cached": pl.Int64,
    "tokens_reasoning": pl.Int64,
    "tokens_cache_write": pl.Int64,
    "cost_usd_micros": pl.Int64,
    "latency_ms": pl.Float64,
    "ttft_ms": pl.Float64,
    "attempts": pl.Int32,
    "bytes_request": pl.Int64,
    "bytes_response": pl.Int64,
    "no_log": pl.Boolean,
    "session_id": pl.String,
    "combo": pl.String,
    "strategy": pl.String,
    "cache": pl.String,
    "cache_kind": pl.String,
    "cost_saved_usd_micros": pl.Int64,
    "trace_id": pl.String,
    "span_id": pl.String,
    "parent_span_id": pl.String,
    "guardrails": pl.String,
}
NULLABLE = frozenset(
    {
        "key_id",
        "session_tag",
        "session_id",
        "model",
        "provider",
        "connection_id",
        "upstream_model",
        "combo",
        "strategy",
        "error_kind",
        "ttft_ms",
        "cache",
        "cache_kind",
        "cost_saved_usd_micros",
        "trace_id",
        "span_id",
        "parent_span_id",
        "guardrails",
    }
)
_REQUIRED = [name for name in SCHEMA if name not in NULLABLE]

# What a value of a column is in Python, and how large it may be.
_TYPES: dict[type[pl.DataType], tuple[type, ...]] = {
    pl.String: (str,),
    pl.Boolean: (bool,),
    pl.Int32: (int,),
    pl.Int64: (int,),
    pl.Float64: (int, float),
}
_LARGEST: dict[type[pl.DataType], int] = {
    pl.Int32: 2**31 - 1,
    pl.Int64: 2**63 - 1,
    pl.Float64: 2**53,
}


@dataclass(frozen=True, slots=True)
class Parsed:
    """The rows of some lines, and the lines that are none."""

    rows: pl.DataFrame
    rejected: list[bytes]


def parse_lines(data: bytes) -> Parsed:
    """Reads NDJSON.

    Unknown fields are left out; a line that lacks a field or has another type is rejected.
    """
    if not data or data.isspace():
        return Parsed(pl.DataFrame(schema=SCHEMA), [])
    try:
        rows = pl.read_ndjson(data, schema=SCHEMA)
    except pl.exceptions.PolarsError:
        return _parse_each(data)
    if sum(rows.select(pl.col(_REQUIRED).null_count()).row(0)):
        return _parse_each(data)
    if not rows["ts_ms"].is_between(0, LATEST_MS).all():
        return _parse_each(data)
    return Parsed(rows, [])


def _parse_each(data: bytes) -> Parsed:
    """The slow way, which knows the lines that are at fault."""
    rows: list[dict[str, Any]] = []
    rejected: list[bytes] = []
    for line in data.split(b"\n"):
        if not line or line.isspace():
            continue
        row = _parse_line(line)
        if row is None:
            rejected.append(line)
        else:
            rows.append(row)
    return Parsed(pl.DataFrame(rows, schema=SCHEMA), rejected)


def _parse_line(line: bytes) -> dict[str, Any] | None:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(row, dict) or not all(_fits(row.get(name), name) for name in SCHEMA):
        return None
    # A time without a date could not be shown, and no other in the list with it.
    if not 0 <= row["ts_ms"] <= LATEST_MS:
        return None
    return {name: row.get(name) for name in SCHEMA}


def _fits(value: object, name: str) -> bool:
    if value is None:
        return name in NULLABLE
    kind = SCHEMA[name]
    if isinstance(value, bool) != (kind is pl.Boolean) or not isinstance(value, _TYPES[kind]):
        return False
    return not isinstance(value, int) or abs(value) <= _LARGEST.get(kind, 1)

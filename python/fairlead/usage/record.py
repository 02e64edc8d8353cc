"""Lines of a segment to rows: a fast way for what is well-formed, a slow one that finds the lines
that are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.json as pa_json

LARGEST_INT = 2**63 - 1

_TYPES: dict[pa.DataType, type | tuple[type, ...]] = {
    pa.string(): str,
    pa.bool_(): bool,
    pa.int32(): int,
    pa.int64(): int,
    pa.float64(): (int, float),
}


def _field(name: str, kind: pa.DataType, *, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=nullable)


# The columns of the table `requests`, in its order.
SCHEMA = pa.schema(
    [
        _field("request_id", pa.string()),
        _field("ts_ms", pa.int64()),
        _field("worker_id", pa.string()),
        _field("principal_kind", pa.string()),
        _field("key_id", pa.string(), nullable=True),
        _field("session_tag", pa.string(), nullable=True),
        _field("endpoint", pa.string()),
        _field("method", pa.string()),
        _field("path", pa.string()),
        _field("model", pa.string(), nullable=True),
        _field("provider", pa.string(), nullable=True),
        _field("connection_id", pa.string(), nullable=True),
        _field("upstream_model", pa.string(), nullable=True),
        _field("stream", pa.bool_()),
        _field("status", pa.int32()),
        _field("outcome", pa.string()),
        _field("error_kind", pa.string(), nullable=True),
        _field("tokens_input", pa.int64()),
        _field("tokens_output", pa.int64()),
        _field("tokens_cached", pa.int64()),
        _field("tokens_reasoning", pa.int64()),
        _field("tokens_cache_write", pa.int64()),
        _field("cost_usd_micros", pa.int64()),
        _field("latency_ms", pa.float64()),
        _field("ttft_ms", pa.float64(), nullable=True),
        _field("attempts", pa.int32()),
        _field("bytes_request", pa.int64()),
        _field("bytes_response", pa.int64()),
        _field("no_log", pa.bool_()),
    ]
)

# The reader wants to say itself what is missing.
_LENIENT = pa.schema([field.with_nullable(True) for field in SCHEMA])


@dataclass(frozen=True, slots=True)
class Parsed:
    """The rows of some lines, and the lines that are none."""

    rows: pa.Table
    rejected: list[bytes]


def parse_lines(data: bytes) -> Parsed:
    """Reads NDJSON. Unknown fields are left out; a line that lacks a field or has another type is
    rejected.
    """
    if not data.strip():
        return Parsed(SCHEMA.empty_table(), [])
    try:
        return Parsed(_parse_all(data), [])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, orjson.JSONDecodeError):
        return _parse_each(data)


def _parse_all(data: bytes) -> pa.Table:
    rows = pa_json.read_json(
        pa.BufferReader(data),
        # One block: a line that spans two is an error to the reader.
        read_options=pa_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pa_json.ParseOptions(
            explicit_schema=_LENIENT, unexpected_field_behavior="ignore"
        ),
    )
    for field in SCHEMA:
        if not field.nullable and rows.column(field.name).null_count:
            raise pa.ArrowInvalid(f"{field.name} is missing")
    return rows.cast(SCHEMA)


def _parse_each(data: bytes) -> Parsed:
    rows: list[dict[str, Any]] = []
    rejected: list[bytes] = []
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        row = _parse_one(line)
        if row is None:
            rejected.append(line)
        else:
            rows.append(row)
    return Parsed(pa.Table.from_pylist(rows, schema=SCHEMA), rejected)


def _parse_one(line: bytes) -> dict[str, Any] | None:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(row, dict) or not all(_fits(row.get(f.name), f) for f in SCHEMA):
        return None
    return {name: row.get(name) for name in SCHEMA.names}


def _fits(value: object, field: pa.Field) -> bool:
    if value is None:
        return bool(field.nullable)
    if isinstance(value, bool) != (field.type == pa.bool_()):
        return False
    if not isinstance(value, _TYPES[field.type]):
        return False
    largest = 2**31 - 1 if field.type == pa.int32() else LARGEST_INT
    return not isinstance(value, int) or abs(value) <= largest

"""A batch as Google shows it: an operation whose metadata is the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from fairlead.gateway.batches.table import Batch
from fairlead.gateway.google import (
    CANCELLED,
    DEADLINE_EXCEEDED,
    INTERNAL,
    INVALID_ARGUMENT,
    TYPES,
    rpc_error,
)
from fairlead.moment import iso, moment_of

_STATES: Final = {
    "validating": "PENDING",
    "in_progress": "RUNNING",
    "finalizing": "RUNNING",
    "cancelling": "RUNNING",
    "completed": "SUCCEEDED",
    "failed": "FAILED",
    "cancelled": "CANCELLED",
    "expired": "EXPIRED",
}


def google_view(
    batch: Batch, answers: Sequence[orjson.Fragment] | None = None, *, as_file: bool = False
) -> dict[str, Any]:
    """The operation of a batch. `answers` are those of an inline batch that has ended; `as_file`
    says that they are too large to be shown.
    """
    output = _output(batch, answers, as_file=as_file)
    shown: dict[str, Any] = {
        "name": f"batches/{batch.id}",
        "metadata": {"@type": f"{TYPES}GenerateContentBatch", **_metadata(batch, output)},
    }
    if batch.ended_at_ms is None:
        return shown
    shown["done"] = True
    if (error := _error(batch)) is not None:
        return shown | {"error": error}
    return shown | {"response": {"@type": f"{TYPES}GenerateContentBatchOutput", **(output or {})}}


def _metadata(batch: Batch, output: dict[str, Any] | None) -> dict[str, Any]:
    moments = (
        batch.created_at_ms,
        batch.in_progress_at_ms,
        batch.finalizing_at_ms,
        batch.cancelling_at_ms,
        batch.ended_at_ms,
    )
    shown: dict[str, Any] = {
        "name": f"batches/{batch.id}",
        "model": f"models/{batch.model}",
        "state": f"BATCH_STATE_{_STATES[batch.status]}",
        "createTime": iso(moment_of(batch.created_at_ms)),
        "updateTime": iso(moment_of(max(moment or 0 for moment in moments))),
        "priority": str(batch.priority),
        # Numbers of 64 bits are texts in Google's JSON.
        "batchStats": {
            "requestCount": str(batch.total),
            "successfulRequestCount": str(batch.completed),
            "failedRequestCount": str(batch.failed),
            "pendingRequestCount": str(batch.total - batch.completed - batch.failed),
        },
    }
    if batch.display_name is not None:
        shown["displayName"] = batch.display_name
    if not batch.is_inline:
        shown["inputConfig"] = {"fileName": f"files/{batch.input_file_id}"}
    if batch.ended_at_ms is not None:
        shown["endTime"] = iso(moment_of(batch.ended_at_ms))
    if output is not None:
        shown["output"] = output
    return shown


def _output(
    batch: Batch, answers: Sequence[orjson.Fragment] | None, *, as_file: bool
) -> dict[str, Any] | None:
    if answers is not None:
        return {"inlinedResponses": {"inlinedResponses": answers}}
    has_file = batch.ended_at_ms is not None and batch.output_file_id is not None
    if has_file and (as_file or not batch.is_inline):
        return {"responsesFile": f"files/{batch.output_file_id}"}
    return None


def _error(batch: Batch) -> dict[str, Any] | None:
    match batch.status:
        case "cancelled":
            return rpc_error(CANCELLED, "The batch was cancelled.")
        case "expired":
            return rpc_error(
                DEADLINE_EXCEEDED, "The batch was not done within a day; what was done is kept."
            )
        case "failed" if batch.errors:
            first = orjson.loads(batch.errors)["data"][0]
            place = f"Line {first['line']}: " if first["line"] is not None else ""
            return rpc_error(INVALID_ARGUMENT, f"{place}{first['message']}")
        case "failed":
            return rpc_error(INTERNAL, "The batch failed.")
    return None

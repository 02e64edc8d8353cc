"""Rows of batches for tests that put one into a database by themselves."""

from __future__ import annotations

from typing import Any

from fairlead.gateway.batches.table import Batch


def make_batch(**fields: Any) -> Batch:
    """`batch_1` of the key `key`: nothing of its input `file-in` is read yet, unless fields say otherwise."""
    known: dict[str, Any] = {
        "id": "batch_1",
        "owner": "key",
        "endpoint": "/v1/embeddings",
        "input_file_id": "file-in",
        "metadata": None,
        "output_expires_after_s": None,
        "status": "validating",
        "model": None,
        "errors": None,
        "output_file_id": None,
        "error_file_id": None,
        "total": 0,
        "completed": 0,
        "failed": 0,
        "tokens_input": 0,
        "tokens_output": 0,
        "tokens_cached": 0,
        "tokens_reasoning": 0,
        "created_at_ms": 1,
        "expires_at_ms": 2,
        "in_progress_at_ms": None,
        "finalizing_at_ms": None,
        "cancelling_at_ms": None,
        "ended_at_ms": None,
    }
    return Batch(**(known | fields))

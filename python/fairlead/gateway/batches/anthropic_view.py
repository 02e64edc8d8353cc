"""A message batch as Anthropic's API shows it."""

from __future__ import annotations

from typing import Any, Final

from fairlead.gateway.batches.table import OUTPUT_KEPT_S, Batch
from fairlead.moment import iso, moment_of

_STATUSES: Final = {
    "validating": "in_progress",
    "in_progress": "in_progress",
    "finalizing": "in_progress",
    "cancelling": "canceling",
}


def anthropic_view(batch: Batch, base: str, now_ms: int) -> dict[str, Any]:
    """`base` is the gateway's address for this caller, at which the results are read."""
    archived_at_ms = None
    if batch.ended_at_ms is not None and has_results(batch):
        archived_at_ms = batch.ended_at_ms + OUTPUT_KEPT_S * 1000
    is_archived = archived_at_ms is not None and archived_at_ms <= now_ms
    results_url = None
    if batch.ended_at_ms is not None and has_results(batch) and not is_archived:
        results_url = f"{base}/v1/messages/batches/{batch.id}/results"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": _STATUSES.get(batch.status, "ended"),
        "request_counts": _counts(batch),
        "created_at": _time(batch.created_at_ms),
        "expires_at": _time(batch.expires_at_ms),
        "cancel_initiated_at": _time(batch.cancelling_at_ms),
        "ended_at": _time(batch.ended_at_ms),
        "archived_at": _time(archived_at_ms) if is_archived else None,
        "results_url": results_url,
    }


def has_results(batch: Batch) -> bool:
    """Whether the batch left a file of results. A batch that a defect ended left none."""
    return batch.output_file_id is not None


def _counts(batch: Batch) -> dict[str, int]:
    """All requests are `processing` until the batch has ended, as in Anthropic's API."""
    if batch.ended_at_ms is None:
        return _tally(processing=batch.total)
    not_run = batch.total - batch.completed - batch.failed
    errored = batch.failed - batch.expired
    if has_results(batch):
        return _tally(
            succeeded=batch.completed, errored=errored, expired=batch.expired, canceled=not_run
        )
    return _tally(succeeded=batch.completed, errored=errored + not_run, expired=batch.expired)


def _tally(**counts: int) -> dict[str, int]:
    names = ("processing", "succeeded", "errored", "canceled", "expired")
    return dict.fromkeys(names, 0) | counts


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None else iso(moment_of(at_ms))

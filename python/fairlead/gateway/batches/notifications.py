"""The events `batch.*`: a batch has ended. They go to the owner's webhooks, or to those that the
batch named.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from fairlead.gateway.batches.table import ENDED, Batch, find_batch
from fairlead.records.service_jobs import JobEvent, queue_job_event
from fairlead.store.file import Connection

_NAMES: Final = {
    "completed": "batch.succeeded",
    "cancelled": "batch.cancelled",
    "expired": "batch.expired",
    "failed": "batch.failed",
}
# The error that is reported when a defect of fairlead ended the batch.
_UNKNOWN: Final = {"code": "internal", "message": "The batch failed."}


def notify_end(con: Connection, batch_id: str, origin: str) -> None:
    """Queues the event of a batch's end, in the transaction that ends it; does nothing for a batch
    that has not ended. `origin` is the gateway's address for callers.
    """
    batch = find_batch(con, batch_id)
    if batch.status not in ENDED or batch.ended_at_ms is None:
        return
    name = _NAMES[batch.status]
    happened = JobEvent(batch.id, name, _data(batch, origin), batch.ended_at_ms)
    queue_job_event(con, batch.owner, happened)


def _data(batch: Batch, origin: str) -> dict[str, Any]:
    has_file = batch.output_file_id is not None and not batch.is_inline
    if batch.status == "completed" and has_file:
        return {"output_file_uri": f"{origin}/v1/files/{batch.output_file_id}/content"}
    if batch.status == "failed":
        first = (orjson.loads(batch.errors)["data"] if batch.errors else [_UNKNOWN])[0]
        return {"error_code": first["code"], "error_message": first["message"]}
    return {}

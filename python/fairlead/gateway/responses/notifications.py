"""The events `interaction.*`: a response that was begun as an interaction has ended. They go to its
owner's webhooks, or to those that it named.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.moment import now_ms
from fairlead.records.service_jobs import JobEvent, end_job, job_owner, queue_job_event
from fairlead.store.file import Connection

# An answer that was cut off counts as completed.
_NAMES: Final = {
    "completed": "interaction.completed",
    "incomplete": "interaction.completed",
    "requires_action": "interaction.requires_action",
    "failed": "interaction.failed",
    "cancelled": "interaction.cancelled",
}


def status_of(response: dict[str, Any]) -> str:
    """A response's status in Google's dialect."""
    status = str(response.get("status") or "completed")
    calls = any(
        isinstance(item, dict) and item.get("type") == "function_call"
        for item in response.get("output") or []
    )
    return "requires_action" if calls and status == "completed" else status


def notify_end(con: Connection, response: dict[str, Any]) -> None:
    """Queues the event of an interaction's end, in the transaction that ends it; does nothing for a
    response that was not begun as an interaction.
    """
    response_id = str(response["id"])
    owner = job_owner(con, response_id)
    name = _NAMES.get(status_of(response))
    if owner is None or name is None:
        return
    data: dict[str, Any] = {}
    if name == "interaction.failed":
        error = response.get("error") or {}
        data = {
            "error_code": str(error.get("code") or "server_error"),
            "error_message": str(error.get("message") or "The interaction failed."),
        }
    at_ms = now_ms()
    queue_job_event(con, owner, JobEvent(response_id, name, data, at_ms))
    # An interaction that requires action has ended too: its continuation is another one.
    end_job(con, response_id, at_ms)

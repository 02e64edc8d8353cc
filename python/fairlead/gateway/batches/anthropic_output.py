"""The results of a message batch: `{"custom_id", "result"}` for each request, in the order of the input.

A result is `succeeded` with the message, `errored` with the error response, `canceled` or `expired`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from fairlead import _core
from fairlead.gateway.batches.lines import raw_lines
from fairlead.gateway.batches.results import Results, is_expired, is_success


def write_results(source: Path, results: Results, target: Path) -> None:
    """Writes one result for each line of the input. Blocking; can be repeated."""
    positions = results.positions()
    with target.open("wb") as file:
        for _, raw in raw_lines(source):
            if raw is None:
                continue
            custom_id = orjson.loads(raw)["custom_id"]
            document = results.read(positions[custom_id]) if custom_id in positions else None
            line = {"custom_id": custom_id, "result": _result(document)}
            file.write(orjson.dumps(line) + b"\n")


def _result(document: dict[str, Any] | None) -> dict[str, Any]:
    if document is None:
        return {"type": "canceled"}
    if is_expired(document):
        return {"type": "expired"}
    response = document["response"]
    if is_success(document):
        return {"type": "succeeded", "message": response["body"]}
    return {"type": "errored", "error": _error(response)}


def _error(response: dict[str, Any]) -> dict[str, Any]:
    """The error response. Only one that the gateway itself could not read or wait for has another form."""
    body = response["body"] if isinstance(response["body"], dict) else {}
    if body.get("type") == "error" and isinstance(body.get("error"), dict):
        return body
    fault = body.get("error")
    message = fault.get("message") if isinstance(fault, dict) else None
    kind = _core.anthropic_error_type(response["status_code"])
    return {
        "type": "error",
        "error": {"type": kind, "message": str(message or "The request failed.")},
        "request_id": response["request_id"] or None,
    }

"""The output file of a batch in Google's dialect: `{"key", "response"}` or `{"key", "error"}` for each line of the
input, in its order. If the requests are inside the call, `metadata` replaces `key`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import orjson

from fairlead.gateway.batches.lines import raw_lines
from fairlead.gateway.batches.results import Results, is_success
from fairlead.gateway.google import (
    CANCELLED,
    DEADLINE_EXCEEDED,
    rpc_code,
    rpc_error,
)

# Fields of an input line that are copied to the output line beside the answer.
_COMES_BACK: Final = ("key", "metadata")
_NOT_RUN: Final = "The batch ended before this request was run."


def write_output(source: Path, results: Results, target: Path) -> None:
    """Writes one output line for each line of the input. Blocking; repeatable."""
    positions = results.positions()
    with target.open("wb") as file:
        for number, raw in raw_lines(source):
            if raw is None:
                continue
            request = orjson.loads(raw)
            echoed = {name: request[name] for name in _COMES_BACK if name in request}
            document = results.read(positions[str(number)]) if str(number) in positions else None
            file.write(orjson.dumps(echoed | _outcome(document)) + b"\n")


def output_lines(output: bytes) -> list[orjson.Fragment]:
    """The lines of an output, as in an answer."""
    return [orjson.Fragment(line) for line in output.removesuffix(b"\n").split(b"\n") if line]


def _outcome(document: dict[str, Any] | None) -> dict[str, Any]:
    if document is None:
        return {"error": rpc_error(CANCELLED, _NOT_RUN)}
    if is_success(document):
        return {"response": document["response"]["body"]}
    if document["response"] is None:
        return {"error": rpc_error(DEADLINE_EXCEEDED, document["error"]["message"])}
    answered = document["response"]
    fault = answered["body"].get("error") if isinstance(answered["body"], dict) else None
    message = fault.get("message") if isinstance(fault, dict) else None
    code = rpc_code(answered["status_code"])
    return {"error": rpc_error(code, str(message or "The request failed."))}

"""The input of a batch: one request a line, checked before any of them is run.

Of OpenAI's kind a line is `{"custom_id", "method", "url", "body"}`, of Google's `{"key", "request"}`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from fairlead.errors import InvalidRequest
from fairlead.gateway.google import named_model

LINES_MAX: Final = 50_000
LINE_MAX_BYTES: Final = 8 * 1024 * 1024
ERRORS_MAX: Final = 20
ID_MAX_CHARS: Final = 512


@dataclass(frozen=True, slots=True)
class Line:
    """One request; `number` counts from 1, `custom_id` is its name in the results, `body` is JSON."""

    number: int
    custom_id: str
    body: bytes


@dataclass(slots=True)
class InputCheck:
    """The result of checking a whole input; `errors` are in OpenAI's shape."""

    total: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    models: set[str] = field(default_factory=set)


def check_input(path: Path, endpoint: str, model: str | None = None) -> InputCheck:
    """Reads an input from end to end. With a model, the input is in Google's dialect. Blocking."""
    checked = InputCheck()
    seen: set[bytes] = set()
    for number, raw in raw_lines(path):
        if len(checked.errors) >= ERRORS_MAX:
            break
        if checked.total >= LINES_MAX:
            _wrong(
                checked, number, "too_many_requests", f"A batch has at most {LINES_MAX} requests."
            )
            break
        if raw is None:
            _wrong(checked, number, "line_too_large", f"A line has at most {LINE_MAX_BYTES} bytes.")
            continue
        checked.total += 1
        if model is None:
            _check_line(checked, number, raw, endpoint, seen)
        else:
            _check_google_line(checked, number, raw, model)
    if not checked.total and not checked.errors:
        _wrong(checked, None, "empty_file", "The input file has no requests.")
    return checked


def read_lines(path: Path, dialect: str = "openai") -> Iterator[Line]:
    """The requests of an input that was checked before. Blocking."""
    for number, raw in raw_lines(path):
        if raw is None:
            continue
        document = orjson.loads(raw)
        if dialect == "gemini":
            yield Line(number, str(number), google_body(document["request"]))
        else:
            yield Line(number, document["custom_id"], orjson.dumps(document["body"]))


def raw_lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """The lines that are not blank; None stands for a line that is too long."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LINE_MAX_BYTES + 2):
            number += 1
            is_long = len(line.rstrip(b"\r\n")) > LINE_MAX_BYTES
            if is_long:
                while line and not line.endswith(b"\n"):
                    line = file.readline(LINE_MAX_BYTES)
                yield number, None
            elif line.strip():
                yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


def _check_line(
    checked: InputCheck, number: int, raw: bytes, endpoint: str, seen: set[bytes]
) -> None:
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _wrong(checked, number, "invalid_json_line", "The line is not a JSON object.")
    if not isinstance(document, dict):
        return _wrong(checked, number, "invalid_json_line", "The line is not a JSON object.")
    custom_id, body = document.get("custom_id"), document.get("body")
    if not isinstance(custom_id, str) or not 1 <= len(custom_id) <= ID_MAX_CHARS:
        return _wrong(
            checked,
            number,
            "missing_required_parameter",
            f"custom_id must be a text of 1 to {ID_MAX_CHARS} characters.",
            "custom_id",
        )
    # Ids are compared by their digests, because fifty thousand long ones take too much memory.
    digest = hashlib.sha256(custom_id.encode("utf-8", "surrogatepass")).digest()[:16]
    if digest in seen:
        return _wrong(
            checked,
            number,
            "duplicate_custom_id",
            "custom_id is used by an earlier line already.",
            "custom_id",
        )
    seen.add(digest)
    if document.get("method") != "POST":
        return _wrong(checked, number, "invalid_method", "method must be `POST`.", "method")
    if document.get("url") != endpoint:
        return _wrong(
            checked,
            number,
            "mismatched_endpoint",
            f"url must be the batch's endpoint, `{endpoint}`.",
            "url",
        )
    if not isinstance(body, dict):
        return _wrong(checked, number, "invalid_body", "body must be a JSON object.", "body")
    if body.get("stream"):
        return _wrong(checked, number, "invalid_body", "A batch cannot stream.", "body.stream")
    if isinstance(body.get("model"), str) and len(checked.models) < 2:
        checked.models.add(body["model"])
    return None


def _check_google_line(checked: InputCheck, number: int, raw: bytes, model: str) -> None:
    checked.models.add(model)
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        return _wrong(checked, number, "invalid_json_line", "The line is not a JSON object.")
    if not isinstance(document.get("key", ""), str):
        return _wrong(checked, number, "invalid_key", "key must be a text.", "key")
    if (fault := wrong_request(document.get("request"), model)) is not None:
        rule, param = fault
        return _wrong(checked, number, "invalid_request", f"{param} {rule}.", param)
    return None


def wrong_request(request: Any, model: str) -> tuple[str, str] | None:
    """The error in one generateContent request of a batch for this model and the member that it is
    in; None when there is no error.
    """
    if not isinstance(request, dict):
        return "must be a JSON object: a generateContent request", "request"
    named = request.get("model")
    if named is not None and (not isinstance(named, str) or not _is_spelling_of(named, model)):
        return f"must be the batch's own, `models/{model}`, or left out", "request.model"
    return None


def _is_spelling_of(named: str, model: str) -> bool:
    try:
        return named_model(named) == model
    except InvalidRequest:
        return False


def google_body(request: dict[str, Any]) -> bytes:
    """The body of a request for `generateContent`, without the model, which is in the URL."""
    return orjson.dumps({name: value for name, value in request.items() if name != "model"})


def _wrong(
    checked: InputCheck, number: int | None, code: str, message: str, param: str | None = None
) -> None:
    checked.errors.append({"code": code, "line": number, "message": message, "param": param})

"""Pydantic's validation errors as one sentence for the sender of the body."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fairlead.errors import InvalidRequest

FAULTS_MAX: Final = 20
_SOURCES: Final = ("body", "query", "path", "header", "cookie")
_SHOULD = re.compile(r"^\w+ should ")
# Parts of pydantic's messages about its own processing, which say nothing to a caller.
_ASIDE = re.compile(r" after validation|, unable to parse string as an? \w+")


def invalid_request(errors: Sequence[Mapping[str, Any]]) -> InvalidRequest:
    """An `InvalidRequest` for the first of pydantic's errors, naming the field, the rule and the fix."""
    first = errors[0]
    path = list(first["loc"])
    source = path.pop(0) if path and path[0] in _SOURCES else "body"
    param = _pointer(path)
    kind, message = first["type"], str(first["msg"]).removeprefix("Value error, ")
    if kind == "no_valid_fields":
        return InvalidRequest(message)
    if not param and message.startswith("must "):
        # A rule of the whole, which is of no one field.
        return InvalidRequest(f"The {source} {message}.")
    if not param:
        what = "is missing" if kind == "missing" else "is not a JSON object"
        return InvalidRequest(
            f"The {source} {what}: send a JSON object with the fields of this route."
        )
    if kind == "missing":
        return InvalidRequest(f"{param} is required: add it to the {source}.", param=param)
    if kind == "extra_forbidden":
        return InvalidRequest(
            f"{param} is not a field of this {source}: remove it or correct its name.", param=param
        )
    rule = _ASIDE.sub("", _SHOULD.sub("must ", message))
    return InvalidRequest(f"{param} {rule}.", param=param)


def faults(errors: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Each of the first `FAULTS_MAX` errors: the `path` of its field, and a `message` that names it too."""
    return [
        {"path": _path(error), "message": invalid_request([error]).message}
        for error in errors[:FAULTS_MAX]
    ]


def _path(error: Mapping[str, Any]) -> str:
    path = list(error["loc"])
    return _pointer(path[1:] if path and path[0] in _SOURCES else path)


def _pointer(path: list[Any]) -> str:
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else str(step)
    return text[:200]

"""Errors as the management surface shows them: `{"error": {message, type, code, param},
"requestId"}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from fairlead import _core
from fairlead.caller import caller_of
from fairlead.errors import (
    FairleadError,
    Internal,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
)

_SHOULD = re.compile(r"^\w+ should ")
# What pydantic says of its own doings.
_ASIDE = re.compile(r" after validation|, unable to parse string as an? \w+")


def error_response(
    error: FairleadError,
    request_id: str | None,
    path: str | None = None,
    method: str | None = None,
) -> Response:
    """The answer that an error is, in the shape of the surface that the path and method belong
    to.
    """
    body: dict[str, object] = (
        {"success": False, "error": error.message, **error.extra}
        if path is not None and is_scraping(path, method)
        else {
            "error": {
                "message": error.message,
                "type": error.type,
                "code": error.kind,
                "param": error.param,
            },
            "requestId": request_id,
            **error.extra,
        }
    )
    headers = {"cache-control": "no-store"}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(error.retry_after_s)
    return Response(orjson.dumps(body), error.status, headers, "application/json")


def is_scraping(path: str, method: str | None = None) -> bool:
    """Whether the path is one of the scraping API, which has an error shape of its own. A method
    tells apart what shares a path with another surface.
    """
    if method is not None and _doors("management", method).fullmatch(path) is not None:
        return False
    return _doors("scraping", None).fullmatch(path) is not None


@cache
def _doors(surface: str, method: str | None) -> re.Pattern[str]:
    paths = {
        str(route["path"])
        for route in _core.routes()
        if route["surface"] == surface and method in (None, route["method"])
    }
    return re.compile("|".join(re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(path)) for path in paths))


def invalid_request(errors: Sequence[Mapping[str, Any]]) -> InvalidRequest:
    """The first of pydantic's findings, as one sentence that names the field, the rule and what to
    do.
    """
    first = errors[0]
    place = list(first["loc"])
    source = (
        place.pop(0)
        if place and place[0] in ("body", "query", "path", "header", "cookie")
        else "body"
    )
    param = _pointer(place)
    kind, message = first["type"], str(first["msg"]).removeprefix("Value error, ")
    if kind == "no_valid_fields":
        return InvalidRequest(message)
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


def install_handlers(app: FastAPI) -> None:
    """Makes the app answer every expected error in this shape; the gate does the same for the
    unexpected ones.
    """

    async def on_fairlead(request: Request, error: FairleadError) -> Response:
        return error_response(
            error, caller_of(request).request_id, request.url.path, request.method
        )

    async def on_invalid(request: Request, error: RequestValidationError) -> Response:
        return error_response(
            invalid_request(error.errors()),
            caller_of(request).request_id,
            request.url.path,
            request.method,
        )

    async def on_http(request: Request, error: HTTPException) -> Response:
        answer = error_response(
            _of_status(error.status_code), caller_of(request).request_id, request.url.path
        )
        if error.headers:
            answer.headers.update(error.headers)
        return answer

    # Each handler takes the errors that it is registered for; Starlette's type says any.
    app.add_exception_handler(FairleadError, on_fairlead)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, on_invalid)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, on_http)  # type: ignore[arg-type]


def _of_status(status: int) -> FairleadError:
    if status == 404:
        return NotFound("There is nothing at this path.")
    if status == 405:
        return MethodNotAllowed("This path does not take this method.")
    if 400 <= status < 500:
        return InvalidRequest("The request cannot be read.")
    return Internal("The request failed.")


def _pointer(place: list[Any]) -> str:
    text = ""
    for step in place:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else str(step)
    return text[:200]
